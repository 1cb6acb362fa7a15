package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A walker acts as operators and claiming users, in random order, with a clock that jumps.
type walker struct {
	*scene
	rand *rand.Rand
	now  time.Time
	id   firstcome.CampaignID // of this round
	log  []string             // what was done

	far    *stage.Gate // a gate beside the ledger
	farNow time.Time
}

func newWalker(t *testing.T) *walker {
	w := &walker{scene: &scene{t: t}, rand: seed.Rand(t), now: time.Unix(1_700_000_000, 0)}
	w.scene.clock = w.tick
	return w
}

// tick is the ledger's clock, which stops, advances or goes back.
func (w *walker) tick() time.Time {
	switch w.rand.IntN(12) {
	case 0:
		w.now = w.now.Add(-time.Duration(w.rand.IntN(4000)) * time.Millisecond)
	case 1, 2, 3:
	default:
		w.now = w.now.Add(time.Duration(w.rand.IntN(200)) * time.Millisecond)
	}
	return w.now
}

// allowed ignores errors that mean a refusal.
func (w *walker) allowed(err error) {
	w.t.Helper()
	for _, known := range []error{
		firstcome.ErrNoCoupon, firstcome.ErrAlreadyVoided, firstcome.ErrClosed, firstcome.ErrBelowInForce, firstcome.ErrPending, firstcome.ErrNotRecorded,
		firstcome.ErrResolvedLetter, record.ErrRefused,
	} {
		if errors.Is(err, known) {
			return
		}
	}
	var field *firstcome.FieldError
	if err != nil && !errors.As(err, &field) {
		w.t.Fatal(err, w.log)
	}
}

// said logs a step, so that a developer can see how a breach came about.
func (w *walker) said(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...)+" at "+w.now.Format("05.000"))
}

// edge returns a time near now for the opening or closing of a window, or none.
func (w *walker) edge() time.Time {
	if w.rand.IntN(4) == 0 {
		return time.Time{}
	}
	return w.now.Add(time.Duration(w.rand.IntN(2000)-900) * time.Millisecond)
}

func (w *walker) step() {
	ctx := w.t.Context()
	switch n := w.rand.IntN(20); {
	case n < 8:
		var users []firstcome.UserID
		for range 1 + w.rand.IntN(3) {
			users = append(users, firstcome.UserID(fmt.Sprint("u", w.rand.IntN(12))))
		}
		d, err := w.Gate.Claim(ctx, w.id, users)
		stage.Must(w.t, err)
		w.said("claim %v: %v", users, d[0].Outcome)
	case n < 11:
		k := 1 + w.rand.Int64N(12)
		_, err := w.Campaigns.Void(ctx, "op", w.id, k, "sold <&>")
		w.allowed(err)
		w.said("void %d: %v", k, err)
	case n < 13:
		_, err := w.Campaigns.ChangeState(ctx, "op", w.id, 0, firstcome.ChangePause)
		w.allowed(err)
		w.said("pause")
	case n < 16:
		_, err := w.Campaigns.ChangeState(ctx, "op", w.id, 0, firstcome.ChangeResume)
		w.allowed(err)
		w.said("resume")
	case n == 16 && w.rand.IntN(8) == 0:
		_, err := w.Campaigns.ChangeState(ctx, "op", w.id, 0, firstcome.ChangeClose)
		w.allowed(err)
		w.said("close")
	default:
		_, err := w.Campaigns.SetTerms(ctx, "op", w.id, 0, func(t *firstcome.Terms) {
			switch w.rand.IntN(3) {
			case 0:
				t.Quantity = w.rand.Int64N(7)
			case 1:
				t.OpensAt = w.edge()
			default:
				t.ClosesAt = w.edge()
			}
			w.said("terms %d %v %v", t.Quantity, t.OpensAt.Format("05.000"), t.ClosesAt.Format("05.000"))
		})
		w.allowed(err)
		w.said("  %v", err)
	}
}

// begin creates the campaign of a round.
func (w *walker) begin(round int, terms firstcome.Terms) {
	w.id, w.log = firstcome.CampaignID(fmt.Sprint("c", round)), nil
	w.create(w.id, terms)
}

// sound wants the audit of the campaign to find nothing.
func (w *walker) sound(reader *ledger.Ledger) {
	w.t.Helper()
	if lines := linesOf(auditing(w.t, reader, w.id)); len(lines) > 0 {
		w.t.Fatalf("%q\n%q", lines, w.log)
	}
}

// TestTheAuditFindsNoBreachWhateverTheOrder audits after every few steps of a random walk in which the ledger decides.
func TestTheAuditFindsNoBreachWhateverTheOrder(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			w := newWalker(t)
			name := services.Ledgers[kind](t)
			w.as(name, "", func() {
				reader := readable(t, name)
				for round := range 10 {
					w.begin(round, firstcome.Terms{Quantity: w.rand.Int64N(5), OpensAt: w.edge()})
					for range 5 {
						for range 8 {
							w.step()
						}
						w.sound(reader)
					}
				}
			})
		})
	}
}
