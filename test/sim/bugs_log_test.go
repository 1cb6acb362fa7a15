//go:build soak

package sim

import (
	"context"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/recovery"
)

// An unminding gate is a gate with a bug: users are told their places whether or not its epoch decides and its line is logged.
type unminding struct {
	gated
	decides, bare, quiet bool
}

// Place implements gate.Places.
func (u unminding) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	place, held, err := u.gated.Place(ctx, id, user)
	if u.quiet && err != nil {
		place = firstcome.Place{}
	}
	return place, held, err
}

// Decides implements gate.Gate.
func (u unminding) Decides(ctx context.Context, id firstcome.CampaignID, epoch int64) error {
	if u.decides {
		return nil
	}
	return u.gated.Decides(ctx, id, epoch)
}

// Claim implements gate.Decider.
func (u unminding) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := u.gated.Claim(ctx, id, users)
	for n := range decisions {
		if u.bare {
			decisions[n].Place.Log = nil
		}
	}
	return decisions, err
}

// A mislaid log is a log with a bug in appending or reading.
type mislaid struct {
	recovery.LineLogs
	hasty bool                           // who appends does not wait
	read  func(r *line.Record) (is bool) // nil: as it is
}

// Append implements line.Log.
func (m mislaid) Append(ctx context.Context, id firstcome.CampaignID, records []line.Record) error {
	if m.hasty {
		go func() { _ = m.LineLogs.Append(ctx, id, records) }()
		return nil
	}
	return m.LineLogs.Append(ctx, id, records)
}

// Read is recovery.LineLogs'.
func (m mislaid) Read(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog, end int64, each func(int64, line.Record) error) error {
	return m.LineLogs.Read(ctx, id, log, end, func(offset int64, r line.Record) error {
		if m.read == nil || m.read(&r) {
			return each(offset, r)
		}
		return nil
	})
}

func reads(read func(r *line.Record) (is bool)) func(*town, recovery.LineLogs) recovery.LineLogs {
	return func(_ *town, l recovery.LineLogs) recovery.LineLogs { return mislaid{LineLogs: l, read: read} }
}

// A forgetful ledger is a ledger with a bug in its data about a line.
type forgetful struct {
	books
	ended   bool // that generations have ended
	history func(h *recovery.LineHistory)
	voids   bool // coupons that are void
}

// LineHistory implements recovery.Ledger.
func (f forgetful) LineHistory(ctx context.Context, id firstcome.CampaignID) (recovery.LineHistory, error) {
	h, err := f.Ledger.LineHistory(ctx, id)
	if f.history != nil && h.Log != nil {
		f.history(&h)
	}
	return h, err
}

// Refills implements recovery.Ledger.
func (f forgetful) Refills(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) (recovery.Mark, error) {
	mark, err := f.books.Refills(ctx, id, func(c firstcome.Coupon) error {
		if f.voids && !c.VoidedAt.IsZero() {
			return nil
		}
		return each(c)
	})
	if f.ended {
		mark.Ended = 0
	}
	return mark, err
}

// FinishRebuild implements recovery.Ledger.
func (f forgetful) FinishRebuild(ctx context.Context, r recovery.Rebuild, loaded recovery.Loaded, frozen recovery.Frozen) (recovery.Refill, error) {
	if f.ended {
		loaded.Ended = f.Ledger.mark(f.campaigns[r.Campaign]).Ended
	}
	return f.books.FinishRebuild(ctx, r, loaded, frozen)
}

func knows(f forgetful) func(*Ledger) rebuilds {
	return func(l *Ledger) rebuilds {
		one := f
		one.Ledger = l
		return one
	}
}

func loads(change func(loaded *recovery.Loaded)) func(*Ledger) rebuilds {
	return finishes(func(_ *Ledger, _ *account, _ *recovery.Rebuild, loaded *recovery.Loaded) func() {
		if loaded.Log != nil {
			change(loaded)
		}
		return func() {}
	})
}

// A seating gate has users who had to go to the end of the line keep the ticket that another has.
type seating struct{ *Gate }

// Seat implements recovery.Gate.
func (s seating) Seat(ctx context.Context, r recovery.Rebuild, generation int64, people []recovery.Waiting) error {
	for n := 1; n < len(people); n++ {
		if people[n].User < people[n-1].User {
			people[n].Ticket = people[n-1].Ticket
		}
	}
	return s.Gate.Seat(ctx, r, generation, people)
}

// plays returns an interleaving as a script.
func plays(name string) script { return slices.Concat(stands, interleavings[name]) }

// logBugs are mistakes of a line that is logged. The numbers are those of the invariants in the package comment.
var logBugs = []bug{
	{name: "1: a place is told while it is appended", seed: 102, log: func(_ *town, l recovery.LineLogs) recovery.LineLogs { return mislaid{LineLogs: l, hasty: true} }},
	{name: "1: a place is told though its epoch may have ended", script: plays("a node stands still between join and append"), gate: func(_ *wire, g gated) gated { return unminding{gated: g, decides: true} }},
	{name: "older keys undo a change that the ledger has noted", script: plays("older keys are put back after a change that another node made"), deaf: true},
	{name: "2: it is not known where an epoch begins", script: plays("a node stands still between join and append"), refills: knows(forgetful{history: func(h *recovery.LineHistory) { h.Epochs = nil }})},
	{name: "2: an epoch that the ledger has forgotten does not count", kind: kind{putsBack: true}, script: plays("the ledger forgets an epoch"), log: func(t *town, l recovery.LineLogs) recovery.LineLogs {
		return mislaid{LineLogs: l, read: func(r *line.Record) bool {
			_, known := t.ledger.campaigns[campaign].history().Epochs[r.Epoch]
			return known
		}}
	}},
	{name: "3: only the last epoch counts", script: plays("two recoveries"), log: reads(func(r *line.Record) bool {
		r.Began = 0
		return true
	})},
	{name: "3: a generation counts that the ledger knows to have ended", seed: 5, refills: knows(forgetful{ended: true})},
	{name: "4: who left is in line", script: plays("left"), log: reads(func(r *line.Record) bool { return !r.Left })},
	{name: "4: who was served is in line once their coupon is void", seed: 46, refills: knows(forgetful{voids: true})},
	{name: "5: a ticket that two users have is both's", kind: kind{putsBack: true}, script: plays("the ledger forgets where an epoch begins, and two users have one ticket"), remade: func(g *Gate) recovery.Gate {
		return seating{g}
	}},
	{name: "6: an epoch has a number that the log knows", kind: kind{putsBack: true}, script: plays("the ledger forgets an epoch"), refills: loads(func(loaded *recovery.Loaded) { loaded.LogEpoch = 0 })},
	{name: "6: a generation has a number that the log knows", kind: kind{putsBack: true}, script: plays("the ledger forgets an epoch in which all left"), refills: loads(func(loaded *recovery.Loaded) { loaded.Carried.Generation = 0 })},
	{name: "6: a ticket has a number that somebody in line has", refills: loads(func(loaded *recovery.Loaded) { loaded.Last = loaded.First })},
	{name: "7: an epoch begins where the log does", script: plays("two recoveries"), refills: loads(func(loaded *recovery.Loaded) { loaded.Log.First = 0 })},
	{name: "4: a user is told that they left before the log says so", seed: 5517, gate: func(_ *wire, g gated) gated { return unminding{gated: g, quiet: true} }},
	{name: "8: a gate does not say that its line is logged", gate: func(_ *wire, g gated) gated { return unminding{gated: g, bare: true} }},
}
