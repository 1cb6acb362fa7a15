package recovery

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
)

// A Ledger is a ledger as a Machine needs it: see ledger.Ledger.
type Ledger interface {
	flow.Keeper
	Runs
	Attempts
	Contents
}

// Runs are the runs of the gate's servers that nodes saw.
type Runs interface {
	SeeRun(ctx context.Context, run Run) error
	DurableRun(ctx context.Context, run string) (durable, seen bool, err error)
	// RecentRuns returns the runs that a node saw within an age, by the ledger's clock.
	RecentRuns(ctx context.Context, within time.Duration) ([]string, error)
}

// Attempts are attempts at a rebuild in the ledger.
type Attempts interface {
	BeginRebuild(ctx context.Context, actor string, id firstcome.CampaignID, epoch int64) (Rebuild, error)
	// BeginReconcile is BeginRebuild with an attempt that is higher than the gate's last one.
	BeginReconcile(ctx context.Context, actor string, id firstcome.CampaignID, last int64) (Rebuild, error)
	GoesOn(ctx context.Context, r Rebuild) error
	GiveUpRebuild(ctx context.Context, r Rebuild) error
	FinishRebuild(ctx context.Context, r Rebuild, loaded Loaded, frozen Frozen) (Refill, error)
	// LastRebuild returns what the last rebuild came to, but for Took and Why.
	LastRebuild(ctx context.Context, id firstcome.CampaignID) (Rebuilt, error)
}

// Contents are what the ledger has of campaigns.
type Contents interface {
	Active(ctx context.Context) ([]gate.Revision, error)
	Standard(ctx context.Context, id firstcome.CampaignID, version int64) (Standard, error)
	Numbered(ctx context.Context, campaign string, above int64, each func(number int64)) error
	Refills(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) (Mark, error)
	// Has tells for each coupon whether the ledger has it, voided or not.
	Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error)
	// Adopt takes over what a frozen gate says of its campaign. It may be repeated.
	Adopt(ctx context.Context, r Rebuild, gate Stopped, absent []firstcome.Coupon, whole bool) (Adopted, error)
	// LineHistory returns what the ledger knows of the log of a campaign's line.
	LineHistory(ctx context.Context, id firstcome.CampaignID) (LineHistory, error)
}

// LineLogs are the logs of lines.
type LineLogs interface {
	flow.LineLog
	// Place returns where a campaign's line is logged that has no log yet, or a new one: from the end on.
	Place(ctx context.Context, id firstcome.CampaignID) (firstcome.LineLog, error)
	// End returns the offset behind the last record. firstcome.ErrLineLogLost: this is not the topic.
	End(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog) (int64, error)
	// Read calls each with the records of a campaign in their order, from the log's first offset on, before end. firstcome.ErrLineLogLost: this is
	// not the topic, or it lacks some of them.
	Read(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog, end int64, each func(offset int64, r flow.LineRecord) error) error
}

// A Gate is a remote gate as a Machine needs it: see redis.Gate.
type Gate interface {
	Servers
	Looks
	Holders
	Steps
	Seats
}

// Servers are those of a gate.
type Servers interface {
	// Runs returns the runs of the servers of the gate that decide and answer, in the order of their names.
	Runs(ctx context.Context) ([]Run, error)
	// Named reports whether the gate's server still has the gate's name. Rename gives it the name again, if it has none.
	Named(ctx context.Context) (bool, error)
	Rename(ctx context.Context) error
	// Created reports whether the gate's ledger ever created a campaign of an id there.
	Created(ctx context.Context, id firstcome.CampaignID) (bool, error)
}

// Looks tell whether a gate has what it had.
type Looks interface {
	// Standing returns nil if the gate decides claims of a campaign, ErrUnverified or ErrLost if it needs a rebuild, ErrAhead if its epoch,
	// version or drained number is above the revision's, a StaleEpochError if it is not frozen and its epoch is below the revision's.
	Standing(ctx context.Context, r gate.Revision) error
	Stopped(ctx context.Context, r gate.Revision) (Stopped, error)
	Unrecorded(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error
	Verified(ctx context.Context, r gate.Revision, s Stopped) error
}

// Holders are the users who hold a coupon in force at a gate.
type Holders interface {
	// Held calls each with the coupon in force of every holder, in no order, perhaps twice.
	Held(ctx context.Context, r Rebuild, each func(firstcome.Coupon) error) error
	// HoldsEach tells for each coupon whether its user is the holder of it.
	HoldsEach(ctx context.Context, r gate.Revision, coupons []firstcome.Coupon) ([]bool, error)
}

// Steps are those of a rebuild at a gate, in their order.
type Steps interface {
	Room(ctx context.Context, r Rebuild) error
	Freeze(ctx context.Context, r Rebuild) (Frozen, error)
	// Empty gives what is in the journal of the campaign, which this attempt has frozen, to a sink. ErrOutdone: it has not, at the server
	// that answers.
	Empty(ctx context.Context, r Rebuild, to flow.Sink) error
	Loading(ctx context.Context, r Rebuild) (put func(firstcome.Coupon) error, end func() error, err error)
	Switch(ctx context.Context, r Rebuild, f Frozen, loaded Loaded, fill Refill) error
}

// Seats fill the line of the new keys.
type Seats interface {
	// Carry carries those of the frozen line over who are still in line by the new keys, in a generation that no ticket is of yet. Carried calls
	// each with them.
	Carry(ctx context.Context, r Rebuild, generation int64) (Carried, error)
	Carried(ctx context.Context, r Rebuild, each func(Waiting) error) error
	// Seat loads people into the new keys' line, in the order of their tickets, in a generation that no ticket is of yet.
	Seat(ctx context.Context, r Rebuild, generation int64, people []Waiting) error
}

// A Machine takes the campaigns of a gate through the states of the package comment. Each node has one. A gate that is gone for good is rebuilt
// like any other: then there is nothing to freeze and nothing to empty.
type Machine struct {
	// Auto, set before Run, has it also rebuild an emptied server, and a gate in a stale epoch once no node reaches another server.
	Auto bool
	// Log, set before Run, has the logs of lines. Nil: this node knows none, and leaves campaigns alone whose lines have one.
	Log LineLogs

	book  Ledger
	gate  Gate
	sink  flow.Sink // halves and buries what the ledger refuses
	hears Events
	sight sight
	*Watch
	stats struct{ verified, begun, finished, failed, lost atomic.Int64 }
}

// A Rebuilt is the end of an attempt at a rebuild.
type Rebuilt struct {
	Campaign firstcome.CampaignID
	Epoch    int64 // that began
	Lost     int64 // numbers that may have been given, and that nobody has
	// Carried people in line kept their places. At least LostPlaces others were in line, and are not any more.
	Carried, LostPlaces int64
	Took                time.Duration
	Why                 error // what was wrong with the gate; nil: somebody asked for it
	Err                 error // nil: the gate decides again
}

// Stats are a Machine's counters since its start.
type Stats struct {
	Verified int64 // campaigns that went on in the same epoch
	Begun    int64 // attempts at a rebuild
	Finished int64
	Failed   int64
	Lost     int64 // numbers
	Broken   int   // campaigns that need a rebuild now, as this node knows, those that are being rebuilt among them
	// Rebuilding is of how many of them a rebuild has begun and not ended, by this node or, as its last look found, another.
	Rebuilding int
	RolledBack int // campaigns whose ledger is older than their gate, as this node knows
	StaleEpoch int // campaigns whose gate is in an epoch that has ended, as this node knows
}

const (
	// leasesEnd is when the last lease of a refusal has ended that a gate granted before it was frozen, as the gate counts it.
	leasesEnd = 250 * time.Millisecond
	// sideBySide is how many campaigns a node rebuilds at once.
	sideBySide = 4
	// runsEvery is how often a node looks whether the gate's server is another run; wholeLook, how often it asks each campaign.
	runsEvery = time.Second
	wholeLook = time.Minute
	// reportEvery is how often a node says which run it sees. After agreeTime without a report of another run, all nodes reach one server: a
	// node that reaches another one has missed three reports by then.
	reportEvery = 3 * time.Second
	agreeTime   = 10 * time.Second
	// signEvery is how often a rebuild gives a sign of life.
	signEvery = 2 * time.Second
	// switchTime is how long a rebuild that ended in the ledger has until it switches the gate, before another node rebuilds it, and
	// switchAsks how often that node looks meanwhile.
	switchTime = 500 * time.Millisecond
	switchAsks = 20
	// reloads bounds how often a rebuild loads the ledger anew because it changed meanwhile.
	reloads = 20
)

// Events hear what a Machine finds and does. Nil: nobody hears.
type Events struct {
	Rebuilt func(Rebuilt) // the end of each attempt
	Refused func(error)   // once for each campaign whose ledger was rolled back, or whose gate is in a stale epoch
}

// New returns a Machine of a gate and its ledger.
func New(book Ledger, gate Gate, hears Events) *Machine {
	return &Machine{book: book, gate: gate, sink: flow.NewSink(book), hears: hears, sight: sight{book: book}, Watch: newWatch(hears.Refused)}
}

// Stats returns the counters.
func (r *Machine) Stats() Stats {
	broken, rebuilding, rolledBack, staleEpoch := r.counts()
	return Stats{
		Verified: r.stats.verified.Load(), Begun: r.stats.begun.Load(), Finished: r.stats.finished.Load(), Failed: r.stats.failed.Load(), Lost: r.stats.lost.Load(),
		Broken: broken, Rebuilding: rebuilding, RolledBack: rolledBack, StaleEpoch: staleEpoch,
	}
}

// firstcomeItself is who rebuilds without being asked, in the audit log.
const firstcomeItself = "firstcome"

// An Order says how an operator wants a rebuild.
type Order struct {
	// IfLost leaves a gate as it is that decides: nodes rebuild a campaign by themselves once the server has the gate's name again. A gate in a
	// stale epoch does not decide.
	IfLost bool
	// WithoutLog takes the line from what the gate still has, though its log in Kafka should say who is in line, and logs it again.
	WithoutLog bool
}

// Rebuild makes a campaign's gate anew because somebody asked for it, whatever the gate says. A server that was emptied gets the gate's
// name again, and a campaign of another Redis becomes this gate's.
func (r *Machine) Rebuild(ctx context.Context, actor string, id firstcome.CampaignID, order Order) (Rebuilt, error) {
	for {
		done, err := r.ordered(ctx, actor, id, order)
		if !errors.Is(err, ErrOutdone) || sleep(ctx, leasesEnd) != nil {
			return done, err
		}
		order.IfLost = true // what the other rebuild comes to is what was asked for; if it fails, another one is needed
	}
}

// ordered is one try of Rebuild. ErrOutdone says that another attempt is under way.
func (r *Machine) ordered(ctx context.Context, actor string, id firstcome.CampaignID, order Order) (Rebuilt, error) {
	before, _, err := r.revision(ctx, id) // nodes rebuild by themselves as soon as the server has its name again
	if err != nil {
		return Rebuilt{}, err
	}
	if err := r.gate.Rename(ctx); err != nil {
		return Rebuilt{}, err
	}
	if !order.IfLost {
		begun, err := r.begin(ctx, actor, id, before.Epoch, order.WithoutLog)
		if err != nil {
			return Rebuilt{}, err
		}
		return r.run(ctx, begun, nil, nil)
	}
	now, known, err := r.revision(ctx, id)
	if err != nil {
		return Rebuilt{}, err
	}
	if known {
		runs, err := r.gate.Runs(ctx)
		if err == nil {
			err = r.sight.see(ctx, runs) // so that a verification knows how the server syncs, and how long to wait for other nodes
		}
		if err == nil {
			err = r.stands(ctx, now)
		}
		switch {
		case err == nil:
			return r.book.LastRebuild(ctx, id)
		case errors.Is(err, errUnmade), errors.Is(err, gate.ErrLedgerRolledBack):
			return Rebuilt{}, err
		}
	}
	attempt, err := r.begin(ctx, actor, id, now.Epoch, order.WithoutLog)
	if err != nil {
		return Rebuilt{}, err
	}
	if known && r.needless(ctx, attempt, now, nil) {
		r.giveUp(ctx, attempt)
		return r.book.LastRebuild(ctx, id)
	}
	return r.run(ctx, attempt, nil, nil)
}

// revision returns the campaign as the ledger has it; not known: another gate decides it, or it is over.
func (r *Machine) revision(ctx context.Context, id firstcome.CampaignID) (now gate.Revision, known bool, err error) {
	active, err := r.book.Active(ctx)
	n := slices.IndexFunc(active, func(a gate.Revision) bool { return a.Campaign == id })
	if err != nil || n < 0 {
		return gate.Revision{}, false, err
	}
	return active[n], true, nil
}
