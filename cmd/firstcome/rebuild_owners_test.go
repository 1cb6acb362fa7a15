//go:build !check

package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A halt stops an owner of a rebuild before one of its steps, until the owner may continue.
type halt struct {
	recovery.Records
	recovery.Ledger
	recovery.Gate
	step    string
	reached chan struct{}
	goOn    chan struct{}
}

func (h *halt) at(step string) {
	if step == h.step {
		close(h.reached)
		<-h.goOn
	}
}

// Heartbeat sends no heartbeat, because a stopped process cannot.
func (h *halt) Heartbeat(context.Context, recovery.Rebuild) error { return nil }

func (h *halt) Inspect(ctx context.Context, r gate.Revision) error {
	err := h.Gate.Inspect(ctx, r)
	h.at("standing")
	return err
}

func (h *halt) Rename(ctx context.Context) error {
	err := h.Gate.Rename(ctx)
	h.at("renamed")
	return err
}

func (h *halt) Freeze(ctx context.Context, r recovery.Rebuild) (recovery.Frozen, error) {
	h.at("freeze")
	return h.Gate.Freeze(ctx, r)
}

func (h *halt) Empty(ctx context.Context, r recovery.Rebuild, to record.Sink) error {
	h.at("empty")
	return h.Gate.Empty(ctx, r, to)
}

func (h *halt) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	h.at("record")
	return h.Records.Record(ctx, b)
}

func (h *halt) Loading(ctx context.Context, r recovery.Rebuild) (func(firstcome.Coupon) error, func() error, error) {
	h.at("load")
	return h.Gate.Loading(ctx, r)
}

func (h *halt) Carry(ctx context.Context, r recovery.Rebuild, generation int64) (recovery.Carried, error) {
	h.at("carry")
	return h.Gate.Carry(ctx, r, generation)
}

func (h *halt) FinishRebuild(ctx context.Context, r recovery.Rebuild, loaded recovery.Loaded, frozen recovery.Frozen) (recovery.Refill, error) {
	h.at("finish")
	return h.Ledger.FinishRebuild(ctx, r, loaded, frozen)
}

func (h *halt) Replace(ctx context.Context, r recovery.Rebuild, f recovery.Frozen, loaded recovery.Loaded, fill recovery.Refill) error {
	h.at("switch")
	return h.Gate.Replace(ctx, r, f, loaded, fill)
}

// TestF18AnOwnerThatWasFrozenChangesNothingAfterAnotherHasRebuilt stops the owner of a rebuild before each of its steps. Another node then rebuilds and
// issues. After that, the owner continues.
func TestF18AnOwnerThatWasFrozenChangesNothingAfterAnotherHasRebuilt(t *testing.T) {
	for _, step := range []string{"freeze", "empty", "record", "load", "finish", "switch"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
			before := d.issue("c", people("user-", 10)...)
			d.settle(d.record(before[:3]...))
			h := &halt{d.ledger.Recorder, d.ledger.Epochs, d.remote.gate.recovery, step, make(chan struct{}), make(chan struct{})}
			ended := make(chan error, 1)
			go func() {
				_, err := recovery.New(h, h, h, recovery.NewWatch(nil), nil).Rebuild(t.Context(), "frozen", "c", recovery.Order{})
				ended <- err
			}()
			<-h.reached
			if step != "switch" { // otherwise the rebuild has ended in the ledger, and sends no more heartbeats
				if _, err := d.ledger.Epochs.BeginRebuild(t.Context(), "other", "c", 0); !errors.Is(err, recovery.ErrSuperseded) {
					t.Errorf("while the owner lives another begins: %v", err)
				}
				d.outlive()
			}
			other := d.rebuilt(d.rebuilder())
			answers := d.claims(append(people("user-", 10), "new")...)
			keys, status := d.keys("c"), d.status()
			close(h.goOn)
			if err := <-ended; err != nil && !errors.Is(err, recovery.ErrMoved) { // nil with the result of the other rebuild
				t.Errorf("the owner goes on, and ends with %v", err)
			}
			after := d.status()
			stage.Same(t, "epoch and version", [2]int64{status.Epoch, status.Version}, [2]int64{after.Epoch, after.Version})
			answers[10] = strings.Replace(answers[10], "issued", "already_issued", 1)
			stage.Same(t, "who has coupons", answers, d.claims(append(people("user-", 10), "new")...))
			if left := d.keys("c"); len(left) > len(keys)+1 {
				t.Errorf("the keys are %v, and were %v", left, keys)
			}
			if other.Epoch != d.status().Epoch {
				t.Errorf("the other rebuild began epoch %d, the campaign is %+v", other.Epoch, d.status())
			}
		})
	}
}

// TestF18ARebuildReadsTheJournalOfTheServerThatItFroze brings a rebuild to a server that it has not frozen, as if the gate's address led to another server
// after the freeze. The campaign is not frozen there, or another attempt has frozen it.
func TestF18ARebuildReadsTheJournalOfTheServerThatItFroze(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
	d.issue("c", people("user-", 3)...)
	uid, err := d.campaignUID(t.Context(), "c")
	stage.Must(t, err)
	r := recovery.Rebuild{Campaign: "c", CampaignUID: uid, Attempt: 2}
	read := func() (coupons int, err error) {
		err = d.remote.gate.recovery.Empty(t.Context(), r, func(_ context.Context, b record.Batch) (record.Result, error) {
			coupons += len(b.Coupons)
			return record.Result{}, nil
		})
		return coupons, err
	}
	for _, frozen := range []string{"", "1"} { // not frozen, or by another attempt
		if frozen != "" {
			d.do("HSET", d.key("campaign"), "frozen", frozen)
		}
		if coupons, err := read(); !errors.Is(err, recovery.ErrSuperseded) || coupons > 0 {
			t.Errorf("frozen by attempt %q: %d coupons, %v", frozen, coupons, err)
		}
	}
	stage.Must(t, stage.Err(d.remote.gate.recovery.Freeze(t.Context(), r)))
	if coupons, err := read(); err != nil || coupons != 3 {
		t.Errorf("frozen: %d coupons, %v", coupons, err)
	}
}

// TestF05WhoWantsALostGateRebuiltTakesWhatAnotherRebuilt lets another node rebuild between the check of the gate, or its new name, and the rebuild. Nodes do
// this once the server has its name again. A second rebuild would lose numbers needlessly.
func TestF05WhoWantsALostGateRebuiltTakesWhatAnotherRebuilt(t *testing.T) {
	t.Run("if lost", func(t *testing.T) { takesWhatAnotherRebuilt(t, "standing", true) })
	t.Run("whatever it is", func(t *testing.T) { takesWhatAnotherRebuilt(t, "renamed", false) })
}

func takesWhatAnotherRebuilt(t *testing.T, step string, ifLost bool) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
	d.settle(d.record(d.issue("c", people("user-", 3)...)...))
	d.do("FLUSHALL")
	h := &halt{d.ledger.Recorder, d.ledger.Epochs, d.remote.gate.recovery, step, make(chan struct{}), make(chan struct{})}
	type end struct {
		done recovery.Rebuilt
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		done, err := recovery.New(h, h, h, recovery.NewWatch(nil), nil).Rebuild(t.Context(), "op", "c", recovery.Order{IfLost: ifLost})
		ended <- end{done, err}
	}()
	<-h.reached
	h.step = "" // it stops once
	other := d.rebuilt(d.rebuilder())
	close(h.goOn)
	late := <-ended
	stage.Must(t, late.err)
	again, err := d.rebuilder().Rebuild(t.Context(), "op", "c", recovery.Order{IfLost: true})
	stage.Must(t, err)
	for what, got := range map[string]recovery.Rebuilt{"who looked before": late.done, "who looks behind it": again} {
		if got.Epoch != other.Epoch || got.Lost != other.Lost || other.Lost == 0 {
			t.Errorf("%s hears of epoch %d and %d lost numbers, the other node rebuilt epoch %d and lost %d", what, got.Epoch, got.Lost, other.Epoch, other.Lost)
		}
	}
	if now := d.status().Epoch; now != other.Epoch {
		t.Errorf("the campaign is in epoch %d, want %d", now, other.Epoch)
	}
}

// TestF18ARebuildWhoseOwnerDiedBeforeItFrozeTheGateIsDoneByAnother lets an owner die after it has claimed the campaign's row. The gate decides as before,
// and the ledger takes new coupons only from that owner.
func TestF18ARebuildWhoseOwnerDiedBeforeItFrozeTheGateIsDoneByAnother(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := newDesk(t, services.Redis.Database(t), name, nil, "c")
		r := d.watch()
		stage.Must(t, stage.Err(d.ledger.Epochs.BeginRebuild(t.Context(), "dead", "c", 0)))
		issued := d.issue("c", people("user-", 3)...)
		_, err := d.ledger.Recorder.Record(t.Context(), batch(issued...))
		if !errors.Is(err, record.ErrRebuilding) {
			t.Fatalf("coupons are recorded while the owner may live: %v", err)
		}
		within, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if done, err := d.rebuilder().Rebuild(within, "op", "c", recovery.Order{}); err == nil {
			t.Errorf("a rebuild that another owner has only begun is reported as done: %+v", done)
		}
		d.outlive()
		r.Suspect("c", gate.ErrUnverified) // like a recorder
		stage.Await(t, "rebuilds that ended", int64(1), func() int64 { return r.Stats().Finished })
		stage.Same(t, "who has which coupon", []string{"already_issued:1", "already_issued:2", "already_issued:3"}, d.claims(people("user-", 3)...))
		if s := d.status(); s.Recorded != 3 || s.Epoch != 2 {
			t.Errorf("the campaign is %+v", s)
		}

		stage.Must(t, stage.Err(d.ledger.Epochs.BeginRebuild(t.Context(), "dead", "c", 0)))
		d.outlive()
		done, err := d.rebuilder().Rebuild(t.Context(), "op", "c", recovery.Order{IfLost: true})
		if err != nil || done.Epoch != 3 {
			t.Errorf("a rebuild of a lost gate ignores a rebuild that has not ended: %+v, %v", done, err)
		}

		for _, before := range []string{"ended", "was given up"} {
			next, err := d.ledger.Epochs.BeginRebuild(t.Context(), "next", "c", 0)
			if err != nil || next.Left {
				t.Errorf("the attempt before %s: %+v, %v", before, next, err)
			}
			stage.Must(t, d.ledger.Epochs.GiveUpRebuild(t.Context(), next))
		}
	})
}

// A quitter is a ledger in which another node's rebuild fails as soon as this node has met it.
type quitter struct {
	recovery.Records
	recovery.Ledger
	other recovery.Rebuild
	met   int // how often this node met the other rebuild
}

func (b *quitter) BeginRebuild(ctx context.Context, actor string, id firstcome.CampaignID, epoch int64) (recovery.Rebuild, error) {
	r, err := b.Ledger.BeginRebuild(ctx, actor, id, epoch)
	if errors.Is(err, recovery.ErrSuperseded) {
		b.met++
		err = errors.Join(err, b.GiveUpRebuild(ctx, b.other))
	}
	return r, err
}

// TestF05WhoMeetsARebuildThatFailsRebuilds orders a rebuild while another node rebuilds, and the other rebuild fails. No node rebuilds by itself here, as if
// the server had lost its name.
func TestF05WhoMeetsARebuildThatFailsRebuilds(t *testing.T) {
	for _, ifLost := range []bool{false, true} {
		d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
		d.settle(d.record(d.issue("c", people("user-", 3)...)...))
		d.do("FLUSHALL")
		other, err := d.ledger.Epochs.BeginRebuild(t.Context(), "other", "c", 0)
		stage.Must(t, err)
		book := &quitter{Records: d.ledger.Recorder, Ledger: d.ledger.Epochs, other: other}
		within, cancel := context.WithTimeout(t.Context(), time.Minute)
		done, err := recovery.New(book, book, d.remote.gate.recovery, recovery.NewWatch(nil), nil).Rebuild(within, "op", "c", recovery.Order{IfLost: ifLost})
		cancel()
		if err != nil || book.met != 1 || done.Epoch != 2 {
			t.Errorf("if lost %t: met the other %d times; %+v, %v", ifLost, book.met, done, err)
		}
		stage.Same(t, "who has coupons", []string{"already_issued:1", "already_issued:2", "already_issued:3"}, d.claims(people("user-", 3)...))
	}
}

// A bystander is another node's gate. Its third call of Inspect waits until the rebuild has switched the gate.
type bystander struct {
	recovery.Gate
	asked    atomic.Int64
	switched func()
}

func (b *bystander) Inspect(ctx context.Context, r gate.Revision) error {
	if b.asked.Add(1) == 3 {
		b.switched()
	}
	return b.Gate.Inspect(ctx, r)
}

// TestF05AnEmptiedGateIsRebuiltOnceThoughAnotherNodeLooksBeforeTheSwitch lets the other node check an emptied Redis after a rebuild has frozen the campaign
// and ended the epoch in the ledger.
func TestF05AnEmptiedGateIsRebuiltOnceThoughAnotherNodeLooksBeforeTheSwitch(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
	d.settle(d.record(d.issue("c", people("user-", 3)...)...))
	d.do("FLUSHALL")
	h := &halt{d.ledger.Recorder, d.ledger.Epochs, d.remote.gate.recovery, "switch", make(chan struct{}), make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		_, err := recovery.New(h, h, h, recovery.NewWatch(nil), nil).Rebuild(t.Context(), "op", "c", recovery.Order{})
		ended <- err
	}()
	stage.Next(t, "a rebuild that is about to switch", h.reached)
	switched := sync.OnceFunc(func() {
		close(h.goOn)
		stage.Must(t, stage.Next(t, "the end of the rebuild", ended))
	})
	b := &bystander{Gate: d.remote.gate.recovery, switched: switched}
	r := recovery.New(d.ledger.Recorder, d.ledger.Epochs, b, recovery.NewWatch(nil), nil)
	stage.Run(t, r.Run)
	stage.Await(t, "a campaign that the other node has looked at", true, func() bool {
		s := r.Stats()
		return s.Broken == 0 && (b.asked.Load() >= 3 || s.Finished > 0)
	})
	switched() // if the other node did not wait for it
	stage.Same(t, "the epoch", int64(2), d.status().Epoch)
	stage.Same(t, "who has which coupon", []string{"already_issued:1", "already_issued:3"}, d.claims("user-0", "user-2"))
}

// A failOver takes the ledger back, before a rebuild ends the epoch, to its state from when the attempt had just begun.
type failOver struct {
	recovery.Records
	recovery.Ledger
	recovery.Gate
	frozen, ends func()
}

func (f *failOver) Heartbeat(context.Context, recovery.Rebuild) error { return nil }

func (f *failOver) Freeze(ctx context.Context, r recovery.Rebuild) (recovery.Frozen, error) {
	f.frozen()
	return f.Gate.Freeze(ctx, r)
}

func (f *failOver) FinishRebuild(ctx context.Context, r recovery.Rebuild, loaded recovery.Loaded, frozen recovery.Frozen) (recovery.Refill, error) {
	f.ends()
	return f.Ledger.FinishRebuild(ctx, r, loaded, frozen)
}

// TestF54ALedgerThatFailsOverInsideARebuildGetsTheJournalAgain has five coupons in the journal, which the frozen gate keeps until the switch.
func TestF54ALedgerThatFailsOverInsideARebuildGetsTheJournalAgain(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[string(services.PostgreSQL)](t), nil, "c")
	users := people("user-", 5)
	d.issue("c", users...)
	var before backup
	once := sync.OnceFunc(func() { before.restore() })
	f := &failOver{d.ledger.Recorder, d.ledger.Epochs, d.remote.gate.recovery, func() { before = d.backup() }, once}
	done := d.rebuilt(recovery.New(f, f, f, recovery.NewWatch(nil), nil))
	stage.Same(t, "recorded, and in the new epoch", [2]int64{5, 2}, [2]int64{d.status().Recorded, done.Epoch})
	for _, answer := range d.claims(users...) {
		if !strings.HasPrefix(answer, "already_issued") {
			t.Errorf("a user who was issued a coupon is answered %s", answer)
		}
	}
	d.sound()
}

// outlive sets the last heartbeat of a rebuild to a long time ago.
func (d *desk) outlive() {
	d.t.Helper()
	_, err := services.Beside(d.t, d.name).Exec(`UPDATE campaigns SET rebuilding_at = rebuilding_at - 11000000`)
	stage.Must(d.t, err)
}
