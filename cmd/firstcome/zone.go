package main

import (
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/zone"
)

// A zoneName is the name of a time zone, like Asia/Seoul. Empty means that none was named.
type zoneName string

func (z *zoneName) UnmarshalText(text []byte) error {
	if _, err := zone.Load(string(text)); err != nil {
		return err
	}
	*z = zoneName(text)
	return nil
}

// location returns the zone itself, or nil if none was named.
func (z zoneName) location() *time.Location {
	if z == "" {
		return nil
	}
	location, _ := zone.Load(string(z)) // UnmarshalText has checked it
	return location
}

// text returns a time in UTC, followed by the time in the zone, or in this machine's zone if none was named, if its offset from UTC is not 0.
func (z zoneName) text(at *client.Time) string {
	if at == nil {
		return "-"
	}
	in := z.location()
	if in == nil {
		in = time.Local
	}
	utc, there := timeText(at), at.In(in)
	if _, offset := there.Zone(); offset == 0 {
		return utc
	}
	return utc + there.Format(" (2006-01-02 15:04:05 MST)")
}
