// Package zone has the time zones in which people read and type times.
package zone

import (
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // for systems without zones, such as an image from scratch
)

// Load returns the zone with a name of the IANA database, like Asia/Seoul or UTC. The error says how to write one.
func Load(name string) (*time.Location, error) {
	location, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf("%q is not a time zone: write it like Asia/Seoul or UTC", name)
	}
	return location, nil
}

// WallClock reads a date and a time of day without a zone. The time that it returns has the zone UTC, which means nothing.
func WallClock(text string) (at time.Time, ok bool) {
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// The reasons why a date and a time of day are not exactly one instant in a zone.
var (
	ErrSkipped = errors.New("clocks in this zone skip this time when they are put forward")
	ErrTwice   = errors.New("clocks in this zone show this time twice, as they are put back")
)

// Instant returns the instant at which clocks in a zone show the date and time of day of at. If there is not exactly one, it returns an instant near
// it and ErrSkipped or ErrTwice.
func Instant(at time.Time, zone *time.Location) (time.Time, error) {
	there := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), zone)
	const shows = time.DateTime
	if there.Format(shows) != at.Format(shows) {
		return there, ErrSkipped
	}
	for _, before := range []time.Duration{-2 * time.Hour, -time.Hour, -30 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour} {
		if there.Add(before).Format(shows) == at.Format(shows) {
			return there, ErrTwice
		}
	}
	return there, nil
}
