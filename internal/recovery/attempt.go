package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/wait"
)

// An attempt takes a campaign through the states of a rebuild or of a reconcile: see the package comment.
type attempt struct {
	*Machine
	Rebuild
	reconciled *Reconciled // the result of a reconcile; nil for a rebuild
	frozen     Frozen
	since      time.Time          // when the gate was frozen
	to         record.Sink        // where the journal's coupons go
	logged     *firstcome.LineLog // the line's log, from the offset at which the next epoch begins; nil if it has none
	folded     *Folded            // who is in line by the log; nil if the frozen gate has the line
	loaded     Loaded
	moved      int // how often the ledger changed after it was loaded
	fill       Refill

	turn    chan struct{} // full while a heartbeat or the end of the epoch runs
	silence func()        // ends the heartbeats
}

// run takes an attempt that has begun through its steps while it sends heartbeats, and reports the result.
func (m *Machine) run(ctx context.Context, begun Rebuild, why error, reconciled *Reconciled) (Rebuilt, error) {
	started, id := time.Now(), begun.Campaign
	m.stats.begun.Add(1)
	m.note(id, errUnfinished)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &attempt{Machine: m, Rebuild: begun, reconciled: reconciled, to: m.sink, turn: make(chan struct{}, 1)}
	a.heartbeats(ctx, cancel)
	err := a.steps(ctx)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	done := Rebuilt{
		Campaign: id, Epoch: a.fill.Epoch, Lost: a.fill.Lost, Carried: a.loaded.People, LostPlaces: a.fill.LostPlaces,
		Took: time.Since(started), Why: why, Err: err,
	}
	if err != nil {
		m.stats.failed.Add(1)
		m.note(id, cmp.Or(why, gate.ErrUnverified)) // the next look finds what it is
		m.giveUp(ctx, begun)
	} else {
		m.stats.finished.Add(1)
		m.stats.lost.Add(a.fill.Lost)
		m.note(id, nil)
		m.Refuse(id, nil)
		m.readTerms(ctx, id, a.fill.TermsVersion)
	}
	if m.onRebuilt != nil {
		m.onRebuilt(done)
	}
	return done, err
}

// giveUp lets another attempt begin at once. If that fails, another attempt can begin once this one's heartbeats are too old.
func (m *Machine) giveUp(ctx context.Context, begun Rebuild) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), heartbeatEvery)
	defer cancel()
	_ = m.ledger.GiveUpRebuild(ctx, begun)
}

// heartbeats sends heartbeats until ctx ends, and ends the attempt once another attempt has superseded it. No heartbeat runs during the end of the
// epoch or after it: it would find no attempt in the ledger, and cut off the switch.
func (a *attempt) heartbeats(ctx context.Context, end func(error)) {
	ctx, a.silence = context.WithCancel(ctx)
	go func() {
		defer a.silence()
		for wait.Sleep(ctx, heartbeatEvery) == nil {
			a.turn <- struct{}{}
			if ctx.Err() == nil {
				if err := a.ledger.Heartbeat(ctx, a.Rebuild); errors.Is(err, ErrSuperseded) {
					end(err)
				}
			}
			<-a.turn
		}
	}()
}

// errReload means that the ledger has changed since it was loaded.
var errReload = errors.New("the ledger must be loaded again")

// steps takes the steps in their order, which the package comment explains.
func (a *attempt) steps(ctx context.Context) error {
	point.Reach(point.Begun)
	// again is the index of the step at which a reload begins. It reads the frozen journal again: a ledger that failed over may have lost what was
	// recorded from it.
	const again = 5
	steps := []func(context.Context) error{
		a.room,
		a.freeze,
		a.compare,
		a.adopt,
		a.bringBack,
		a.read,
		a.empty,
		a.load,
		a.carry,
		a.wait,
		a.end,
		a.put,
	}
	for n := 0; n < len(steps); n++ {
		switch err := steps[n](ctx); {
		case errors.Is(err, errReload):
			n = again - 1
		case err != nil:
			return err
		}
	}
	return nil
}

// room checks whether the server has memory for a second copy of the campaign's keys.
func (a *attempt) room(ctx context.Context) error { return a.gate.Room(ctx, a.Rebuild) }

// freeze ends all decisions and leases of the gate.
func (a *attempt) freeze(ctx context.Context) (err error) {
	if a.frozen, err = a.gate.Freeze(ctx, a.Rebuild); err != nil {
		return err
	}
	a.since = time.Now()
	point.Reach(point.Frozen)
	return nil
}

// compare ends a rebuild whose ledger is older than the frozen gate.
func (a *attempt) compare(ctx context.Context) error {
	if a.reconciled != nil {
		return nil
	}
	s := GateState{Epoch: a.frozen.Epoch, Version: a.frozen.Version, DrainedThrough: a.frozen.Drained}
	if ahead(gate.Revision{Epoch: a.Rebuild.Epoch, Version: a.Version, Drained: a.Drained}, s) == "" {
		return nil
	}
	err := a.confirm(ctx, a.Campaign, s)
	if errors.Is(err, gate.ErrLedgerRolledBack) {
		a.Refuse(a.Campaign, err)
	}
	return err
}

// adopt copies the frozen gate's state into a ledger that is older.
func (a *attempt) adopt(ctx context.Context) error {
	if a.reconciled == nil {
		return nil
	}
	at := a.at()
	s, err := a.gate.GateState(ctx, at)
	if err != nil {
		return err
	}
	complete, err := a.intact(ctx, s)
	if err != nil {
		return err
	}
	if complete {
		a.frozen.Through = s.LastNumber
		// The line comes from the gate, which lost nothing. The log would need every voided coupon, and a restored ledger lacks some.
		a.WithoutLog = true
	}
	absent, err := a.absent(ctx, at, s)
	if err == nil {
		a.reconciled.Adopted, err = a.ledger.Adopt(ctx, a.Rebuild, s, absent, complete)
	}
	if err != nil {
		return err
	}
	point.Reach(point.Adopted)
	return nil
}

// at returns the revision with which this attempt asks the gate.
func (a *attempt) at() gate.Revision {
	return gate.Revision{Campaign: a.Campaign, CampaignUID: a.CampaignUID}
}

// bringBack records every holder's coupon that an older ledger lacks, in number order. It keeps these coupons in memory, at some 200 bytes each.
//
// From then on, the sink of the journal takes only coupons whose user still holds them. The ledger once recorded and voided any other coupon of the
// journal, so its number becomes lost.
func (a *attempt) bringBack(ctx context.Context) error {
	if a.reconciled == nil {
		return nil
	}
	lacking, err := a.lacking(ctx, a.Rebuild)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(lacking, giveAtOnce) {
		drained, err := a.sink(ctx, record.Batch{
			Campaign: a.Campaign, Epoch: a.reconciled.Adopted.Epoch, Attempt: a.Attempt, CampaignUID: a.CampaignUID, Coupons: some,
		})
		if err != nil {
			return fmt.Errorf("bring back %d coupons: %w", len(some), err)
		}
		a.reconciled.Letters += int64(len(drained.Letters))
		a.reconciled.Recovered += int64(len(some) - len(drained.Letters))
	}
	a.to = func(ctx context.Context, b record.Batch) (record.Result, error) {
		held, err := a.gate.HoldsEach(ctx, a.at(), b.Coupons)
		if err != nil {
			return record.Result{}, err
		}
		all := b.Coupons
		b.Coupons = nil
		for n, c := range all {
			if held[n] {
				b.Coupons = append(b.Coupons, c)
			}
		}
		return a.sink(ctx, b)
	}
	point.Reach(point.Brought)
	return nil
}

// empty records the coupons of the frozen journal in the ledger, in the epoch that ends.
func (a *attempt) empty(ctx context.Context) error {
	if err := a.gate.Empty(ctx, a.Rebuild, a.to); err != nil {
		return err
	}
	point.Reach(point.Emptied)
	return nil
}

// load loads the ledger's coupons in force and its open dead letters into new keys.
func (a *attempt) load(ctx context.Context) error {
	a.loaded = Loaded{}
	if a.folded != nil {
		a.folded.Forget()
	}
	put, end, err := a.gate.Loading(ctx, a.Rebuild)
	if err != nil {
		return err
	}
	a.loaded.Mark, err = a.ledger.Refills(ctx, a.Campaign, func(c firstcome.Coupon) error {
		if a.folded != nil {
			a.folded.Coupon(c)
		}
		if c.VoidedAt.IsZero() {
			a.loaded.Most++
			if !c.Buried {
				a.loaded.Least++
			}
		}
		return put(c)
	})
	if err == nil {
		err = end()
	}
	return err
}

// wait waits until the leases of refusals that the gate granted before the freeze have ended.
func (a *attempt) wait(ctx context.Context) error {
	if err := wait.Sleep(ctx, time.Until(a.since.Add(leasesEnd))); err != nil {
		return err
	}
	point.Reach(point.Waited)
	return nil
}

// end ends the epoch in one transaction, if the ledger is unchanged since the load. Numbers that the gate may have issued and that nobody has are
// then lost.
func (a *attempt) end(ctx context.Context) (err error) {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	a.fill, err = a.ledger.FinishRebuild(ctx, a.Rebuild, a.loaded, a.frozen)
	if errors.Is(err, ErrMoved) {
		if a.moved++; a.moved == reloads {
			return fmt.Errorf("%w, %d times: rebuild when fewer coupons are voided", ErrMoved, reloads)
		}
		return errReload
	}
	if err != nil {
		return err
	}
	a.silence()
	if at := a.frozen.OpenedAt; !at.IsZero() && (a.fill.OpenedAt.IsZero() || at.Before(a.fill.OpenedAt)) {
		a.fill.OpenedAt = at
	}
	if at := a.frozen.SoldOutAt; !at.IsZero() {
		a.fill.SoldOutAt = at
	}
	point.Reach(point.Ended)
	return nil
}

// put replaces the frozen keys with the new ones, in one script.
func (a *attempt) put(ctx context.Context) error {
	if err := a.gate.Replace(ctx, a.Rebuild, a.frozen, a.loaded, a.fill); err != nil {
		return err
	}
	point.Reach(point.Switched)
	return nil
}
