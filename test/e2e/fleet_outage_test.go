//go:build linux && !check

package e2e_test

import (
	"slices"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF49F53ADatabaseThatIsDownInMidSpikeLosesNothing kills the ledger's database while users claim, and starts it again once clients and recorders notice.
// With a gate of its own a campaign that is answered when decided goes on; one that is answered when recorded is unknown until
// the database is back. Then the backlog drains. In a soak it is down for a minute, on every set-up.
func TestF49F53ADatabaseThatIsDownInMidSpikeLosesNothing(t *testing.T) {
	for _, o := range []trial{{postgreSQL, firstcome.Recorded}, {redisOfMariaDB, firstcome.Recorded}, {redisOfPostgreSQL, firstcome.Decided}} {
		t.Run(o.name+", answered when "+string(o.answer), func(t *testing.T) {
			t.Parallel()
			aDatabaseThatIsDown(t, o, func() {})
		})
	}
}

// aDatabaseThatIsDown has the database down until clients and recorders notice, and then for as long as down takes.
func aDatabaseThatIsDown(t *testing.T, o trial, down func()) {
	d := o.deploy(t, "--answer-wait", "1s") // a claim that waits for the ledger is unknown before it is back
	d.create("spring", 10_000_000, o.answer)
	crowd := newCrowd("spring")
	stop := d.claimUntil(crowd, 8)
	defer stop()
	crowd.awaitAnswers(t, 100)
	stage.Must(t, d.ledger.Kill())
	if o.answer == firstcome.Decided {
		crowd.awaitAnswers(t, 100)
	} else {
		told := len(crowd.unknown())
		waitFor(t, "claims with an unknown outcome", func() bool { return len(crowd.unknown()) > told+8 })
	}
	// A recorder that the database left before it knew of the campaign has nothing to record.
	waitFor(t, "a recorder that tries again", func() bool {
		return len(d.recorders) == 0 || slices.ContainsFunc(d.recorders, func(p *process) bool { return p.metric("firstcome_record_retries_total") > 0 })
	})
	down()
	stage.Must(t, d.ledger.Restart(t.Context()))
	d.catchesUp("spring")
	crowd.awaitAnswers(t, 100)
	stop()
	d.drained("spring")
	d.verdict(crowd)
}

// catchesUp waits until the ledger has all that is issued by now, while more is.
func (f *fleet) catchesUp(id string) {
	f.t.Helper()
	issued := int64(0)
	waitFor(f.t, "the campaign's counters", func() bool {
		c, err := f.node(0).calls.Campaign(f.t.Context(), id)
		if err != nil || c.Issued == nil {
			return false
		}
		issued = *c.Issued
		return true
	})
	f.recorded(id, issued)
}
