//go:build !check

package main

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// farTime returns the time of the gate's clock, which advances by itself.
func (w *walker) farTime() time.Time {
	w.farNow = w.farNow.Add(time.Duration(w.rand.IntN(100)) * time.Millisecond)
	return w.farNow
}

func (w *walker) farIssue() {
	user := firstcome.UserID(fmt.Sprint("u", w.rand.IntN(12)))
	decisions, err := w.far.Claim(w.t.Context(), w.id, []firstcome.UserID{user})
	if !errors.Is(err, firstcome.ErrNoCampaign) { // the gate does not have the campaign yet
		stage.Must(w.t, err)
		w.said("far claim of %s: %v", user, decisions[0].Outcome)
	}
}

// farRecord records some of the journal's coupons, or makes dead letters of them.
func (w *walker) farRecord() {
	g := w.far.Course(w.id)
	if g == nil || len(g.Journal) == 0 {
		return
	}
	k := w.rand.IntN(len(g.Journal))
	c := g.Journal[k]
	var err error
	var drained record.Result
	b := record.Batch{Campaign: w.id, Epoch: 1, Coupons: []firstcome.Coupon{c}}
	if w.rand.IntN(5) == 0 {
		drained, err = w.Recorder.Bury(w.t.Context(), b, "a trial")
	} else {
		drained, err = w.Recorder.Record(w.t.Context(), b)
	}
	stage.Must(w.t, err)
	w.said("record %d: %d", c.Number, drained.Through)
	w.far.Settle(w.id, drained)
	g.Journal = slices.Delete(g.Journal, k, k+1)
}

// farApply applies the changes that the gate lacks.
func (w *walker) farApply() {
	pending, err := w.Campaigns.Pending(w.t.Context(), w.id)
	stage.Must(w.t, err)
	for _, c := range pending {
		refused, err := w.far.Apply(w.t.Context(), c)
		stage.Must(w.t, err)
		w.said("far apply %d %s, refused %v", c.Version, c.Kind, refused)
		stage.Must(w.t, w.Campaigns.Applied(w.t.Context(), c, refused))
	}
}

// farLetters replays and voids some dead letters, or all.
func (w *walker) farLetters(all bool) {
	letters, err := w.Reads.DeadLetters(w.t.Context(), ledger.Letters{Campaign: w.id})
	stage.Must(w.t, err)
	for _, d := range letters {
		if !all && w.rand.IntN(3) > 0 {
			continue
		}
		if w.rand.IntN(2) == 0 {
			err = w.Recorder.Replay(w.t.Context(), "op", d.ID)
		} else {
			err = w.Recorder.VoidLetter(w.t.Context(), "op", d.ID, "gone")
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
		_, err := w.Campaigns.Void(ctx, "op", w.id, k, "sold")
		w.said("void %d: %v", k, err)
		w.allowed(err)
	case n == 17:
		_, err := w.Campaigns.ChangeState(ctx, "op", w.id, 0, []firstcome.ChangeKind{firstcome.ChangePause, firstcome.ChangeResume}[w.rand.IntN(2)])
		w.allowed(err)
	default:
		q := w.rand.Int64N(9)
		_, err := w.Campaigns.SetTerms(ctx, "op", w.id, 0, func(t *firstcome.Terms) { t.Quantity = q })
		w.said("quantity %d: %v", q, err)
		w.allowed(err)
	}
}

// farEnd closes the campaign, and retires it when all of it is drained.
func (w *walker) farEnd() {
	w.farApply()
	_, err := w.Campaigns.ChangeState(w.t.Context(), "op", w.id, 0, firstcome.ChangeClose)
	stage.Must(w.t, err)
	w.farApply()
	for len(w.far.Course(w.id).Journal) > 0 {
		w.farRecord()
	}
	w.farLetters(true)
	w.now = w.now.Add(time.Minute)
	w.farNow = w.now
	state, err := w.far.State(w.t.Context(), w.id)
	stage.Must(w.t, err)
	retired, err := w.Epochs.Retire(w.t.Context(), w.id, state, 0)
	stage.Must(w.t, err)
	if !retired {
		w.t.Fatalf("not retired: %+v %q", state, w.log)
	}
}

// TestTheAuditFindsNoBreachWhateverTheOrderAtAGateFarAway audits after every few steps of a random walk with a gate beside the ledger. The gate has its
// own clock. Coupons reach the ledger late, in any order, or as dead letters, and changes wait for the gate.
func TestTheAuditFindsNoBreachWhateverTheOrderAtAGateFarAway(t *testing.T) {
	t.Parallel()
	w := newWalker(t)
	name := services.Ledgers[services.SQLite](t)
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
			_, err := w.Campaigns.Void(t.Context(), "op", w.id, 1, "late")
			w.allowed(err)
			w.sound(reader)
			w.farApply()
			w.sound(reader)
		}
	})
}

// farBegin creates a campaign at a gate whose clock is up to two seconds ahead of the ledger's, or behind.
func (w *walker) farBegin(round int) {
	w.far = stage.NewGate(0)
	w.far.Clock, w.farNow = w.farTime, w.now.Add(time.Duration(w.rand.IntN(4000)-2000)*time.Millisecond)
	w.begin(round, firstcome.Terms{Quantity: w.rand.Int64N(6)})
}
