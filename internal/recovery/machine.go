package recovery

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/wait"
)

// Records keeps what a gate issued, and lists the gate's campaigns. ledger.Recorder implements it.
type Records interface {
	record.Keeper
	Active(ctx context.Context) ([]gate.Revision, error)
	// Has reports for each coupon whether the ledger has it, voided or not.
	Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error)
}

// A Ledger keeps the epochs of gates. epoch.Epochs implements it.
type Ledger interface {
	Runs

	// The attempts at a rebuild.

	BeginRebuild(ctx context.Context, actor string, id firstcome.CampaignID, epoch int64) (Rebuild, error)
	// BeginReconcile works like BeginRebuild, but its attempt is higher than last, the gate's last attempt.
	BeginReconcile(ctx context.Context, actor string, id firstcome.CampaignID, last int64) (Rebuild, error)
	// Heartbeat records that the owner of an attempt is alive. ErrSuperseded means that a newer attempt has superseded it.
	Heartbeat(ctx context.Context, r Rebuild) error
	GiveUpRebuild(ctx context.Context, r Rebuild) error
	FinishRebuild(ctx context.Context, r Rebuild, loaded Loaded, frozen Frozen) (Refill, error)
	// LastRebuild returns the result of the last rebuild, without Took and Why.
	LastRebuild(ctx context.Context, id firstcome.CampaignID) (Rebuilt, error)

	// The ledger's data about a campaign.

	LedgerState(ctx context.Context, id firstcome.CampaignID, version int64) (LedgerState, error)
	Numbered(ctx context.Context, campaign string, above int64, each func(number int64)) error
	Refills(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) (Mark, error)
	// Adopt copies the state of a frozen gate into the ledger. It may be repeated.
	Adopt(ctx context.Context, r Rebuild, gate GateState, absent []firstcome.Coupon, complete bool) (Adopted, error)
	// LineHistory returns where the log of a campaign's line is, and where its epochs begin there.
	LineHistory(ctx context.Context, id firstcome.CampaignID) (LineHistory, error)
}

// Runs keeps the runs of the gate's servers that nodes have seen.
type Runs interface {
	SeeRun(ctx context.Context, run Run) error
	DurableRun(ctx context.Context, run string) (durable, seen bool, err error)
	// RecentRuns returns the runs that any node has reported within a duration before now, by the ledger's clock.
	RecentRuns(ctx context.Context, within time.Duration) ([]string, error)
}

// LineLogs reads and writes the logs of lines.
type LineLogs interface {
	line.Log
	// LogLocation returns where the log of a campaign's line will be, if it has none yet or needs a new one. The log counts from the topic's current end.
	LogLocation(ctx context.Context, id firstcome.CampaignID) (firstcome.LineLog, error)
	// End returns the offset after the last record. firstcome.ErrLineLogGone means that the topic is not the one of this log.
	End(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog) (int64, error)
	// Read calls each with the records of a campaign, in order, from the log's first offset to before end. firstcome.ErrLineLogGone means that the
	// topic is not the one of this log, or lacks some of the records.
	Read(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog, end int64, each func(offset int64, r line.Record) error) error
}

// A Gate is the part of a remote gate that a Machine needs. redis.Recovery implements it.
type Gate interface {
	// The gate's servers and their name.

	// Runs returns the runs of the gate's servers that decide claims, in the order of the servers' names.
	Runs(ctx context.Context) ([]Run, error)
	// Named reports whether the gate's server still has the gate's name. Rename gives a server without a name the gate's name again.
	Named(ctx context.Context) (bool, error)
	Rename(ctx context.Context) error
	// Created reports whether the gate's ledger ever created a campaign with this id at the gate.
	Created(ctx context.Context, id firstcome.CampaignID) (bool, error)

	// Whether the gate has lost data, and who holds coupons in force.

	// Inspect returns nil if the gate decides claims of a campaign. ErrUnverified and ErrGone mean that the campaign must be verified or rebuilt.
	// ErrAhead means that the gate's epoch, version or drained number is above the revision's. A StaleEpochError means that the gate is not frozen
	// and its epoch is below the revision's.
	Inspect(ctx context.Context, r gate.Revision) error
	GateState(ctx context.Context, r gate.Revision) (GateState, error)
	Unrecorded(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error
	Verified(ctx context.Context, r gate.Revision, s GateState) error
	// Held calls each with every coupon in force. The order is undefined, and a coupon may come twice.
	Held(ctx context.Context, r Rebuild, each func(firstcome.Coupon) error) error
	// HoldsEach reports for each coupon whether its user holds this coupon.
	HoldsEach(ctx context.Context, r gate.Revision, coupons []firstcome.Coupon) ([]bool, error)

	// The steps of a rebuild, in their order. Carry, Carried and Seat fill the line of the new keys.

	// Room returns an error if the gate has no memory for a second copy of the campaign's keys.
	Room(ctx context.Context, r Rebuild) error
	// Freeze stops the gate deciding about the campaign, and returns the state in which it stopped.
	Freeze(ctx context.Context, r Rebuild) (Frozen, error)
	// Empty passes the campaign's coupons in the journal to a sink. ErrSuperseded means that this attempt has not frozen the campaign at the server that
	// answers.
	Empty(ctx context.Context, r Rebuild, to record.Sink) error
	// Loading creates the new keys, beside those in use. put adds a coupon: its holder or, if it is voided, its ticket. end, called last, writes what put has
	// gathered. The new keys are not used before Replace.
	Loading(ctx context.Context, r Rebuild) (put func(firstcome.Coupon) error, end func() error, err error)
	// Replace replaces the campaign's keys by the new keys, in one step, and the gate decides again. It does nothing and returns an error if another
	// attempt owns the campaign, or if the new keys lack holders.
	Replace(ctx context.Context, r Rebuild, f Frozen, loaded Loaded, fill Refill) error

	// Carry copies the users who are still in the frozen line into the line of the new keys, in a generation that has issued no tickets. Carried
	// calls each with those users.
	Carry(ctx context.Context, r Rebuild, generation int64) (Carried, error)
	Carried(ctx context.Context, r Rebuild, each func(Waiting) error) error
	// Seat loads people into the line of the new keys, in the order of their tickets, in a generation that has issued no tickets.
	Seat(ctx context.Context, r Rebuild, generation int64, people []Waiting) error
}

// A Machine takes the campaigns of a gate through the states of the package comment. Each node has one. A gate whose data is gone is rebuilt like any
// other: it has nothing to freeze and nothing to empty.
type Machine struct {
	// Auto, set before Run, makes the Machine also rebuild the campaigns of an emptied server, and of a gate in a stale epoch once all nodes reach
	// the same server.
	Auto bool
	// Log, set before Run, has the logs of lines. If nil, this node cannot read them, and rebuilds no campaign whose line has a log.
	Log LineLogs
	// Terms, set before Run, reads a version of a campaign's terms into a cache of this node. A Machine calls it soon after terms have come into force,
	// above all by its own rebuild or that of another node. So a claim that is decided by them finds them although the ledger does not answer then.
	Terms func(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error)

	records   Records
	ledger    Ledger
	gate      Gate
	sink      record.Sink // finds the coupons that the ledger refuses, and makes them dead letters
	onRebuilt func(Rebuilt)
	reached   reachedRuns
	*Watch
	stats struct{ verified, begun, finished, failed, lost atomic.Int64 }
}

// A Rebuilt is the end of an attempt at a rebuild.
type Rebuilt struct {
	Campaign firstcome.CampaignID
	Epoch    int64 // the epoch that began
	Lost     int64 // numbers that the gate may have issued, and that nobody has
	// Carried is how many people in line kept their places. LostPlaces is how many others at least were in line before, and no longer are.
	Carried, LostPlaces int64
	Took                time.Duration
	Why                 error // why the gate needed it; nil if an operator ordered it
	Err                 error // nil if the gate decides again
}

// Stats are a Machine's counters since its start.
type Stats struct {
	Verified int64 // campaigns that were verified, and continued in the same epoch
	Begun    int64 // attempts at a rebuild
	Finished int64
	Failed   int64
	Lost     int64 // numbers
	Broken   int   // campaigns that need a rebuild now, or are being rebuilt, as far as this node knows
	// Rebuilding is how many of the Broken campaigns a node is rebuilding: this one, or another one that the last look found.
	Rebuilding int
	RolledBack int // campaigns whose ledger is older than their gate, as far as this node knows
	StaleEpoch int // campaigns whose gate is in an epoch that has ended, as far as this node knows
}

const (
	// leasesEnd is the wait between a gate's freeze and the end of its epoch. No node repeats a refusal of the frozen gate after it. It is as long as
	// a gate quarantines stock (250 ms), and longer than a node may repeat a refusal (200 ms).
	leasesEnd = 250 * time.Millisecond
	// sideBySide is how many campaigns a node rebuilds at once.
	sideBySide = 4
	// runsEvery is how often a node checks whether the gate's server is another run. inspectEvery is how often it checks each campaign.
	runsEvery    = time.Second
	inspectEvery = time.Minute
	// reportEvery is how often a node reports the run that it reaches. All nodes reach one server if none has reported another run for agreeTime: in
	// that time each node reports three times.
	reportEvery = 3 * time.Second
	agreeTime   = 10 * time.Second
	// heartbeatEvery is how often a rebuild sends a heartbeat.
	heartbeatEvery = 2 * time.Second
	// replaceTime is how long a rebuild that has ended the epoch in the ledger has to switch the gate, before another node rebuilds the campaign.
	// replaceAsks is how many times the other node checks the gate during that time.
	replaceTime = 500 * time.Millisecond
	replaceAsks = 20
	// reloads limits how many times a rebuild reloads a ledger that keeps changing.
	reloads = 20
)

// New returns a Machine of a gate and its ledger, which keeps what it finds in a Watch. onRebuilt, if not nil, is called at the end of each attempt.
func New(records Records, book Ledger, gate Gate, watch *Watch, onRebuilt func(Rebuilt)) *Machine {
	return &Machine{records: records, ledger: book, gate: gate, sink: record.NewSink(records), onRebuilt: onRebuilt, reached: reachedRuns{ledger: book}, Watch: watch}
}

// Stats returns the counters.
func (m *Machine) Stats() Stats {
	broken, rebuilding, rolledBack, staleEpoch := m.counts()
	return Stats{
		Verified: m.stats.verified.Load(), Begun: m.stats.begun.Load(), Finished: m.stats.finished.Load(), Failed: m.stats.failed.Load(), Lost: m.stats.lost.Load(),
		Broken: broken, Rebuilding: rebuilding, RolledBack: rolledBack, StaleEpoch: staleEpoch,
	}
}

// readTerms calls Terms. If that fails, the first claim that needs the terms reads them.
func (m *Machine) readTerms(ctx context.Context, id firstcome.CampaignID, version int64) {
	if m.Terms != nil {
		_, _ = m.Terms(ctx, id, version)
	}
}

// firstcomeItself is the actor in the audit log of a rebuild that nobody ordered.
const firstcomeItself = "firstcome"

// An Order is an operator's options for a rebuild.
type Order struct {
	// IfLost rebuilds the gate only if it does not decide claims. Nodes may rebuild a campaign by themselves as soon as the server has the gate's
	// name again, and then no second rebuild is needed. A gate in a stale epoch does not decide.
	IfLost bool
	// WithoutLog takes the line from the gate's remaining keys, although its log in Kafka should have it, and appends that line to the log again.
	WithoutLog bool
}

// Rebuild rebuilds a campaign's gate because an operator ordered it, whatever the state of the gate. A server that was emptied gets the gate's name
// again. A campaign that another Redis decided moves to this gate.
func (m *Machine) Rebuild(ctx context.Context, actor string, id firstcome.CampaignID, order Order) (Rebuilt, error) {
	for {
		done, err := m.ordered(ctx, actor, id, order)
		if !errors.Is(err, ErrSuperseded) || wait.Sleep(ctx, leasesEnd) != nil {
			return done, err
		}
		order.IfLost = true // a successful rebuild by another node is what the operator ordered; only if it fails is one more needed
	}
}

// ordered is one try of Rebuild. ErrSuperseded means that another attempt is under way.
func (m *Machine) ordered(ctx context.Context, actor string, id firstcome.CampaignID, order Order) (Rebuilt, error) {
	before, _, err := m.revision(ctx, id) // nodes rebuild by themselves as soon as the server has its name again
	if err != nil {
		return Rebuilt{}, err
	}
	if err := m.gate.Rename(ctx); err != nil {
		return Rebuilt{}, err
	}
	if !order.IfLost {
		begun, err := m.begin(ctx, actor, id, before.Epoch, order.WithoutLog)
		if err != nil {
			return Rebuilt{}, err
		}
		return m.run(ctx, begun, nil, nil)
	}
	now, known, err := m.revision(ctx, id)
	if err != nil {
		return Rebuilt{}, err
	}
	if known {
		runs, err := m.gate.Runs(ctx)
		if err == nil {
			err = m.reached.note(ctx, runs) // a verification needs to know how the server syncs, and since when this node has seen its run
		}
		if err == nil {
			err = m.inspectAndVerify(ctx, now)
		}
		switch {
		case err == nil:
			return m.ledger.LastRebuild(ctx, id)
		case errors.Is(err, errCreating), errors.Is(err, gate.ErrLedgerRolledBack):
			return Rebuilt{}, err
		}
	}
	attempt, err := m.begin(ctx, actor, id, now.Epoch, order.WithoutLog)
	if err != nil {
		return Rebuilt{}, err
	}
	if known && m.needless(ctx, attempt, now, nil) {
		m.giveUp(ctx, attempt)
		return m.ledger.LastRebuild(ctx, id)
	}
	return m.run(ctx, attempt, nil, nil)
}

// revision returns the campaign's state in the ledger. It is not known if the campaign has ended, or if another gate decides it.
func (m *Machine) revision(ctx context.Context, id firstcome.CampaignID) (now gate.Revision, known bool, err error) {
	active, err := m.records.Active(ctx)
	n := slices.IndexFunc(active, func(a gate.Revision) bool { return a.Campaign == id })
	if err != nil || n < 0 {
		return gate.Revision{}, false, err
	}
	return active[n], true, nil
}
