package zone_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/zone"
	"github.com/firstcome/firstcome/test/services"
)

func TestMain(m *testing.M) { services.Main(m) }

func TestATimeThatClocksSkipOrShowTwiceIsNoInstant(t *testing.T) {
	for _, c := range []struct {
		zone, typed, want string // want is empty if there is no instant
		err               error
	}{
		{"Asia/Seoul", "2026-12-01 10:00", "2026-12-01T01:00:00Z", nil},
		{"America/New_York", "2027-03-14T01:59:59", "2027-03-14T06:59:59Z", nil},
		{"America/New_York", "2027-03-14T02:00", "", zone.ErrSkipped},
		{"America/New_York", "2027-03-14T02:59:59", "", zone.ErrSkipped},
		{"America/New_York", "2027-03-14T03:00", "2027-03-14T07:00:00Z", nil},
		{"America/New_York", "2026-11-01 00:59:59", "2026-11-01T04:59:59Z", nil},
		{"America/New_York", "2026-11-01 01:00", "", zone.ErrTwice},
		{"America/New_York", "2026-11-01 01:59:59", "", zone.ErrTwice},
		{"America/New_York", "2026-11-01 02:00", "2026-11-01T07:00:00Z", nil},
		{"Australia/Lord_Howe", "2027-04-04 01:45", "", zone.ErrTwice}, // put back by half an hour
	} {
		in, err := zone.Load(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		wall, ok := zone.WallClock(c.typed)
		if !ok {
			t.Fatalf("%q is not read", c.typed)
		}
		at, err := zone.Instant(wall, in)
		if !errors.Is(err, c.err) || err == nil && at.UTC().Format(time.RFC3339) != c.want {
			t.Errorf("%s in %s is %v, %v; want %s, %v", c.typed, c.zone, at.UTC(), err, c.want, c.err)
		}
	}
}

func TestOnlyNamesOfTheDatabaseAreZones(t *testing.T) {
	for _, name := range []string{"", "Local", "Seoul", "../etc/passwd"} {
		if _, err := zone.Load(name); err == nil {
			t.Errorf("%q is a zone", name)
		}
	}
}
