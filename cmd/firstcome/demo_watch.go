package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	// watchedFor is how long the users take to come if people watch.
	watchedFor = 40 * time.Second
	// leastRate is how many come a second in any case: a few users need no 40 s.
	leastRate = 50
	// inviteWait is how long nobody has to open the link before the users come all the same.
	inviteWait = 5 * time.Minute
	// breath is between the first look and the first users: the page is there, and shows a campaign of which nothing is issued.
	breath = 2 * time.Second
)

var errInterrupted = errors.New("interrupted: the temporary ledger is removed")

// demoLink returns where people watch the demonstration.
func demoLink(n *node) string { return n.consoleURL() + "/campaigns/" + demoCampaign }

// invite prints where to watch, and returns when somebody does.
func invite(ctx context.Context, t terminal, n *node) error {
	fmt.Fprintf(t.out, "Watch it here:  %s\nThe users come when that page is open, or in %.0f minutes. Ctrl-C ends it.\n\n", demoLink(n), inviteWait.Minutes())
	looks := time.NewTicker(100 * time.Millisecond)
	defer looks.Stop()
	begin := time.After(inviteWait)
	for seen := false; ; {
		select {
		case <-ctx.Done():
			return errInterrupted
		case <-begin:
			return nil
		case <-looks.C:
			if !seen && n.watcher.Watched(demoCampaign) {
				seen, begin = true, time.After(breath)
			}
		}
	}
}

// rate returns how many claims are sent a second; 0: as many as the connections carry.
func (c *demoCmd) rate() float64 {
	if !c.Watch || c.paced() {
		return 0
	}
	return max(leastRate, float64(c.Users)*float64(c.Repeat)/watchedFor.Seconds())
}

// tail is where the wave is cut, in times of its crest: after it 4 of 100 would come.
const tail = 5

// wave returns when each of all claims is sent, as a crowd comes that heard of a drop: more and more, and then a long tail. The crest
// is at a fifth of the time; nil: rate says it.
func (c *demoCmd) wave() func(n int64) time.Duration {
	if c.rate() == 0 {
		return nil
	}
	all := float64(c.Users) * float64(c.Repeat)
	span := all / c.rate() / tail // in seconds, until the crest
	return func(n int64) time.Duration {
		came := (float64(n) + .5) / all * cameBy(tail)
		low, high := 0., float64(tail)
		for range 30 {
			if middle := (low + high) / 2; cameBy(middle) < came {
				low = middle
			} else {
				high = middle
			}
		}
		return time.Duration(low * span * float64(time.Second))
	}
}

// cameBy returns the share of an endless wave that has come by an instant, in times of its crest.
func cameBy(at float64) float64 { return 1 - (1+at)*math.Exp(-at) }
