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
	"github.com/firstcome/firstcome/internal/flow"
)

// A Ledger is a fake of one: it keeps in memory what gates have issued. conform.Ledger holds it to what the
// real ones do. Make one with NewLedger.
type Ledger struct {
	mu        sync.Mutex // guards what follows
	campaigns map[firstcome.CampaignID]*account
	letters   map[string]flow.DeadLetter // by their source or coupon
	grown     chan struct{}              // closed and made anew behind each call
	Calls     int
	Widest    int     // coupons in one call
	Order     []int64 // numbers in the order in which they were recorded
	// Refused is what was refused, of which a gate that keeps the promises gives nothing.
	Refused error
	// Before and After, if set, are called at the beginning and the end of each call, whose error theirs is.
	Before, After func(flow.Batch) error
	// Refuses, if set, tells of a coupon more whether it is refused.
	Refuses func(firstcome.Coupon) bool
}

// An account is what the ledger has of a campaign.
type account struct {
	terms   firstcome.Terms
	any     bool // versions of terms, and epochs
	coupons map[int64]firstcome.Coupon
	users   map[firstcome.UserID]int64
	dead    map[int64]bool
}

// NewLedger returns a ledger with campaigns of any number of coupons.
func NewLedger(ids ...firstcome.CampaignID) *Ledger {
	l := &Ledger{campaigns: map[firstcome.CampaignID]*account{}, letters: map[string]flow.DeadLetter{}, grown: make(chan struct{})}
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
	a := &account{terms, false, map[int64]firstcome.Coupon{}, map[firstcome.UserID]int64{}, map[int64]bool{}}
	for _, d := range l.letters {
		if d.Coupon.Campaign == id && d.Coupon.Number > 0 {
			a.dead[d.Coupon.Number] = true
		}
	}
	l.campaigns[id] = a
	return nil
}

// Record is flow.Keeper's.
func (l *Ledger) Record(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) (flow.Settled, error) {
	return l.call(ctx, flow.Batch{Campaign: id, Coupons: coupons}, func() error {
		l.Widest = max(l.Widest, len(coupons))
		a := l.campaigns[id]
		if a == nil {
			return fmt.Errorf("%w: no campaign %s", flow.ErrRefused, id)
		}
		added, err := l.check(id, a, coupons)
		if err != nil {
			l.Refused = err
			return err
		}
		for _, n := range slices.Sorted(maps.Keys(added)) {
			a.coupons[n], a.users[added[n].User] = added[n], n
			l.Order = append(l.Order, n)
		}
		return nil
	})
}

// check returns those of the coupons that are new, or why these are refused.
func (l *Ledger) check(id firstcome.CampaignID, a *account, coupons []firstcome.Coupon) (added map[int64]firstcome.Coupon, err error) {
	added = map[int64]firstcome.Coupon{}
	users := map[firstcome.UserID]bool{}
	for _, c := range coupons {
		known, old := a.coupons[c.Number]
		again, twice := added[c.Number]
		holds := a.users[c.User] > 0 || users[c.User]
		switch {
		case a.dead[c.Number] && !old:
		case old && sameCoupon(known, c) || twice && sameCoupon(again, c):
		case l.Refuses != nil && l.Refuses(c), old, twice, holds, malformed(id, c), !a.any && (c.Epoch != 1 || c.TermsVersion > 1):
			return nil, fmt.Errorf("%w: number %d of %s is %+v, and known as %+v", flow.ErrRefused, c.Number, id, c, known)
		default:
			added[c.Number], users[c.User] = c, true
		}
	}
	if most := a.terms.Quantity; int64(len(a.coupons)+len(added)) > most {
		return nil, fmt.Errorf("%w: more than %d", flow.ErrRefused, most)
	}
	return added, nil
}

// malformed tells whether a coupon is none of the campaign's.
func malformed(id firstcome.CampaignID, c firstcome.Coupon) bool {
	_, err := firstcome.ParseUserID(string(c.User))
	return err != nil || c.Number < 1 || c.Code == "" || c.Campaign != id
}

// sameCoupon tells whether two are the same, given once and again.
func sameCoupon(a, b firstcome.Coupon) bool {
	a.Epoch = b.Epoch
	return a == b
}

// Bury is flow.Keeper's.
func (l *Ledger) Bury(ctx context.Context, id firstcome.CampaignID, letters []flow.DeadLetter) (flow.Settled, error) {
	b := flow.Batch{Campaign: id}
	for _, d := range letters {
		b.Garbage = append(b.Garbage, d.Garbage)
	}
	return l.call(ctx, b, func() error {
		for _, d := range letters {
			key := d.Garbage.Source
			if c := d.Coupon; c.Number > 0 {
				key = fmt.Sprintf("%s/%d", id, c.Number)
				if a := l.campaigns[id]; a != nil {
					if known, ok := a.coupons[c.Number]; ok && sameCoupon(known, c) {
						continue
					} else if !ok {
						a.dead[c.Number] = true
					}
				}
			}
			l.letters[key] = d
		}
		return nil
	})
}

func (l *Ledger) call(ctx context.Context, b flow.Batch, do func() error) (flow.Settled, error) {
	l.mu.Lock()
	l.Calls++
	before, after := l.Before, l.After
	l.mu.Unlock()
	var settled flow.Settled
	for _, step := range []func(flow.Batch) error{before, func(flow.Batch) (err error) {
		settled, err = l.locked(b.Campaign, do)
		return err
	}, after} {
		if step == nil {
			continue
		}
		if err := errors.Join(ctx.Err(), step(b)); err != nil {
			return flow.Settled{}, err
		}
	}
	return settled, nil
}

func (l *Ledger) locked(id firstcome.CampaignID, do func() error) (flow.Settled, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := do()
	close(l.grown)
	l.grown = make(chan struct{})
	return flow.Settled{Through: l.through(id)}, err
}

// Take is a flow.Sink that does what a Recorder does where nothing is refused.
func (l *Ledger) Take(ctx context.Context, b flow.Batch) (settled flow.Settled, err error) {
	var letters []flow.DeadLetter
	for _, g := range b.Garbage {
		letters = append(letters, flow.DeadLetter{Garbage: g, Cause: g.Cause})
	}
	if len(letters) > 0 {
		settled, err = l.Bury(ctx, b.Campaign, letters)
	}
	if err == nil && (len(b.Coupons) > 0 || len(letters) == 0) {
		settled, err = l.Record(ctx, b.Campaign, b.Coupons)
	}
	return settled, err
}

// through returns the number up to which a campaign has left the journal. mu is held.
func (l *Ledger) through(id firstcome.CampaignID) (n int64) {
	a := l.campaigns[id]
	if a == nil {
		return 0
	}
	for {
		if _, ok := a.coupons[n+1]; !ok && !a.dead[n+1] {
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

// Letters returns the dead letters, by the source of garbage or as campaign/number.
func (l *Ledger) Letters() map[string]flow.DeadLetter {
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
func (l *Ledger) Another() flow.Keeper { return l }

// Wait waits until something holds of the ledger, and fails if anything was refused meanwhile.
func (l *Ledger) Wait(t testing.TB, what string, holds func() bool) {
	t.Helper()
	late := time.After(30 * time.Second)
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
