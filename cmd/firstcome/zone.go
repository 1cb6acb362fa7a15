package main

import (
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // for systems without zones, such as an image from scratch

	"github.com/firstcome/firstcome/client"
)

// A zoneName is the name of a time zone, like Asia/Seoul. Empty means this machine's zone.
type zoneName string

func (z *zoneName) UnmarshalText(text []byte) error {
	if _, err := time.LoadLocation(string(text)); err != nil || len(text) == 0 {
		return fmt.Errorf("%q is not a time zone: write it like Asia/Seoul or UTC", text)
	}
	*z = zoneName(text)
	return nil
}

// location returns the zone itself.
func (z zoneName) location() *time.Location {
	if z == "" {
		return time.Local
	}
	location, _ := time.LoadLocation(string(z)) // UnmarshalText has checked it
	return location
}

// text returns a time in UTC, followed by the time in the zone if its offset from UTC is not 0.
func (z zoneName) text(at *client.Time) string {
	if at == nil {
		return "-"
	}
	utc, there := timeText(at), at.In(z.location())
	if _, offset := there.Zone(); offset == 0 {
		return utc
	}
	return utc + there.Format(" (2006-01-02 15:04:05 MST)")
}

// wallClock reads a date and a time of day without a zone.
func wallClock(text string) (at time.Time, ok bool) {
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// inZone returns the time at which clocks in a zone show the date and time of day of at. It returns an error if there is not exactly one.
func inZone(at time.Time, zone *time.Location) (time.Time, error) {
	there := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), zone)
	const shows = time.DateTime
	if there.Format(shows) != at.Format(shows) {
		return there, errors.New("clocks in this zone skip this time when they are put forward: choose another time, or write it with its offset from UTC")
	}
	for _, before := range []time.Duration{-2 * time.Hour, -time.Hour, -30 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour} {
		if there.Add(before).Format(shows) == at.Format(shows) {
			return there, errors.New("clocks in this zone show this time twice, as they are put back: write it with its offset from UTC")
		}
	}
	return there, nil
}
