//go:build linux && !check

package e2e_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A hollow is a fleet of two nodes, which also record, whose gate has nothing any more, or no room.
type hollow struct {
	*fleet
	gate  *services.Server
	proxy *services.Proxy // by which the nodes reach it
}

// A hollowing is one way to get there, and back.
type hollowing struct {
	name     string
	lose     func(d *hollow)
	mend     func(d *hollow)
	seen     [2]string // a metric that counts it, and the labels of its series
	holders  bool      // who has a coupon is still told so
	rebuilds int64
	answer   firstcome.AnswerWhen // in make test
}

var (
	lostCalls  = [2]string{"firstcome_gate_failures_total", `class="lost"`}
	fullClaims = [2]string{"firstcome_claims_total", `outcome="gate_full"`}
)

var hollowings = []hollowing{
	{
		name: "emptied", seen: lostCalls, rebuilds: 1, answer: firstcome.Recorded,
		lose: func(d *hollow) { tellRedis(d.t, d.gate.URL(), "FLUSHALL") },
		mend: func(d *hollow) {
			stage.Must(d.t, d.insist(func() error { return rebuild(d.t.Context(), d.node(0).calls, "spring", 0) }))
		},
	},
	{
		name: "another Redis at its address", seen: lostCalls, answer: firstcome.Decided,
		lose: func(d *hollow) { d.reaches(services.Redis.Server(d.t)) },
		mend: func(d *hollow) { d.reaches(d.gate) },
	},
	{
		name: "without memory", seen: fullClaims, holders: true, answer: firstcome.Recorded,
		lose: func(d *hollow) { tellRedis(d.t, d.gate.URL(), "CONFIG", "SET", "maxmemory", "1") },
		mend: func(d *hollow) { tellRedis(d.t, d.gate.URL(), "CONFIG", "SET", "maxmemory", "0") },
	},
}

func newHollow(t *testing.T, ledger services.Kind, more ...string) *hollow {
	t.Helper()
	gate := services.Redis.Server(t, "--appendfsync", "always")
	proxy, at := through(t, gate, gate.URL())
	args := append([]string{"--ledger", ledger.Database(t), "--gate", at}, more...)
	f := (&fleet{t: t, args: args, nodes: make([]*process, 2)}).open()
	f.own = args // the audit compares the gate
	return &hollow{f, gate, proxy}
}

// reaches has the nodes find a server at the gate's address.
func (d *hollow) reaches(s *services.Server) {
	d.proxy.SetUpstream(s.Address())
	d.proxy.Cut()
	d.proxy.Heal()
}

// counted returns the sum of a series of all nodes.
func (d *hollow) counted(series [2]string) (n float64) {
	for at := range d.nodes {
		n += d.node(at).series(series[0])[series[1]]
	}
	return n
}

// decided returns how many claims were sent and answered with an outcome within a span, but for those of holders who asked again.
func (c *crowd) decided(s span) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range c.claims {
		if claim.Sent >= s.from && claim.Received <= s.to && claim.Outcome != 0 && claim.Outcome != firstcome.AlreadyIssued {
			n++
		}
	}
	return n
}

// TestF05F07AGateThatHasNothingOrNoRoomIssuesNothing empties the Redis of a fleet that issues, puts another one at its address, and takes its memory
// away. Until that is mended nobody is answered anything but 503; holders are, where they are still known.
func TestF05F07AGateThatHasNothingOrNoRoomIssuesNothing(t *testing.T) {
	for _, h := range hollowings {
		t.Run(h.name+", answered when "+string(h.answer), func(t *testing.T) {
			t.Parallel()
			h.issuesNothing(t, h.answer)
		})
	}
}

func (h hollowing) issuesNothing(t *testing.T, answer firstcome.AnswerWhen) {
	d := newHollow(t, services.MariaDB)
	c := d.gather("spring", answer)
	stop := d.claimUntil(c, 4)
	defer func() { stop() }()
	c.awaitAnswers(t, 50)
	counted := d.counted(h.seen)
	h.lose(d)
	from := d.isBarren(c)
	if h.holders {
		stop()
		c.findAgain(d.start()) // a node that remembers nobody
		stop = d.claimUntil(c, 4)
	}
	to := d.isBarren(c)
	if n := c.decided(span{from, to}); n > 0 {
		t.Errorf("meanwhile %d were told that they have a coupon, or none", n)
	}
	if now := d.counted(h.seen); now <= counted {
		t.Errorf("%v counts %v, and before it was %v", h.seen, now, counted)
	}
	h.mend(d)
	c.awaitAnswers(t, 50)
	stop()
	d.proves(c, answer, 1+h.rebuilds)
}

// isBarren waits until 40 more claims were answered 503, and returns when that was.
func (d *hollow) isBarren(c *crowd) time.Duration {
	d.t.Helper()
	before := len(c.unknown())
	waitFor(d.t, "claims that are not decided", func() bool { return len(c.unknown()) > before+40 })
	unavailable(d.t, c.unknown()[before:])
	return time.Since(c.start)
}

// proves holds all answers against the ledger, and that against the gate, which is in this epoch.
func (d *hollow) proves(c *crowd, answer firstcome.AnswerWhen, epoch int64) {
	d.t.Helper()
	d.drained(c.campaign)
	d.audit()
	c.forget(d.node(1), answer)
	c.wereTrue(d.node(1))
	if at := d.ledgerState(c.campaign); at.Epoch != epoch {
		d.t.Errorf("the campaign is in epoch %d, want %d", at.Epoch, epoch)
	}
}

// TestF05AGateThatLosesKeysUnderLoadIsMadeWholeByItself deletes each of the keys of a campaign while it issues. The name of the gate
// is left, so nodes rebuild the gate, or make the journal again of its holders.
func TestF05AGateThatLosesKeysUnderLoadIsMadeWholeByItself(t *testing.T) {
	t.Parallel()
	losesKeys(t, firstcome.Decided, 3)
}

// losesKeys deletes so many keys, one after the other.
func losesKeys(t *testing.T, answer firstcome.AnswerWhen, keys int) {
	d := newHollow(t, services.MariaDB)
	c := d.gather("spring", answer)
	stop := d.claimUntil(c, 4)
	defer stop()
	epoch := int64(1)
	for turn := range keys {
		c.awaitAnswers(t, 50)
		of := "firstcome:{spring:*}:" + []string{"campaign", "holders", "journal"}[turn%3]
		found, err := tellRedis(t, d.gate.URL(), "KEYS", of).AsStrSlice()
		stage.Must(t, err)
		if len(found) != 1 {
			t.Fatalf("the keys %s are %v", of, found)
		}
		tellRedis(t, d.gate.URL(), "DEL", found[0])
		if turn%3 < 2 { // a journal is recreated of the holders
			epoch++
			waitFor(t, "the next epoch", func() bool { return d.ledgerState("spring").Epoch == epoch })
		}
	}
	c.awaitAnswers(t, 50)
	stop()
	d.proves(c, answer, epoch)
}
