package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
)

// moved returns a line of 10,000 users, of which served have been served.
func moved(at time.Duration, served int64) sight {
	pace := int64(2000)
	return sight{at, client.Line{
		Generation: 1, Serving: served + 1, LastTicket: 10_000, Waiting: 10_000 - served, Pace: &client.Pace{PerSecond: &pace},
	}}
}

func TestALineIsShownOnOneScreenAsItMoves(t *testing.T) {
	var out bytes.Buffer
	show := newLineShow(&out, true, 5000)
	for n := range int64(10) {
		show.see(moved(time.Duration(n+1)*200*time.Millisecond, 400*(n+1)))
	}
	show.see(sight{3 * time.Second, client.Line{Generation: 2, Serving: 1}}) // all users were sent away
	show.end()
	screens := strings.Split(out.String(), "\x1b[5A")
	if len(screens) != 10 {
		t.Fatalf("%d screens, each over the one before: %q", len(screens), out.String())
	}
	const want = `
              issued  ████████████████████████████████░░░░░░░░ 4000 of 5000
             serving  ticket 4001 of 10000
             waiting  6000
   the last user has  5999 ahead, about 3.0 s
                pace  2000 a second, recently 2000 a second

`
	if last := "\n" + strings.ReplaceAll(screens[9], "\x1b[K", ""); last != want {
		t.Errorf("the last screen is\n%s", last)
	}
}

func TestElsewhereThanOnATerminalALineIsShownInPlainText(t *testing.T) {
	var out bytes.Buffer
	show := newLineShow(&out, false, 5000)
	show.see(moved(time.Second, 1990))
	show.see(moved(2*time.Second, 3990))
	const want = " 1.0 s: serving ticket 1991 of 10000, 1990 of 5000 coupons issued, 8010 waiting, the last user has 8009 ahead, about 4.0 s, 1990 a second\n" +
		" 2.0 s: serving ticket 3991 of 10000, 3990 of 5000 coupons issued, 6010 waiting, the last user has 6009 ahead, about 3.0 s, 2000 a second\n"
	if out.String() != want {
		t.Errorf("it says\n%s", out.String())
	}
}
