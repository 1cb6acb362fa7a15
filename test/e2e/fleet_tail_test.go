//go:build linux && !check

package e2e_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A tail is a fleet whose gate loses the end of its append-only file.
type tail struct {
	*fleet
	gate *services.Server
}

// newTail starts two nodes, which also record.
func newTail(t *testing.T, sync string) *tail {
	t.Helper()
	gate := services.Redis.Server(t, "--appendfsync", sync)
	args := []string{"--ledger", services.MariaDB.Database(t), "--gate", gate.URL()}
	f := (&fleet{t: t, args: args, nodes: make([]*process, 2)}).open()
	f.own = args // the audit compares the gate
	return &tail{f, gate}
}

// newSilentTail starts two nodes that do not record, and two recorders.
func newSilentTail(t *testing.T, sync string) *tail {
	t.Helper()
	gate := services.Redis.Server(t, "--appendfsync", sync)
	args := []string{"--ledger", services.MariaDB.Database(t), "--gate", gate.URL()}
	f := &fleet{t: t, args: args, own: args, role: []string{"--role", "api"}, nodes: make([]*process, 2)}
	return &tail{f.open(), gate}
}

// without kills Redis, and starts it again without what it has appended behind a length. A Redis that syncs once a second may be killed before it
// has written so far.
func (d *tail) without(length int64) {
	d.t.Helper()
	stage.Must(d.t, d.gate.Kill())
	file, now, err := d.gate.Appended()
	stage.Must(d.t, err)
	if now > length {
		stage.Must(d.t, os.Truncate(file, length))
	}
	stage.Must(d.t, d.gate.Restart(d.t.Context()))
}

// appended returns how long the append-only file is.
func (d *tail) appended() int64 {
	d.t.Helper()
	_, length, err := d.gate.Appended()
	stage.Must(d.t, err)
	return length
}

// ledgerState returns what the ledger has of a campaign.
func (f *fleet) ledgerState(id string) (at client.LedgerState) {
	f.t.Helper()
	stage.Must(f.t, insist(f.t, func() (err error) {
		at, err = f.node(0).calls.Operator().LedgerState(f.t.Context(), id)
		return err
	}))
	return at
}

// eachTail runs a test for some ways to sync a file and to answer, in a soak for all.
func eachTail(t *testing.T, some []keeping, test func(t *testing.T, d *tail, answer firstcome.AnswerWhen)) {
	if soaking {
		some = keepings
	}
	for _, k := range some {
		for range rounds(1, 10) {
			t.Run(k.sync+", answered when "+string(k.answer), func(t *testing.T) {
				t.Parallel()
				test(t, newTail(t, k.sync), k.answer)
			})
		}
	}
}

// TestF04AGateThatLostTheEndOfItsFileGivesNoNumberAgain cuts the last coupons out of the file of a Redis that was killed, the last one of them
// in the middle. The ledger has them.
func TestF04AGateThatLostTheEndOfItsFileGivesNoNumberAgain(t *testing.T) {
	eachTail(t, []keeping{{"always", firstcome.Decided}, {"everysec", firstcome.Recorded}}, func(t *testing.T, d *tail, answer firstcome.AnswerWhen) {
		c := d.gather("spring", answer)
		wave := func(answers int) {
			stop := d.claimUntil(c, 4)
			defer stop()
			c.awaitAnswers(t, answers)
		}
		wave(100)
		d.drained("spring")
		kept := d.appended() + 7 // the first of what is lost is cut in its middle
		wave(100)
		d.drained("spring")
		d.without(kept)
		before := d.ledgerState("spring")
		wave(100)
		d.drained("spring")
		after := d.ledgerState("spring")
		if after.Epoch == before.Epoch || len(after.Lost) == 0 || after.LastNumber < after.Lost[0].First+after.Lost[0].Count {
			t.Errorf("behind the restart the ledger has %+v, before it had %+v", after, before)
		}
		c.findAgain(d.node(0))
		d.verdict(c)
	})
}

// TestF04NoNumberThatOnlyTheFileHadIsGivenAgain kills the recorders, and cuts all that is issued then out of the file, at the end of one coupon
// and in the middle of the next. What is left agrees with itself and with the ledger, and only the nodes know that users were answered more.
func TestF04NoNumberThatOnlyTheFileHadIsGivenAgain(t *testing.T) {
	for _, sync := range []string{"always", "everysec"} {
		for _, more := range []int64{0, 7} {
			if !soaking && (sync == "always") == (more == 0) {
				continue
			}
			for range rounds(1, 10) {
				t.Run(fmt.Sprintf("%s, cut %d bytes after the last coupon that is recorded", sync, more), func(t *testing.T) {
					t.Parallel()
					d := newSilentTail(t, sync)
					c := d.gather("spring", firstcome.Decided)
					wave := func(answers int) {
						stop := d.claimUntil(c, 4)
						defer stop()
						c.awaitAnswers(t, answers)
					}
					wave(100)
					d.drained("spring")
					for _, r := range d.recorders {
						r.kill()
					}
					kept := d.appended() + more
					wave(100)
					before, last := d.ledgerState("spring"), c.lastNumber()
					d.without(kept)
					wave(100)
					for n := range d.recorders {
						d.recorders[n] = d.start("--role", "recorder")
					}
					d.drained("spring")
					after := d.ledgerState("spring")
					if after.Epoch != 2 || len(after.Lost) != 1 || after.Lost[0].First != before.LastNumber+1 || last >= after.Lost[0].First+after.Lost[0].Count {
						t.Errorf("number %d was answered; after the restart the ledger has %+v, before it had %+v", last, after, before)
					}
					d.audit()
					c.forget(d.node(0), firstcome.Decided)
					c.wereTrue(d.node(0))
				})
			}
		}
	}
}

// lastNumber returns the highest number that anybody was answered.
func (c *crowd) lastNumber() (last int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range c.claims {
		last = max(last, claim.Number)
	}
	return last
}

// TestF04APauseHoldsThoughTheGateForgetsIt cuts a pause that was answered out of the file of a Redis that was killed.
func TestF04APauseHoldsThoughTheGateForgetsIt(t *testing.T) {
	eachTail(t, []keeping{{"always", firstcome.Recorded}, {"everysec", firstcome.Decided}}, func(t *testing.T, d *tail, answer firstcome.AnswerWhen) {
		c := d.gather("spring", answer)
		stop := d.claimUntil(c, 4)
		c.awaitAnswers(t, 100)
		stop()
		d.drained("spring")
		kept := d.appended()
		o := &operator{f: d.fleet, crowd: c}
		_, paused := o.do(o.pause)
		d.without(kept)

		stop = d.claimUntil(c, 4)
		defer stop()
		asked := c.asked()
		waitFor(t, "claims that are refused", func() bool {
			_, refused := c.issuedIn(span{paused, time.Since(c.start)})
			return refused > 20 && c.asked() > asked
		})
		sent, resumed := o.do(o.resume)
		if issued, _ := c.issuedIn(span{paused, sent}); issued > 0 {
			t.Errorf("%d were issued coupons behind the answer to a pause", issued)
		}
		o.issuing(resumed)
		stop()
		d.drained("spring")
		d.verdict(c)
	})
}
