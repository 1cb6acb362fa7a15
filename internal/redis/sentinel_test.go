//go:build !check

package redis_test

import (
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF02AGateThatDidNotHearSentinelFindsThePrimaryAllTheSame makes Sentinel name another primary without a message to its clients. The old primary
// goes on, so no connection ends.
func TestF02AGateThatDidNotHearSentinelFindsThePrimaryAllTheSame(t *testing.T) {
	pair, at := services.SentinelPair(t)
	g := open(t, at)
	run := func() string {
		runs, err := g.Runs(t.Context())
		if err != nil || len(runs) != 1 {
			return "" // the primary is about to change
		}
		return runs[0].ID
	}
	before := run()
	stage.Must(t, pair.Promote(t.Context()))
	stage.Must(t, pair.Rename(t.Context()))
	stage.Await(t, "another server", true, func() bool { now := run(); return now != "" && now != before })
}
