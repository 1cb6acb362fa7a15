// Package runbooks holds the cards for the day of an event, which the console shows: it has no other copy.
package runbooks

import _ "embed"

// EventDay is the card in English. EventDayKorean is the same in Korean.
var (
	//go:embed event-day.md
	EventDay string
	//go:embed event-day.ko.md
	EventDayKorean string
)
