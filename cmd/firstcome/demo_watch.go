package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	// watchedFor is how long the wave of users takes with --watch.
	watchedFor = 40 * time.Second
	// leastRate is the least number of users a second: a few users need no 40 s.
	leastRate = 50
	// inviteWait is how long the users wait for a browser to open the link. Then they come anyway.
	inviteWait = 5 * time.Minute
	// breath is the time between the opening of the page and the first users. The page then shows a campaign without coupons.
	breath = 2 * time.Second
)

var errInterrupted = errors.New("interrupted: the temporary ledger is removed")

// demoLink returns the URL of the demo's campaign in the console.
func demoLink(n *node) string { return n.consoleURL() + "/campaigns/" + demoCampaign }

// invite prints the link, and returns when a browser has opened it, or after inviteWait.
func invite(ctx context.Context, t terminal, n *node) error {
	fmt.Fprintf(t.out, "Watch it here:  %s\nThe users come when that page is open, or in %.0f minutes. Ctrl-C ends the demo.\n\n", demoLink(n), inviteWait.Minutes())
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

// rate returns how many claims are sent a second, or 0 for as many as the connections carry.
func (c *demoCmd) rate() float64 {
	if !c.Watch || c.paced() {
		return 0
	}
	return max(leastRate, float64(c.Users)/watchedFor.Seconds())
}

// tail is when the wave is cut off, in multiples of the time to its crest. 4 of 100 claims would come later.
const tail = 5

// wave returns when each claim is sent. The claims come like a crowd that heard of a drop: more and more until the crest, at a fifth of the time, then
// in a long tail. It returns nil if rate is 0.
func (c *demoCmd) wave() func(n int64) time.Duration {
	if c.rate() == 0 {
		return nil
	}
	all := float64(c.Users)
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

// cameBy returns the share of an endless wave that has come by a time, given in multiples of the time to the crest.
func cameBy(at float64) float64 { return 1 - (1+at)*math.Exp(-at) }
