//go:build !check && (!race || soak)

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// forgets deletes the holder of a coupon at the gate, and lowers the gate's count.
func (d *desk) forgets(user firstcome.UserID) {
	d.t.Helper()
	d.has("in_force", "9")
	d.do("HDEL", d.key("holders"), string(user))
}

// TestF04WhatARestartDoesNotProveToBeWholeIsRebuilt deletes data from a Redis that syncs before it answers, and restarts it. The ledger has coupons 1 to 3
// and 10, and 4 as a dead letter; the journal has the others. The campaign has a line, and is paused.
func TestF04WhatARestartDoesNotProveToBeWholeIsRebuilt(t *testing.T) {
	t.Parallel()
	hash := func(fields ...string) func(d *desk) { return func(d *desk) { d.has(fields...) } }
	waits := func(d *desk, fields ...string) {
		stage.Must(d.t, stage.Err(d.ledger.Campaigns.SetTerms(d.t.Context(), "op", "c", 0, func(t *firstcome.Terms) { t.Quantity = 200 })))
		d.has(fields...)
	}
	for name, lose := range map[string]func(d *desk){
		"an entry of the journal": func(d *desk) { d.do("XTRIM", d.key("journal"), "MAXLEN", "1") },
		"the latest coupon": func(d *desk) {
			d.forgets("user-9")
			d.has("last_number", "9", "issued", "9")
		},
		"a holder":                      func(d *desk) { d.forgets("user-0") },
		"the holder of a dead letter":   func(d *desk) { d.forgets("user-3") },
		"a count":                       hash("in_force", "9"),
		"a holder's coupon":             func(d *desk) { d.do("HSET", d.key("holders"), "user-0", "seventeen bytes!!") },
		"a pause":                       hash("paused", "0"),
		"a pause, and a change waits":   func(d *desk) { waits(d, "paused", "0") },
		"that it is open":               hash("closed", "1"),
		"that, and a change waits":      func(d *desk) { waits(d, "closed", "1") },
		"a change":                      hash("version", "2", "paused", "0"),
		"a quantity":                    hash("quantity", "1000"),
		"when it opens":                 hash("opens_at", "1"),
		"when it closes":                hash("closes_at", "4102444800000000"),
		"a pace":                        hash("line", "1 0 0 0 0 0 6 1"),
		"that there is a pace":          hash("line", "1 0 0 0 0 0 - 1"),
		"who stands by":                 hash("line", "1 0 0 0 0 0 5 0"),
		"its line":                      func(d *desk) { d.do("HDEL", d.key("campaign"), "line") },
		"its latest instants":           hash("decided_at", "1"),
		"nothing, but it had a replica": nil,
		"nothing":                       func(*desk) {},
		"nothing, and a change waits":   func(d *desk) { waits(d, "paused", "1") },
		"nothing, and the end of its pause waits": func(d *desk) {
			stage.Must(d.t, stage.Err(d.ledger.Campaigns.ChangeState(d.t.Context(), "op", "c", 0, firstcome.ChangeResume)))
		},
		"nothing, and its close waits": func(d *desk) {
			stage.Must(d.t, stage.Err(d.ledger.Campaigns.ChangeState(d.t.Context(), "op", "c", 0, firstcome.ChangeClose)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := services.Redis.Server(t, "--appendfsync", "always")
			d := newDesk(t, server.URL(), services.Ledgers[services.SQLite](t), nil, "c")
			r := d.watch()
			var coupons []firstcome.Coupon
			for _, user := range people("user-", 10) {
				coupons = append(coupons, d.issue("c", user)...)
			}
			d.settle(d.record(append(coupons[:3:3], coupons[9])...))
			d.bury(coupons[3])
			d.terms(func(t *firstcome.Terms) { t.Pace, t.Waitlist = &firstcome.Pace{PerSecond: 5}, true })
			d.turn(firstcome.ChangePause)
			if lose == nil {
				stage.Must(t, stage.Err(services.Beside(t, d.name).Exec(`UPDATE gate_runs SET durable = FALSE`)))
			} else {
				lose(d)
			}
			stage.Must(t, server.Kill())
			stage.Must(t, server.Restart(t.Context()))
			want := recovery.Stats{Finished: 1}
			if strings.HasPrefix(name, "nothing") && lose != nil {
				want = recovery.Stats{Verified: 1}
			}
			got := d.decides(r)
			got.Lost = 0
			stage.Same(t, "what became of the gate", want, got)
			stage.Same(t, "the epoch", 1+want.Finished, d.status().Epoch)
			stage.Same(t, "who holds a recorded coupon, or a dead letter", []string{"already_issued:1", "already_issued:10", "already_issued:4", "paused:0"},
				d.claims("user-0", "user-9", "user-3", "new"))
		})
	}
}

// TestF04AVerdictOfAnotherStateIsNotTaken verifies a gate that another run decided last, and notes the verdict after the gate has changed.
func TestF04AVerdictOfAnotherStateIsNotTaken(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
	d.issue("c", people("user-", 3)...)
	d.has("run", "another")
	active, err := d.ledger.Recorder.Active(t.Context())
	stage.Must(t, err)
	verified, err := d.remote.gate.recovery.GateState(t.Context(), active[0])
	stage.Must(t, err)
	refused := func(what string, verdict recovery.GateState) {
		t.Helper()
		if err := d.remote.gate.recovery.Verified(t.Context(), active[0], verdict); !errors.Is(err, recovery.ErrMoved) {
			t.Errorf("%s: the verdict is answered %v", what, err)
		}
		d.needs(gate.ErrUnverified)
	}
	for what, edit := range map[string]func(*recovery.GateState){
		"another run decided last": func(s *recovery.GateState) { s.Was = "yet another" },
		"another run is asked":     func(s *recovery.GateState) { s.Is = s.Was },
		"another epoch":            func(s *recovery.GateState) { s.Epoch++ },
		"another version":          func(s *recovery.GateState) { s.Version-- },
		"another number":           func(s *recovery.GateState) { s.LastNumber-- },
	} {
		other := verified
		edit(&other)
		refused(what, other)
	}
	d.has("frozen", "1")
	refused("a rebuild has begun", verified)
	d.do("HDEL", d.key("campaign"), "frozen")
	stage.Must(t, d.remote.gate.recovery.Verified(t.Context(), active[0], verified))
	stage.Same(t, "the next one", []string{"issued:4"}, d.claims("new"))
}
