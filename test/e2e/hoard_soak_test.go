//go:build linux && soak && !race

package e2e_test

import (
	"testing"
	"time"
)

// TestF30TwentyThousandIdleConnectionsKeepNobodyOut has so many at a server by its default, and at one that may have them all.
func TestF30TwentyThousandIdleConnectionsKeepNobodyOut(t *testing.T) {
	const most = 5 * time.Second
	hoarders{connections: 20_000, rooms: []int{8192, 20_000}, slowest: func(c *crowd, of span) {
		if slowest := c.longestIn(of); slowest > most {
			t.Errorf("healthy claims took up to %v, want at most %v", slowest, most)
		}
	}}.keepNobodyOut(t)
}

// TestF30RapidResetsAgainAndAgainKeepNobodyOut has the attackers come often.
func TestF30RapidResetsAgainAndAgainKeepNobodyOut(t *testing.T) { rapidResets(t, 20) }
