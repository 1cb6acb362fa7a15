package conform

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
)

// agree walks at random over one campaign after the other.
func agree(t *testing.T, s Subject) {
	campaigns := 0
	seed.Check(t, func(r *rapid.T) {
		campaigns++
		id := firstcome.CampaignID(fmt.Sprintf("walk-%d", campaigns))
		w := begin(t.Context(), r, s, id)
		steps := map[string]func(*rapid.T){
			"claim": w.claim, "clock": w.clock, "quantity": w.quantity, "window": w.window, "prizes": w.prizes, "turn": w.turn, "void": w.void, "": w.same,
		}
		if k, ok := s.(Killable); ok {
			steps["kill"] = func(r *rapid.T) { kill(r, k) }
		}
		r.Repeat(steps)
	})
}

// A walk is a campaign in the model and in the subject.
type walk struct {
	ctx context.Context
	s   Subject
	m   *model
}

func begin(ctx context.Context, r *rapid.T, s Subject, id firstcome.CampaignID, edit ...func(*firstcome.Terms)) *walk {
	terms := firstcome.Terms{
		Name: "walk", Answer: firstcome.Recorded, Benefit: []byte(`{}`),
		Quantity: rapid.SampledFrom([]int64{0, 1, 2, 5, firstcome.Unlimited}).Draw(r, "quantity"),
	}
	if rapid.Bool().Draw(r, "opens") {
		terms.OpensAt = Epoch.Add(10 * time.Second)
	}
	if rapid.Bool().Draw(r, "closes") {
		terms.ClosesAt = Epoch.Add(30 * time.Second)
	}
	for _, e := range edit {
		e(&terms)
	}
	s.SetClock(Epoch)
	if err := s.Create(ctx, id, terms); err != nil {
		r.Fatal(err)
	}
	return &walk{ctx, s, newModel(id, terms, Epoch, quarantineFor(s))}
}

// kill kills a subject now and then: it takes as long as fifty other steps.
func kill(r *rapid.T, s Killable) {
	if rapid.IntRange(0, 19).Draw(r, "kill if 0") > 0 {
		return
	}
	if err := s.Kill(); err != nil {
		r.Fatal(err)
	}
}

func (w *walk) claim(r *rapid.T) {
	users := rapid.SliceOfN(rapid.SampledFrom([]firstcome.UserID{"a", "b", "c", "d", "e", "f", "A", "a ", "\u00e9", "e\u0301"}), 1, 70).Draw(r, "users")
	got, err := w.s.Claim(w.ctx, w.m.ID, users)
	if err != nil {
		r.Fatal(err)
	}
	for n, user := range users {
		want, got := w.m.claim(user, false), got[n]
		if got.Outcome != want.Outcome || got.Coupon.Number != want.Coupon.Number || got.Coupon.User != want.Coupon.User || got.Coupon.TermsVersion != want.Coupon.TermsVersion ||
			!got.At.Equal(want.At) || got.Version != want.Version || got.TermsVersion != want.TermsVersion || got.InForce != want.InForce || !got.Since.Equal(want.Since) || !got.OpenedAt.Equal(want.OpenedAt) || !got.Coupon.IssuedAt.Equal(want.Coupon.IssuedAt) {
			r.Fatalf("claim %d by %q: the gate says %+v, the rule %+v", n, user, got, want)
		}
		if err := w.m.checkLease(got); err != nil {
			r.Fatalf("claim %d by %q: %s under a lease of %v: %v", n, user, got.Outcome, got.Lease, err)
		}
	}
}

// clock moves the clock, also back and also by less than the wire can show.
func (w *walk) clock(r *rapid.T) {
	at := Epoch.Add(time.Duration(rapid.Int64Range(0, 40_000_000).Draw(r, "µs")) * time.Microsecond)
	if rapid.Bool().Draw(r, "edge") {
		at = Epoch.Add(rapid.SampledFrom([]time.Duration{
			10*time.Second - time.Microsecond, 10 * time.Second, 30*time.Second - time.Microsecond, 30 * time.Second, 0,
			5*time.Second - time.Microsecond, 5 * time.Second, 20*time.Second - time.Microsecond, 20 * time.Second,
		}).Draw(r, "at"))
	}
	w.m.clock = at
	w.s.SetClock(at)
}

func (w *walk) quantity(r *rapid.T) {
	quantity := rapid.SampledFrom([]int64{0, 1, 2, 3, 5, 8, firstcome.Unlimited}).Draw(r, "quantity")
	w.setTerms(r, "quantity", func(t *firstcome.Terms) { t.Quantity = quantity })
}

// window changes when the campaign opens and closes, also to what is over, and now and then the quantity with it.
func (w *walk) window(r *rapid.T) {
	at := func(label string, offsets ...time.Duration) time.Time {
		if after := rapid.SampledFrom(append(offsets, 0)).Draw(r, label); after > 0 {
			return Epoch.Add(after)
		}
		return time.Time{} // none
	}
	quantity := w.m.Quantity
	if rapid.IntRange(0, 3).Draw(r, "with the quantity if 0") == 0 {
		quantity = rapid.SampledFrom([]int64{2, 5, firstcome.Unlimited}).Draw(r, "quantity")
	}
	opens, closes := at("opens", 5*time.Second, 10*time.Second), at("closes", 20*time.Second, 30*time.Second)
	w.setTerms(r, "window", func(t *firstcome.Terms) { t.Quantity, t.OpensAt, t.ClosesAt = quantity, opens, closes })
}

// prizes changes the prizes, or only a name (P10). The sum of their quantities is 0, so that any quantity of the campaign is allowed.
func (w *walk) prizes(r *rapid.T) {
	prizes := rapid.SampledFrom([]string{"none", "drink", "twenty", "drink=Coffee", "drink=Tea"}).Draw(r, "prizes")
	w.setTerms(r, "prizes", func(t *firstcome.Terms) { *t, _ = withPrizes(*t, prizes) })
}

func (w *walk) setTerms(r *rapid.T, what string, edit func(*firstcome.Terms)) {
	w.agrees(r, what, w.s.SetTerms(w.ctx, w.m.ID, edit), w.m.setTerms(edit))
}

func (w *walk) turn(r *rapid.T) {
	// A close ends the walk's claims, so it is rare.
	to := rapid.SampledFrom([]string{"pause", "resume", "resume", "pause", "resume", "close"}).Draw(r, "to")
	w.agrees(r, to, w.s.Change(w.ctx, w.m.ID, to), w.m.turn(to))
}

func (w *walk) void(r *rapid.T) {
	number := rapid.Int64Range(0, int64(len(w.m.coupons))+1).Draw(r, "number")
	w.agrees(r, "void", w.s.Void(w.ctx, w.m.ID, number), w.m.void(number))
}

func (w *walk) agrees(r *rapid.T, what string, got, want error) {
	if (got == nil) != (want == nil) || want != nil && !errors.Is(got, want) {
		r.Fatalf("%s: the gate says %v, the rule %v", what, got, want)
	}
}

// same checks after each step what the gate and the model have.
func (w *walk) same(r *rapid.T) {
	w.holders(r)
	kept, err := w.s.Instants(w.ctx, w.m.ID)
	if diff := cmp.Diff(w.m.Instants, kept); err != nil || diff != "" {
		r.Fatalf("the gate keeps other instants than the rule says (-rule +gate): %v\n%s", err, diff)
	}
}

// holders checks that the gate and the model have the same holders.
func (w *walk) holders(r *rapid.T) {
	seen := map[firstcome.UserID]bool{}
	version, err := w.s.Holders(w.ctx, w.m.ID, func(user firstcome.UserID) {
		if _, holds := w.m.holds[user]; !holds || seen[user] {
			r.Fatalf("the gate names the holder %q, the rule does not, or twice", user)
		}
		seen[user] = true
	})
	if err != nil {
		r.Fatal(err)
	}
	if len(seen) != len(w.m.holds) || version != w.m.Version {
		r.Fatalf("the gate has %d holders at version %d, the rule %d at %d", len(seen), version, len(w.m.holds), w.m.Version)
	}
}
