package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A farGate is a gate beside the ledger on a page: it issues while it has stock, and takes changes when it is told.
type farGate struct {
	flow.GateState
	quantity int64
	terms    int64
	holders  map[firstcome.UserID]int64
	journal  []firstcome.Coupon
}

// farTime is the clock of the gate, which goes on by itself.
func (w *walker) farTime() time.Time {
	w.far.Now = w.far.Now.Add(time.Duration(w.rand.IntN(100)) * time.Millisecond)
	return w.far.Now
}

func (w *walker) farIssue() {
	g, user := w.far, firstcome.UserID(fmt.Sprint("u", w.rand.IntN(12)))
	if g.Version == 0 || g.holders[user] > 0 || !g.ClosedAt.IsZero() {
		return
	}
	at := w.farTime()
	if g.OpenedAt.IsZero() {
		g.OpenedAt = at
	}
	if g.InForce >= g.quantity {
		return
	}
	g.LastNumber++
	g.InForce++
	if g.InForce >= g.quantity {
		g.SoldOutAt = at
	}
	g.holders[user] = g.LastNumber
	g.journal = append(g.journal, firstcome.Coupon{
		Campaign: w.id, Number: g.LastNumber, User: user, Code: plantSecret.Code(w.id, g.LastNumber), IssuedAt: at, TermsVersion: g.terms,
	})
	w.said("far issue %d to %s", g.LastNumber, user)
}

// farRecord records or buries some of what is in the journal.
func (w *walker) farRecord() {
	g := w.far
	if len(g.journal) == 0 {
		return
	}
	k := w.rand.IntN(len(g.journal))
	c := g.journal[k]
	var err error
	var drained flow.Drained
	b := flow.Batch{Campaign: w.id, Epoch: 1, Coupons: []firstcome.Coupon{c}}
	if w.rand.IntN(5) == 0 {
		drained, err = w.Bury(w.t.Context(), b, "a trial")
	} else {
		drained, err = w.Record(w.t.Context(), b)
	}
	w.must(err)
	w.said("record %d: %d", c.Number, drained.Through)
	g.DrainedThrough = max(g.DrainedThrough, drained.Through)
	g.journal = slices.Delete(g.journal, k, k+1)
}

// farApply brings the gate what it lacks.
func (w *walker) farApply() {
	pending, err := w.Pending(w.t.Context(), w.id)
	w.must(err)
	for _, c := range pending {
		g := w.far
		at := w.farTime()
		refused := c.Kind == firstcome.ChangeTerms && c.Version > 1 && c.Terms.Quantity < g.InForce
		g.Version = c.Version
		switch {
		case refused:
		case c.Kind == firstcome.ChangeTerms:
			g.quantity, g.terms = c.Terms.Quantity, c.Version
			if g.InForce < g.quantity {
				g.SoldOutAt = time.Time{}
			} else if g.SoldOutAt.IsZero() {
				g.SoldOutAt = at
			}
		case c.Kind == firstcome.ChangeClose:
			g.ClosedAt = at
		case c.Kind == firstcome.ChangeVoid && g.holders[c.User] == c.Number:
			delete(g.holders, c.User)
			g.InForce--
			g.SoldOutAt = time.Time{}
		}
		w.said("far apply %d %s, refused %v", c.Version, c.Kind, refused)
		w.must(w.Applied(w.t.Context(), c, refused))
	}
}

// farLetters replays and voids some dead letters, or all.
func (w *walker) farLetters(all bool) {
	letters, err := w.DeadLetters(w.t.Context(), ledger.Letters{Campaign: w.id})
	w.must(err)
	for _, d := range letters {
		if !all && w.rand.IntN(3) > 0 {
			continue
		}
		if w.rand.IntN(2) == 0 {
			err = w.Replay(w.t.Context(), "op", d.ID)
		} else {
			_, err = w.VoidLetter(w.t.Context(), "op", d.ID, "gone")
		}
		w.said("letter %d of %d: %v", d.ID, d.Number, err)
		w.allowed(err)
		if all {
			w.farApply()
		}
	}
}

func (w *walker) farStep() {
	ctx := w.t.Context()
	switch n := w.rand.IntN(20); {
	case n < 7:
		w.farIssue()
	case n < 11:
		w.farRecord()
	case n < 14:
		w.farApply()
	case n == 14:
		w.farLetters(false)
	case n < 17:
		k := 1 + w.rand.Int64N(12)
		_, err := w.Void(ctx, "op", w.id, k, "sold")
		w.said("void %d: %v", k, err)
		w.allowed(err)
	case n == 17:
		_, err := w.Switch(ctx, "op", w.id, []ledger.Switch{ledger.Pause, ledger.Resume}[w.rand.IntN(2)])
		w.allowed(err)
	default:
		q := w.rand.Int64N(9)
		_, err := w.SetTerms(ctx, "op", w.id, 0, func(t *firstcome.Terms) { t.Quantity = q })
		w.said("quantity %d: %v", q, err)
		w.allowed(err)
	}
}

// farEnd closes the campaign, and retires it when all of it is drained.
func (w *walker) farEnd() {
	w.farApply()
	_, err := w.Switch(w.t.Context(), "op", w.id, ledger.Close)
	w.must(err)
	w.farApply()
	for len(w.far.journal) > 0 {
		w.farRecord()
	}
	w.farLetters(true)
	w.now = w.now.Add(time.Minute)
	w.far.Now = w.now
	retired, err := w.Retire(w.t.Context(), w.id, w.far.GateState, 0)
	w.must(err)
	if !retired {
		w.t.Fatalf("not retired: %+v %q", w.far.GateState, w.log)
	}
}

// TestTheAuditFindsNoBreachWhateverTheOrderAtAGateFarAway audits behind every few steps of a walk of a gate beside the
// ledger, whose clock is another one: coupons come late, in any order, and as dead letters, and changes wait for the gate.
func TestTheAuditFindsNoBreachWhateverTheOrderAtAGateFarAway(t *testing.T) {
	w := newWalker(t)
	name, _ := newLedgerOn(t, "sqlite")
	w.as(name, "redis:far", func() {
		reader := readable(t, name)
		for round := range 20 {
			w.farBegin(round)
			for range 10 {
				for range 6 {
					w.farStep()
				}
				w.sound(reader)
			}
			w.farEnd()
			w.sound(reader)
			_, err := w.Void(t.Context(), "op", w.id, 1, "late")
			w.allowed(err)
			w.sound(reader)
			w.farApply()
			w.sound(reader)
		}
	})
}

// farBegin makes a campaign at a gate whose clock is up to two seconds before or behind the ledger's.
func (w *walker) farBegin(round int) {
	w.far = &farGate{holders: map[firstcome.UserID]int64{}}
	w.far.Epoch, w.far.Now = 1, w.now.Add(time.Duration(w.rand.IntN(4000)-2000)*time.Millisecond)
	w.begin(round, firstcome.Terms{Quantity: w.rand.Int64N(6)})
}
