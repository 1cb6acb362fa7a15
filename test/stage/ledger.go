package stage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// A Ledger is a fake of one: it keeps in memory what gates have issued. conform.Ledger holds it to what the
// real ones do. Make one with NewLedger.
type Ledger struct {
	mu        sync.Mutex // guards what follows
	campaigns map[firstcome.CampaignID]*account
	letters   map[string]string // why, by their source or coupon
	grown     chan struct{}     // closed and made anew after each call
	Calls     int
	Widest    int     // coupons in one call
	Order     []int64 // numbers in the order in which they were recorded
	// Refused is the last refusal. A gate that keeps the promises causes none.
	Refused error
	// Before and After, if set, are called at the beginning and the end of each call, which returns their error.
	Before, After func(record.Batch) error
	// Refuses, if set, tells whether a new coupon is refused.
	Refuses func(firstcome.Coupon) bool
}

// An account is what the ledger has of a campaign.
type account struct {
	terms   firstcome.Terms
	any     bool // versions of terms, and epochs
	coupons map[int64]firstcome.Coupon
	users   map[firstcome.UserID]int64
	dead    map[int64]firstcome.UserID
	line    gate.LineState
}

// NewLedger returns a ledger with campaigns of any number of coupons.
func NewLedger(ids ...firstcome.CampaignID) *Ledger {
	l := &Ledger{campaigns: map[firstcome.CampaignID]*account{}, letters: map[string]string{}, grown: make(chan struct{})}
	l.Make(ids...)
	return l
}

// Make makes campaigns of any number of coupons, under any terms and in any epoch.
func (l *Ledger) Make(ids ...firstcome.CampaignID) {
	for _, id := range ids {
		_ = l.Create(context.Background(), id, firstcome.Terms{Quantity: firstcome.Unlimited})
		l.campaigns[id].any = true
	}
}

// Create makes a campaign.
func (l *Ledger) Create(_ context.Context, id firstcome.CampaignID, terms firstcome.Terms) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.campaigns[id] = &account{
		terms, false, map[int64]firstcome.Coupon{}, map[firstcome.UserID]int64{}, map[int64]firstcome.UserID{}, gate.LineState{View: firstcome.View{Line: firstcome.Line{Generation: 1}}},
	}
	return nil
}

// Record is record.Keeper's.
func (l *Ledger) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	return l.call(ctx, b, func(drained *record.Result) error {
		l.Widest = max(l.Widest, len(b.Coupons))
		a := l.campaigns[b.Campaign]
		if a == nil {
			return fmt.Errorf("%w: no campaign %s", record.ErrRefused, b.Campaign)
		}
		added, letters, err := l.check(b, a)
		if err != nil {
			l.Refused = err
			return err
		}
		for _, n := range slices.Sorted(maps.Keys(added)) {
			a.coupons[n], a.users[added[n].User] = added[n], n
			l.Order = append(l.Order, n)
		}
		drained.Letters = letters
		a.reported(b.Line)
		return nil
	})
}

// reported keeps what a batch says of the line: the latest, and each generation that ended once.
func (a *account) reported(r gate.LineReport) {
	if r.Line.Later(a.line.Line) {
		a.line.Line = r.Line
	}
	for _, p := range r.Past {
		if !slices.ContainsFunc(a.line.Past, func(known firstcome.PastLine) bool { return known.Generation == p.Generation }) {
			a.line.Past = slices.Insert(a.line.Past, 0, p)
		}
	}
}

// LineOf is conform.Book's.
func (l *Ledger) LineOf(_ context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.campaigns[id].line, nil
}

// check returns those of the coupons that are new, and those that are dead letters, or why these are refused.
func (l *Ledger) check(b record.Batch, a *account) (added map[int64]firstcome.Coupon, letters []firstcome.Coupon, err error) {
	added = map[int64]firstcome.Coupon{}
	users := map[firstcome.UserID]bool{}
	for _, c := range b.Coupons {
		known, old := a.coupons[c.Number]
		again, twice := added[c.Number]
		holds := a.users[c.User] > 0 || users[c.User]
		switch {
		case a.dead[c.Number] == c.User && !old:
			letters = append(letters, c)
		case old && known == c || twice && again == c:
		case l.Refuses != nil && l.Refuses(c), old, twice, holds, malformed(b.Campaign, c), !a.any && (b.Epoch != 1 || c.TermsVersion > 1):
			return nil, nil, fmt.Errorf("%w: number %d of %s is %+v, and known as %+v", record.ErrRefused, c.Number, b.Campaign, c, known)
		default:
			added[c.Number], users[c.User] = c, true
		}
	}
	if most := a.terms.Quantity; int64(len(a.coupons)+len(added)) > most {
		return nil, nil, fmt.Errorf("%w: more than %d", record.ErrRefused, most)
	}
	return added, letters, nil
}

// malformed tells whether a coupon is none of the campaign's.
func malformed(id firstcome.CampaignID, c firstcome.Coupon) bool {
	_, err := firstcome.ParseUserID(string(c.User))
	return err != nil || c.Number < 1 || c.Code == "" || c.Campaign != id || (c.Generation > 0) != (c.Ticket > 0)
}

// Bury is record.Keeper's.
func (l *Ledger) Bury(ctx context.Context, b record.Batch, cause string) (record.Result, error) {
	return l.call(ctx, b, func(drained *record.Result) error {
		for _, g := range b.Garbage {
			l.letters[g.Source] = g.Cause
		}
		a := l.campaigns[b.Campaign]
		for _, c := range b.Coupons {
			if a != nil {
				known, ok := a.coupons[c.Number]
				if ok && known == c {
					continue
				}
				if a.any || b.Epoch == 1 { // the letter of another epoch has no number
					if !ok {
						a.dead[c.Number] = c.User
					}
					drained.Letters, drained.Twice = append(drained.Letters, c), drained.Twice || ok
				}
			}
			l.letters[fmt.Sprintf("%s/%d", b.Campaign, c.Number)] = cause
		}
		if a != nil {
			a.reported(b.Line)
		}
		return nil
	})
}

func (l *Ledger) call(ctx context.Context, b record.Batch, do func(*record.Result) error) (record.Result, error) {
	l.mu.Lock()
	l.Calls++
	before, after := l.Before, l.After
	l.mu.Unlock()
	var drained record.Result
	for _, step := range []func(record.Batch) error{before, func(record.Batch) error { return l.locked(b, &drained, do) }, after} {
		if step == nil {
			continue
		}
		if err := errors.Join(ctx.Err(), step(b)); err != nil {
			return record.Result{}, err
		}
	}
	return drained, nil
}

func (l *Ledger) locked(b record.Batch, drained *record.Result, do func(*record.Result) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := do(drained)
	close(l.grown)
	l.grown = make(chan struct{})
	drained.Through, drained.LettersKnownThrough = l.through(b.Campaign), b.LettersKnownThrough
	l.tell(b.Campaign, drained)
	return err
}

// tell adds the dead letters that were not told before. mu is held.
func (l *Ledger) tell(id firstcome.CampaignID, drained *record.Result) {
	a := l.campaigns[id]
	if a == nil {
		return
	}
	for _, n := range slices.Sorted(maps.Keys(a.dead)) {
		user := a.dead[n]
		is := func(c firstcome.Coupon) bool { return c.Number == n && c.User == user }
		if n > drained.LettersKnownThrough && n <= drained.Through && !slices.ContainsFunc(drained.Letters, is) {
			drained.Letters = append(drained.Letters, firstcome.Coupon{Campaign: id, Number: n, User: user})
		}
	}
}

// Take is a record.Sink that does what a Recorder does where nothing is refused.
func (l *Ledger) Take(ctx context.Context, b record.Batch) (drained record.Result, err error) {
	garbage := record.Batch{Campaign: b.Campaign, Garbage: b.Garbage}
	if len(b.Garbage) > 0 {
		drained, err = l.Bury(ctx, garbage, "")
	}
	if err == nil && (len(b.Coupons) > 0 || len(b.Garbage) == 0 || !b.Line.Empty()) {
		drained, err = l.Record(ctx, b)
	}
	return drained, err
}

// through returns the number up to which a campaign has left the journal. mu is held.
func (l *Ledger) through(id firstcome.CampaignID) (n int64) {
	a := l.campaigns[id]
	if a == nil {
		return 0
	}
	for {
		if _, ok := a.coupons[n+1]; !ok && a.dead[n+1] == "" {
			return n
		}
		n++
	}
}

// Coupons returns a campaign's coupons by their numbers.
func (l *Ledger) Coupons(id firstcome.CampaignID) map[int64]firstcome.Coupon {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.campaigns[id]; a != nil {
		return maps.Clone(a.coupons)
	}
	return nil
}

// Letters returns why there are dead letters, by the source of garbage or as campaign/number.
func (l *Ledger) Letters() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.letters)
}

// Kept is conform.Book's.
func (l *Ledger) Kept(_ context.Context, id firstcome.CampaignID) (coupons []firstcome.Coupon, letters int, err error) {
	all := l.Coupons(id)
	for _, n := range slices.Sorted(maps.Keys(all)) {
		coupons = append(coupons, all[n])
	}
	return coupons, len(l.Letters()), nil
}

// Another is conform.Book's.
func (l *Ledger) Another() record.Keeper { return l }

// Wait waits until something holds of the ledger, and fails if anything was refused meanwhile.
func (l *Ledger) Wait(t testing.TB, what string, holds func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		l.mu.Lock()
		grown, refused := l.grown, l.Refused
		l.mu.Unlock()
		if refused != nil {
			t.Fatal(refused)
		}
		if holds() {
			return
		}
		select {
		case <-grown:
		case <-late:
			t.Fatalf("the ledger never had %s", what)
		}
	}
}

// WaitFor waits until the ledger has so many coupons of the campaign c.
func (l *Ledger) WaitFor(t testing.TB, coupons int) {
	t.Helper()
	l.Wait(t, fmt.Sprint(coupons, " coupons"), func() bool { return len(l.Coupons("c")) == coupons })
}

// WaitNumber waits until the ledger has a number of the campaign c.
func (l *Ledger) WaitNumber(t testing.TB, number int64) {
	t.Helper()
	l.Wait(t, fmt.Sprint("number ", number), func() bool { return l.Coupons("c")[number].Number == number })
}
