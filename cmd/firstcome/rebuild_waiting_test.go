//go:build !check

package main

import (
	"errors"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A waitingChange is a change that the ledger has numbered, and that the gate lacks when it is rebuilt.
type waitingChange struct {
	name    string
	number  func(d *desk) (version int64, err error)
	refused bool
	fresh   int      // how many of a hundred new users are issued coupons afterwards
	rest    string   // the answer to the other new users
	users   []string // the answers to users 0, 5 and 6, who have a coupon, a dead letter, and a coupon that only the gate had
}

var waitingChanges = []waitingChange{
	{name: "a pause", number: switches(firstcome.ChangePause), rest: "paused:0"},
	{name: "a close", number: switches(firstcome.ChangeClose), rest: "closed:0"},
	{name: "a raise", number: quantities(105), fresh: 98, rest: "sold_out:0"},
	{name: "a lowering to what is in force", number: quantities(7), rest: "sold_out:0"},
	{name: "a lowering that an open dead letter forbids", number: quantities(6), refused: true, fresh: 93, rest: "sold_out:0"},
	{
		name: "a void", fresh: 94, rest: "sold_out:0", users: []string{"sold_out:0", "already_issued:6", "already_issued:7"},
		number: func(d *desk) (int64, error) {
			_, err := d.ledger.Campaigns.Void(d.t.Context(), "op", "c", 1, "a trial")
			return d.status().Version, err
		},
	},
}

func switches(to firstcome.ChangeKind) func(*desk) (int64, error) {
	return func(d *desk) (int64, error) { return d.ledger.Campaigns.ChangeState(d.t.Context(), "op", "c", 0, to) }
}

func quantities(to int64) func(*desk) (int64, error) {
	return func(d *desk) (int64, error) {
		return d.ledger.Campaigns.SetTerms(d.t.Context(), "op", "c", 0, func(t *firstcome.Terms) { t.Quantity = to })
	}
}

// TestF20AChangeThatWaitsIsDoneByARebuild lets a node die after it has numbered a change. The gate is frozen and rebuilt without the change. In force are
// five recorded coupons, a dead letter, and a coupon that only the journal has.
func TestF20AChangeThatWaitsIsDoneByARebuild(t *testing.T) {
	for _, w := range waitingChanges {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			ledgers(t, func(t *testing.T, name string) {
				d := newDesk(t, services.Redis.Database(t), name, nil, "c")
				coupons := d.issue("c", people("user-", 7)...)
				d.settle(d.record(coupons[:5]...))
				d.bury(coupons[5])
				before := d.status()
				version, err := w.number(d)
				stage.Must(t, err)
				pending, err := d.ledger.Campaigns.Pending(t.Context(), "c")
				if err != nil || len(pending) != 1 || pending[0].Version != version {
					t.Fatalf("%+v wait, %v", pending, err)
				}

				stage.Same(t, "the epoch", int64(2), d.rebuilt(d.rebuilder()).Epoch)
				left, err := d.ledger.Campaigns.Pending(t.Context(), "c")
				refusal, err2 := d.ledger.Campaigns.Refusal(t.Context(), "c", version)
				if err := errors.Join(err, err2); err != nil || len(left) > 0 || (refusal != nil) != w.refused {
					t.Errorf("%+v wait, refused %v, %v", left, refusal, err)
				}
				s := d.status()
				want := version + 2 // the rebuild, and the terms that skip the lost numbers
				if s.Closed {
					want = version + 1
				}
				stage.Same(t, "the version, and that of the gate", []int64{want, want}, []int64{s.Version, s.Applied})
				if w.refused && s.Quantity != before.Quantity {
					t.Errorf("a quantity that was refused is %d", s.Quantity)
				}
				// Another node has read the change before the rebuild, and applies it now.
				changer := gate.NewChanger(d.ledger.Campaigns, &gate.Router{Gate: d.remote.gate, Retired: d.ledger.Gate, Ledger: d.ledger.Recorder}, nil)
				stage.Must(t, stage.Err(d.remote.gate.Apply(t.Context(), pending[0])))
				switch err := changer.Finish(t.Context(), "c", version); {
				case w.refused != errors.Is(err, firstcome.ErrBelowInForce), !w.refused && err != nil:
					t.Errorf("the waiting operator gets %v", err)
				}

				fresh, rest := 0, map[string]bool{}
				for _, answer := range d.claims(people("new-", 100)...) {
					if answer[:len("issued")] == "issued" {
						fresh++
					} else {
						rest[answer] = true
					}
				}
				stage.Same(t, "how many are issued coupons, and what the others hear", map[string]bool{w.rest: true}, rest)
				stage.Same(t, "how many are issued coupons", w.fresh, fresh)
				if w.users == nil {
					w.users = []string{"already_issued:1", "already_issued:6", "already_issued:7"}
				}
				stage.Same(t, "who had coupons", w.users, d.claims("user-0", "user-5", "user-6"))
			})
		})
	}
}
