package sim

import (
	"context"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A kind is a kind of towns, by what else may happen in them.
type kind struct {
	putsBack bool // the ledger is restored from a backup
	logs     bool // there is a waiting line, which is logged in a topic
}

// A bug is a mistake that a test plants, to see that the schedules find it: a part of the models, or between models and packages, that is
// wrong. The product has no switch for any. The zero value, and nil, is none.
type bug struct {
	name string
	kind kind   // of the towns in which it is planted
	seed uint64 // of a schedule that has found it: where the search begins
	// stall begins questions. The node that asks the last one, after the others were asked in their order, stands still before it asks, for so
	// long that another node takes over.
	stall []string
	// script is what happens, before the calm end; nil: what the seed says.
	script script
	// models spoils them before anything happens.
	models func(*town)
	// The others return what takes the place of a part of a node.
	gate    func(*wire, gated) gated                         // what a node asks at the gate
	claims  func(*wire, gate.Decider) gate.Decider           // what its Issuer asks
	drains  func(*wire, gate.Progress) gate.Progress         // what its Waiter asks
	keeper  func(*wire, record.Keeper) record.Keeper         // what its Recorder asks
	book    func(*wire, gate.ChangeLog) gate.ChangeLog       // what its Changer asks of the ledger
	applier func(*wire, gate.Applier) gate.Applier           // and of the gate
	remade  func(*Gate) recovery.Gate                        // the gate, as its Machine asks it
	refills func(*Ledger) rebuilds                           // and the ledger
	log     func(*town, recovery.LineLogs) recovery.LineLogs // where lines are logged
	terms   func(*wire, readTerms) readTerms                 // what reads the terms of a coupon
	// heedless makes recorders settle entries of any epoch.
	heedless bool
	// deaf makes nodes keep using a gate although they know that its epoch has ended.
	deaf bool
}

// readTerms reads the terms of a campaign as of a version.
type readTerms = func(context.Context, firstcome.CampaignID, int64) (firstcome.Terms, error)

// put returns what a bug puts in the place of a part.
func put[T any](spoil func(*wire, T) T, w *wire, part T) T {
	if spoil == nil {
		return part
	}
	return spoil(w, part)
}
