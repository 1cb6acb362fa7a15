package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A halting ledger's writer stands still behind the next transaction, for as long as it is told to.
type halting struct {
	*ledger.Ledger
	halt  atomic.Bool
	halts chan struct{}
	goOn  chan struct{}

	decided   atomic.Int64 // calls of Claim that were decided, in vain too
	committed []int        // how many jobs each transaction had
}

// haltingLedger must be called in a synctest bubble, and so must what it returns.
func haltingLedger(t *testing.T, path string) *halting {
	t.Helper()
	l := &halting{halts: make(chan struct{}), goOn: make(chan struct{})}
	clock := func() time.Time {
		l.decided.Add(1)
		return time.Now()
	}
	halt := func(jobs int, _ time.Duration, _ error) {
		l.committed = append(l.committed, jobs)
		if l.halt.CompareAndSwap(true, false) {
			l.halts <- struct{}{}
			<-l.goOn
		}
	}
	l.Ledger, _ = serve(t, path, ledger.Options{Clock: clock, OnCommit: halt})
	return l
}

// during has the writer stand still behind a transaction of begin while each of waiting begins, in this
// order, and returns when all are done: claims behind one another are one transaction.
func (l *halting) during(begin func(), waiting ...func()) {
	var all sync.WaitGroup
	l.halt.Store(true)
	all.Go(begin)
	<-l.halts
	for _, do := range waiting {
		all.Go(do)
		synctest.Wait() // now it waits for the writer
	}
	l.goOn <- struct{}{}
	all.Wait()
}

// TestNumberFourOfThreeIsNeitherAnsweredNorRecorded changes the row of a campaign behind the
// writer, which remembers it as it was: P1 is held against the row, in the claim's own transaction.
func TestNumberFourOfThreeIsNeitherAnsweredNorRecorded(t *testing.T) {
	t.Parallel()
	const recorded = `INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position) VALUES `
	for name, c := range map[string]struct {
		quantity int64 // before
		behind   []string
		want     string // answered to two newcomers, who come when two coupons of three are issued
	}{
		"the quantity is lower": {4, []string{`UPDATE campaigns SET quantity = 3 WHERE id = 'c'`}, "issued:3 sold_out:0"},
		"the quantity is lower by a change": {
			4,
			[]string{`UPDATE campaigns SET quantity = 3, version = 2 WHERE id = 'c'`},
			"issued:3 sold_out:0",
		},
		"nothing is left":               {4, []string{`UPDATE campaigns SET quantity = 2 WHERE id = 'c'`}, "sold_out:0 sold_out:0"},
		"more are in force":             {3, []string{`UPDATE campaigns SET in_force = 3 WHERE id = 'c'`}, "sold_out:0 sold_out:0"},
		"another has the next number":   {3, []string{`UPDATE campaigns SET in_force = 3, issued = 3, last_number = 3, position = 3 WHERE id = 'c'`}, "sold_out:0 sold_out:0"},
		"another is issued the last":    {3, []string{recorded + `('c', 3, 'z', 'x', 1, 1, 1, 3)`, `UPDATE campaigns SET in_force = 3, issued = 3, last_number = 3, position = 3 WHERE id = 'c'`}, "sold_out:0 sold_out:0"},
		"numbers were lost":             {3, []string{`UPDATE campaigns SET last_number = 7, position = 7 WHERE id = 'c'`}, "issued:8 sold_out:0"},
		"it was paused":                 {3, []string{`UPDATE campaigns SET paused = 1, version = 2 WHERE id = 'c'`}, "paused:0 paused:0"},
		"it was closed":                 {3, []string{`UPDATE campaigns SET closed = 1, version = 2 WHERE id = 'c'`}, "closed:0 closed:0"},
		"nothing, so that this is true": {3, nil, "issued:3 sold_out:0"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, others := range []int{0, 3} { // the row is written by itself, or with others
				synctest.Test(t, func(t *testing.T) { claimBehindTheWriter(t, c.quantity, c.behind, c.want, others) })
			}
		})
	}
}

// claimBehindTheWriter claims twice behind statements made beside the ledger, in one transaction with
// claims of other campaigns.
func claimBehindTheWriter(t *testing.T, quantity int64, behind []string, want string, others int) {
	path := file(t)
	l, db := haltingLedger(t, path), services.Beside(t, path)
	create(t, l.Ledger, "c", quantity)
	claim(t, l.Ledger.Gate, "c", "a", "b")
	waiting := []func(){func() { stage.Same(t, "answers", want, claim(t, l.Ledger.Gate, "c", "d", "e")) }}
	for n := range others {
		id := firstcome.CampaignID(fmt.Sprint("other-", n))
		create(t, l.Ledger, id, 3)
		waiting = append(waiting, func() { stage.Same(t, "of others", "issued:1 issued:2", claim(t, l.Ledger.Gate, id, "d", "e")) })
	}
	create(t, l.Ledger, "first", 1)
	l.during(func() { claim(t, l.Ledger.Gate, "first", "a") }, append([]func(){func() { execute(t, db, behind...) }}, waiting...)...)

	var inForce, most, coupons int
	err := db.QueryRow(`SELECT in_force, quantity, (SELECT count(*) FROM coupons WHERE campaign_id = 'c') FROM campaigns WHERE id = 'c'`).Scan(&inForce, &most, &coupons)
	if err != nil || inForce > most || coupons > 3 {
		t.Errorf("with %d others the ledger has %d coupons, %d in force of %d: %v", others, coupons, inForce, most, err)
	}
}

// TestAChangeIsMadeToTheRowThatIsThere has the row of a campaign changed behind the writer, and then
// by an operator: the counters of the file are kept.
func TestAChangeIsMadeToTheRowThatIsThere(t *testing.T) {
	path := file(t)
	l := start(t, path, nil)
	create(t, l, "c", 3)
	claim(t, l.Gate, "c", "a", "b")
	execute(t, services.Beside(t, path),
		`INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position) VALUES ('c', 3, 'z', 'x', 1, 1, 1, 3)`,
		`UPDATE campaigns SET in_force = 3, issued = 3, last_number = 3, position = 3`,
	)
	void(t, l, "c", 1)
	s, err := l.Reads.Campaign(t.Context(), "c")
	if err != nil || s.InForce != 2 || s.Issued != 3 || s.LastNumber != 3 || s.Position != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	stage.Same(t, "claims", "issued:4 sold_out:0", claim(t, l.Gate, "c", "d", "e"))
}

// TestALetterFromTheDaysOfAnotherGateLeavesTheRowAsItIs replays a dead letter that another
// gate left, behind the transaction in which the row of a campaign with its id is written.
func TestALetterFromTheDaysOfAnotherGateLeavesTheRowAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := file(t)
		before, stop := serve(t, path, ledger.Options{Gate: "redis:test"})
		bury(t, before, "there is no such campaign", stage.Coupon("c", 9))
		letter := letters(t, before, ledger.Letters{})[0].ID
		stop()

		l := haltingLedger(t, path)
		closes := time.Now().Add(time.Minute)
		terms := firstcome.Terms{Name: "Test", Quantity: 5, ClosesAt: closes, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
		stage.Must(t, l.Campaigns.Create(t.Context(), "test", "c", terms))
		create(t, l.Ledger, "other", 5)
		claim(t, l.Ledger.Gate, "c", "a", "b")
		time.Sleep(time.Minute)
		l.during(func() { claim(t, l.Ledger.Gate, "other", "a") }, func() {
			stage.Same(t, "at the end of the window", "closed:0", claim(t, l.Ledger.Gate, "c", "d")) // which writes the row
		}, func() {
			if err := l.Recorder.Replay(context.Background(), "test", letter); !errors.Is(err, firstcome.ErrGateMismatch) {
				t.Errorf("the letter was replayed: %v", err)
			}
		})
		stage.Same(t, "afterwards", "already_issued:1 closed:0", claim(t, l.Ledger.Gate, "c", "a", "e"))
		if s, err := l.Reads.Campaign(t.Context(), "c"); err != nil || s.InForce != 2 || s.LastNumber != 2 || s.Now.Before(closes) {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// TestALineIsServedAsItIsInTheRow has a line changed behind the writer, and nobody claims.
func TestALineIsServedAsItIsInTheRow(t *testing.T) {
	path := file(t)
	l, db := start(t, path, nil), services.Beside(t, path)
	paced(t, l, 9, 0)
	stage.Same(t, "joining", "waiting:0 waiting:0 waiting:0", claim(t, l.Gate, "c", "a", "b", "d"))
	execute(t, db, `UPDATE tickets SET ended_at = joined_at, outcome = 'left' WHERE ticket < 3`, `UPDATE campaigns SET waiting = 1`)
	served, err := l.Gate.Serve(t.Context(), "c", 9)
	if err != nil || len(served.Coupons) != 1 || served.Coupons[0].Ticket != 3 {
		t.Errorf("of three, two of whom left: %+v, %v", served, err)
	}
	execute(t, db, `INSERT INTO tickets (campaign_id, generation, ticket, user_id, joined_at) SELECT campaign_id, 1, 4, 'e', max(joined_at) FROM tickets`,
		`UPDATE campaigns SET last_ticket = 4, waiting = 1`)
	if served, err = l.Gate.Serve(t.Context(), "c", 9); err != nil || len(served.Coupons) != 1 || served.Coupons[0].Ticket != 4 {
		t.Errorf("of one who joined behind: %+v, %v", served, err)
	}
	keepsPlaces(t, l)
}
