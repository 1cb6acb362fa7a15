package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/point"
)

// A RebuildBook is a ledger as a Rebuilder needs it: see ledger.Ledger.
type RebuildBook interface {
	Keeper
	VerifyBook
	Active(ctx context.Context) ([]Revision, error)
	BeginRebuild(ctx context.Context, actor string, id firstcome.CampaignID, epoch int64) (Rebuild, error)
	GoesOn(ctx context.Context, r Rebuild) error
	GiveUpRebuild(ctx context.Context, r Rebuild) error
	// LastRebuild returns what the last rebuild came to, but for Took and Why.
	LastRebuild(ctx context.Context, id firstcome.CampaignID) (Rebuilt, error)
	FinishRebuild(ctx context.Context, r Rebuild, loaded Loaded, frozen Frozen) (Refill, error)
}

// A RebuiltGate is a remote gate as a Rebuilder needs it: see redis.Gate.
type RebuiltGate interface {
	VerifiedGate
	// Standing returns nil if the gate decides claims of a campaign, ErrUnverified or ErrLost if it needs a rebuild, ErrAhead if its epoch,
	// version or drained number is above the revision's.
	Standing(ctx context.Context, r Revision) error
	// Runs returns the runs of the servers of the gate that decide and answer, in the order of their names.
	Runs(ctx context.Context) ([]Run, error)
	// Named tells whether the gate's server still has the gate's name. Rename gives it the name again, if it has none.
	Named(ctx context.Context) (bool, error)
	Rename(ctx context.Context) error
	// The steps of a rebuild, in their order.
	Room(ctx context.Context, r Rebuild) error
	Freeze(ctx context.Context, r Rebuild) (Frozen, error)
	Empty(ctx context.Context, r Rebuild, to Sink) error
	Loading(ctx context.Context, r Rebuild) (put func(firstcome.Coupon) error, end func() error, err error)
	Carry(ctx context.Context, r Rebuild, generation int64) (Carried, error)
	Switch(ctx context.Context, r Rebuild, f Frozen, loaded Loaded, fill Refill) error
}

// A Rebuilder makes gates whole that restarted, were replaced by a copy of theirs, or lost keys: from what the ledger has, under a new
// epoch. It takes these steps, and each but the last may be cut off anywhere, because a later attempt begins from the first again:
//
//	claim the campaign's row      a growing attempt: what an earlier owner does from then on is refused
//	look for room                 the keys have to fit twice
//	freeze the gate               it decides nothing more, and no lease is granted
//	empty its journal             into the ledger, with the epoch that ends
//	load new keys                 the ledger's coupons in force, and its open dead letters; behind them the frozen gate's line
//	wait                          until the leases of refusals have ended, which were granted before
//	end the epoch                 in one transaction: what may have been given and nobody has is lost; only if the ledger is as it was loaded
//	switch                        one script puts the new keys in the place of the frozen ones
//
// A gate that is gone for good is rebuilt the same way: then there is nothing to freeze and nothing to empty.
type Rebuilder struct {
	book    RebuildBook
	gate    RebuiltGate
	sink    *Recorder // halves and buries what the ledger refuses
	onEnd   func(Rebuilt)
	noticed chan firstcome.CampaignID
	stats   struct{ verified, begun, finished, failed, lost atomic.Int64 }
	// OnOlder, if not nil, hears once of each campaign of which the ledger is found to be an older one.
	OnOlder func(error)

	mu     sync.Mutex // guards what follows
	broken map[firstcome.CampaignID]error
	older  map[firstcome.CampaignID]error // see OlderError
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

// RebuilderStats are a Rebuilder's counters since its start.
type RebuilderStats struct {
	Verified int64 // campaigns that went on in the same epoch
	Begun    int64 // attempts at a rebuild
	Finished int64
	Failed   int64
	Lost     int64 // numbers
	Broken   int   // campaigns that need a rebuild now, as this node knows
	Older    int   // campaigns of which the ledger is an older one, as this node knows
}

const (
	// leasesEnd is when the last lease of a refusal has ended that a gate granted before it was frozen, as the gate counts it.
	leasesEnd = 250 * time.Millisecond
	// sideBySide is how many campaigns a node rebuilds at once.
	sideBySide = 4
	// runsEvery is how often a node looks whether the gate's server is another run; wholeLook, how often it asks each campaign.
	runsEvery = time.Second
	wholeLook = time.Minute
	// signEvery is how often a rebuild gives a sign of life.
	signEvery = 2 * time.Second
	// reloads bounds how often a rebuild loads the ledger anew because it changed meanwhile.
	reloads = 20
)

// NewRebuilder returns a Rebuilder of a gate from a book. onEnd, if not nil, gets the end of each attempt.
func NewRebuilder(book RebuildBook, gate RebuiltGate, onEnd func(Rebuilt)) *Rebuilder {
	return &Rebuilder{
		book: book, gate: gate, sink: NewRecorder(nil, book, RecorderLimits{}), onEnd: onEnd,
		noticed: make(chan firstcome.CampaignID, 1024), broken: map[firstcome.CampaignID]error{}, older: map[firstcome.CampaignID]error{},
	}
}

// Notice says that a gate decided nothing of a campaign, because it is lost or unverified. It never waits.
func (r *Rebuilder) Notice(id firstcome.CampaignID) {
	select {
	case r.noticed <- id:
	default: // the next look finds it
	}
}

// Troubles returns why nothing is decided of campaigns at the gate, as far as this node knows: ErrLost, ErrUnverified or ErrOlder.
func (r *Rebuilder) Troubles() map[firstcome.CampaignID]error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := maps.Clone(r.broken)
	maps.Copy(all, r.older)
	return all
}

// Stats returns the counters.
func (r *Rebuilder) Stats() RebuilderStats {
	r.mu.Lock()
	broken, older := len(r.broken), len(r.older)
	r.mu.Unlock()
	return RebuilderStats{
		Verified: r.stats.verified.Load(), Begun: r.stats.begun.Load(), Finished: r.stats.finished.Load(), Failed: r.stats.failed.Load(), Lost: r.stats.lost.Load(), Broken: broken, Older: older,
	}
}

// Run rebuilds what needs it until ctx ends, where the gate's server still has the gate's name: after a restart or a promotion, and where
// keys are missing. A server without the name was emptied, or is another one: then a person says so, by Rebuild.
func (r *Rebuilder) Run(ctx context.Context) error {
	var runs []Run
	var looked time.Time
	for {
		now, err := r.gate.Runs(ctx)
		if err == nil && !slices.Equal(now, runs) {
			err, looked = r.see(ctx, now), time.Time{}
		}
		if err == nil {
			runs = now
		}
		if err == nil && time.Since(looked) > wholeLook {
			if r.look(ctx, nil) == nil {
				looked = time.Now()
			}
		} else if ids := r.known(); err == nil && len(ids) > 0 {
			_ = r.look(ctx, ids)
		}
		if r.await(ctx) != nil {
			return nil
		}
	}
}

// see notes the runs of the gate's servers in the ledger.
func (r *Rebuilder) see(ctx context.Context, runs []Run) error {
	for _, run := range runs {
		if err := r.book.SeeRun(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

// await waits for the next look, or until somebody notices something.
func (r *Rebuilder) await(ctx context.Context) error {
	wait := time.NewTimer(runsEvery)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
	case id := <-r.noticed:
		r.note(id, ErrUnverified)
	}
	for {
		select {
		case id := <-r.noticed:
			r.note(id, ErrUnverified)
		default:
			return nil
		}
	}
}

// known returns the campaigns that need a rebuild, or of which the ledger is an older one, as far as somebody noticed.
func (r *Rebuilder) known() map[firstcome.CampaignID]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make(map[firstcome.CampaignID]bool, len(r.broken))
	for id := range r.broken {
		ids[id] = true
	}
	for id := range r.older {
		ids[id] = true
	}
	return ids
}

// note notes why a campaign needs a rebuild; nil: it does not.
func (r *Rebuilder) note(id firstcome.CampaignID, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why == nil {
		delete(r.broken, id)
	} else {
		r.broken[id] = why
	}
}

// found is a campaign whose gate needs a rebuild.
type found struct {
	Revision
	why error
}

// look asks the gate of some campaigns, or of all, and rebuilds those that need it.
func (r *Rebuilder) look(ctx context.Context, some map[firstcome.CampaignID]bool) error {
	active, err := r.book.Active(ctx)
	if err != nil {
		return err
	}
	named, err := r.gate.Named(ctx)
	named = named && err == nil // whoever cannot ask still verifies
	first := r.known()          // somebody asked for these
	var broken, rest []found
	for _, a := range active {
		if some != nil && !some[a.Campaign] {
			continue
		}
		err := r.stands(ctx, a)
		if err == nil || NeedsRebuild(err) || errors.Is(err, ErrOlder) {
			r.noteOlder(a.Campaign, err)
		}
		if errors.Is(err, ErrOlder) { // a rebuild would lose what the gate alone has
			err = nil
		}
		if err == nil || NeedsRebuild(err) {
			r.note(a.Campaign, err)
		}
		if !NeedsRebuild(err) {
			continue
		}
		if one := (found{a, err}); first[a.Campaign] {
			broken = append(broken, one)
		} else {
			rest = append(rest, one)
		}
	}
	if !named {
		return nil
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(sideBySide)
	for _, one := range append(broken, rest...) {
		all.Go(func() error {
			_, _ = r.rebuild(ctx, firstcomeItself, one.Campaign, one.why, one.Epoch) // the next look finds what failed
			return nil
		})
	}
	return all.Wait()
}

// errUnfinished says that a rebuild was begun and has not ended. Its owner may have died before it froze the gate, which then decides
// what nobody records.
var errUnfinished = fmt.Errorf("%w: a rebuild was begun and has not ended", ErrUnverified)

// errUnmade says that the gate cannot have a campaign yet. Whoever took it for lost would rebuild what is made meanwhile.
var errUnmade = fmt.Errorf("%w: the campaign is being made", firstcome.ErrBusy)

// standing is the gate's Standing, if the gate has had the campaign and no rebuild is under way.
func (r *Rebuilder) standing(ctx context.Context, a Revision) error {
	switch {
	case a.Unmade:
		return errUnmade
	case a.Reconciling:
		return &OlderError{Campaign: a.Campaign}
	case a.Rebuilding:
		return cmp.Or(r.olderOf(ctx, a), errUnfinished)
	}
	err := r.gate.Standing(ctx, a)
	if errors.Is(err, ErrAhead) {
		return r.standsAhead(ctx, a)
	}
	return err
}

// stands is standing behind a verification, if the gate is unverified. Only an error that NeedsRebuild says that it is not what it was.
func (r *Rebuilder) stands(ctx context.Context, a Revision) error {
	err := r.standing(ctx, a)
	if !errors.Is(err, ErrUnverified) || a.Rebuilding {
		return err
	}
	switch not := verify(ctx, r.book, r.gate, a); {
	case not == nil:
		r.stats.verified.Add(1)
		return nil
	case errors.Is(not, errDiffers):
		return fmt.Errorf("%w: %w", err, not)
	default: // gate or ledger did not answer, or another node was faster
		return not
	}
}

// firstcomeItself is who rebuilds without being asked, in the audit log.
const firstcomeItself = "firstcome"

// NeedsRebuild tells whether an error of a gate says that a rebuild makes the campaign whole.
func NeedsRebuild(err error) bool {
	return errors.Is(err, ErrUnverified) || errors.Is(err, ErrLost) && !errors.Is(err, firstcome.ErrGateMismatch)
}

// Rebuild makes a campaign's gate anew because somebody asked for it, whatever the gate says. A server that was emptied gets the gate's
// name again, and a campaign of another Redis becomes this gate's. With ifLost a gate that decides stays as it is: nodes rebuild a
// campaign by themselves once the server has the name again.
func (r *Rebuilder) Rebuild(ctx context.Context, actor string, id firstcome.CampaignID, ifLost bool) (Rebuilt, error) {
	for {
		done, err := r.ordered(ctx, actor, id, ifLost)
		if !errors.Is(err, ErrOutdone) || sleep(ctx, leasesEnd) != nil {
			return done, err
		}
		ifLost = true // what the other rebuild comes to is what was asked for; if it fails, another one is needed
	}
}

// ordered is one try of Rebuild. ErrOutdone says that another attempt is under way.
func (r *Rebuilder) ordered(ctx context.Context, actor string, id firstcome.CampaignID, ifLost bool) (Rebuilt, error) {
	if err := r.gate.Rename(ctx); err != nil {
		return Rebuilt{}, err
	}
	epoch := int64(0)
	if ifLost {
		now, known, err := r.revision(ctx, id)
		if err != nil {
			return Rebuilt{}, err
		}
		if known {
			switch err := r.standing(ctx, now); {
			case err == nil:
				return r.book.LastRebuild(ctx, id)
			case errors.Is(err, errUnmade), errors.Is(err, ErrOlder):
				return Rebuilt{}, err
			}
		}
		epoch = now.Epoch
	}
	return r.rebuild(ctx, actor, id, nil, epoch)
}

// revision returns the campaign as the ledger has it; not known: another gate decides it, or it is over.
func (r *Rebuilder) revision(ctx context.Context, id firstcome.CampaignID) (now Revision, known bool, err error) {
	active, err := r.book.Active(ctx)
	n := slices.IndexFunc(active, func(a Revision) bool { return a.Campaign == id })
	if err != nil || n < 0 {
		return Revision{}, false, err
	}
	return active[n], true, nil
}

// rebuild makes one attempt at a campaign in an epoch, 0: whichever.
func (r *Rebuilder) rebuild(ctx context.Context, actor string, id firstcome.CampaignID, why error, epoch int64) (Rebuilt, error) {
	attempt, err := r.book.BeginRebuild(ctx, actor, id, epoch)
	if err != nil {
		return Rebuilt{}, err
	}
	return r.attempt(ctx, attempt, why, nil)
}

// attempt goes on with an attempt that has begun. bring, if not nil, does what comes behind the freeze, and returns the sink of the journal.
func (r *Rebuilder) attempt(ctx context.Context, attempt Rebuild, why error, bring bring) (Rebuilt, error) {
	started, id := time.Now(), attempt.Campaign
	r.stats.begun.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go r.signs(ctx, attempt, cancel)
	fill, loaded, err := r.steps(ctx, attempt, bring)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	done := Rebuilt{
		Campaign: id, Epoch: fill.Epoch, Lost: fill.Lost, Carried: loaded.People, LostPlaces: fill.LostPlaces,
		Took: time.Since(started), Why: why, Err: err,
	}
	if err != nil {
		r.stats.failed.Add(1)
		r.giveUp(ctx, attempt)
	} else {
		r.stats.finished.Add(1)
		r.stats.lost.Add(fill.Lost)
		r.note(id, nil)
	}
	if r.onEnd != nil {
		r.onEnd(done)
	}
	return done, err
}

// giveUp lets another attempt begin at once. If it fails, that happens a little later.
func (r *Rebuilder) giveUp(ctx context.Context, attempt Rebuild) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), signEvery)
	defer cancel()
	_ = r.book.GiveUpRebuild(ctx, attempt)
}

// signs gives signs of life until ctx ends, and ends the attempt when another has begun.
func (r *Rebuilder) signs(ctx context.Context, attempt Rebuild, end func(error)) {
	for sleep(ctx, signEvery) == nil {
		if err := r.book.GoesOn(ctx, attempt); errors.Is(err, ErrOutdone) {
			end(err)
		}
	}
}

// A bring does what a reconcile does behind the freeze, and returns the sink of the frozen journal.
type bring func(ctx context.Context, frozen *Frozen) (Sink, error)

// steps are those of one attempt.
func (r *Rebuilder) steps(ctx context.Context, attempt Rebuild, bring bring) (fill Refill, loaded Loaded, err error) {
	point.Reach(point.Begun)
	if err := r.gate.Room(ctx, attempt); err != nil {
		return fill, loaded, err
	}
	frozen, err := r.gate.Freeze(ctx, attempt)
	if err != nil {
		return fill, loaded, err
	}
	point.Reach(point.Frozen)
	at := time.Now()
	var to Sink = r.sink.take
	if bring != nil {
		to, err = bring(ctx, &frozen)
	} else {
		err = r.frozenAhead(ctx, attempt, frozen)
	}
	if err != nil {
		return fill, loaded, err
	}
	if err := r.gate.Empty(ctx, attempt, to); err != nil {
		return fill, loaded, err
	}
	point.Reach(point.Emptied)
	for range reloads {
		if loaded, err = r.load(ctx, attempt, frozen.Line); err != nil {
			return fill, loaded, err
		}
		point.Reach(point.Loaded)
		if err := sleep(ctx, time.Until(at.Add(leasesEnd))); err != nil {
			return fill, loaded, err
		}
		point.Reach(point.Waited)
		fill, err = r.book.FinishRebuild(ctx, attempt, loaded, frozen)
		if errors.Is(err, ErrMoved) {
			continue
		}
		if err != nil {
			return fill, loaded, err
		}
		if !frozen.OpenedAt.IsZero() && (fill.OpenedAt.IsZero() || frozen.OpenedAt.Before(fill.OpenedAt)) {
			fill.OpenedAt = frozen.OpenedAt
		}
		point.Reach(point.Ended)
		if err = r.gate.Switch(ctx, attempt, frozen, loaded, fill); err == nil {
			point.Reach(point.Switched)
		}
		return fill, loaded, err
	}
	return fill, loaded, fmt.Errorf("%w, %d times: rebuild when fewer coupons are voided", ErrMoved, reloads)
}

// load loads what the ledger has, and who of the frozen gate's line is still in line by it. A generation that sent its people away, as the
// ledger knows, is over: a gate that does not know it is an older one.
func (r *Rebuilder) load(ctx context.Context, attempt Rebuild, line firstcome.Line) (l Loaded, err error) {
	put, end, err := r.gate.Loading(ctx, attempt)
	if err != nil {
		return l, err
	}
	l.Mark, err = r.book.Refills(ctx, attempt.Campaign, func(c firstcome.Coupon) error {
		if c.VoidedAt.IsZero() {
			l.Most++
			if !c.Buried {
				l.Least++
			}
		}
		return put(c)
	})
	if err == nil {
		err = end()
	}
	if err == nil && line.Generation > l.Ended {
		l.Carried, err = r.gate.Carry(ctx, attempt, max(line.Generation, l.Generation)+1)
	}
	return l, err
}
