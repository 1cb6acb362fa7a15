package conform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// A Stream is a journal under test, with a gate that writes into it.
type Stream interface {
	record.Source
	// Another returns another recorder's.
	Another() record.Source
	Entries
	// Left reports whether anything of a campaign is left.
	Left(ctx context.Context, id firstcome.CampaignID) (bool, error)
}

// Entries makes a gate write into a journal.
type Entries interface {
	// Make makes a campaign of any number of coupons at the gate.
	Make(ctx context.Context, id firstcome.CampaignID) error
	// Issue issues coupons to new users.
	Issue(ctx context.Context, id firstcome.CampaignID, users int) ([]firstcome.Coupon, error)
	// Litter writes something into a campaign's part that nobody can read.
	Litter(ctx context.Context, id firstcome.CampaignID) error
	// Report writes an entry without coupons that says this of a campaign's line.
	Report(ctx context.Context, id firstcome.CampaignID, r gate.LineReport) error
}

// Journal runs all tests of a journal. fresh returns a new one without campaigns, whose recorders take over nothing from a recorder that lives.
func Journal(t *testing.T, fresh func(t *testing.T) Stream) {
	for what, test := range map[string]func(*drained){
		"what is issued comes in its order and is gone":   comesInOrder,
		"a sink that fails is given the same again":       givenAgain,
		"what a dead recorder had comes to the next":      takenOver,
		"F44 garbage comes under a name and is gone":      garbageComes,
		"F42 two recorders record each coupon":            twoRecorders,
		"one campaign's trouble holds up no other's":      troubleOfOne,
		"a campaign whose sink hangs holds up no other's": hangingSink,
		"P9 what it says of a line comes behind the rest": reportComes,
	} {
		t.Run(what, func(t *testing.T) {
			d := &drained{t: t, Stream: fresh(t), coupons: map[firstcome.CampaignID][]firstcome.Coupon{}, grown: make(chan struct{})}
			d.make("c")
			test(d)
		})
	}
}

// drained is a journal in a test, with what came of it.
type drained struct {
	t *testing.T
	Stream

	mu      sync.Mutex // guards what follows
	coupons map[firstcome.CampaignID][]firstcome.Coupon
	garbage []record.Garbage
	line    gate.LineReport
	grown   chan struct{} // closed and replaced when a batch comes
}

func (d *drained) make(id firstcome.CampaignID) {
	d.t.Helper()
	stage.Must(d.t, d.Make(d.t.Context(), id))
}

func (d *drained) issue(id firstcome.CampaignID, users int) []firstcome.Coupon {
	d.t.Helper()
	coupons, err := d.Issue(d.t.Context(), id, users)
	stage.Must(d.t, err)
	return coupons
}

// take is a sink that keeps each coupon once, as a ledger does.
func (d *drained) take(_ context.Context, b record.Batch) (record.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.IsSortedFunc(b.Coupons, func(a, b firstcome.Coupon) int { return int(a.Number - b.Number) }) {
		d.t.Errorf("a batch of %s is not in number order", b.Campaign)
	}
	all := d.coupons[b.Campaign]
	for _, c := range b.Coupons {
		if !slices.ContainsFunc(all, func(known firstcome.Coupon) bool { return known.Number == c.Number }) {
			all = append(all, c)
		}
	}
	d.coupons[b.Campaign], d.garbage = all, append(d.garbage, b.Garbage...)
	d.line.Add(b.Line)
	close(d.grown)
	d.grown = make(chan struct{})
	return record.Result{Through: int64(len(all))}, nil
}

// drain drains into a sink until stop is called.
func (d *drained) drain(to record.Sink) (stop func()) { return stage.Drain(d.t, d.Stream, to) }

// gone expects that just these coupons of a campaign come, in this order, and then nothing is left.
func (d *drained) gone(id firstcome.CampaignID, want ...firstcome.Coupon) {
	d.t.Helper()
	late := time.After(time.Minute)
	for {
		d.mu.Lock()
		got, grown := slices.Clone(d.coupons[id]), d.grown
		d.mu.Unlock()
		left, err := d.Left(d.t.Context(), id)
		stage.Must(d.t, err)
		if !left && len(got) >= len(want) {
			if diff := cmp.Diff(want, got); diff != "" {
				d.t.Errorf("of %s other coupons came (-want +got):\n%s", id, diff)
			}
			return
		}
		select {
		case <-grown:
		case <-time.After(time.Millisecond): // nobody tells what is done with
		case <-late:
			d.t.Fatalf("of %s there came %d coupons of %d, left: %v", id, len(got), len(want), left)
		}
	}
}

func comesInOrder(d *drained) {
	all := d.issue("c", 700)
	d.drain(d.take)
	d.gone("c", all...)
	for _, users := range []int{300, 5_000} { // the second is wider than what Lua's stack takes at once, and than a batch
		all = append(all, d.issue("c", users)...)
	}
	d.gone("c", all...)
}

func givenAgain(d *drained) {
	all := d.issue("c", 10)
	failures := 0
	d.drain(func(ctx context.Context, b record.Batch) (record.Result, error) {
		if failures++; failures <= 3 {
			return record.Result{}, errors.New("the ledger is down")
		}
		return d.take(ctx, b)
	})
	d.gone("c", all...)
}

// takenOver stops a recorder whose ledger did not take what it gave.
func takenOver(d *drained) {
	all := d.issue("c", 10)
	given := make(chan struct{}, 1)
	stop := d.drain(func(context.Context, record.Batch) (record.Result, error) {
		select {
		case given <- struct{}{}:
		default:
		}
		return record.Result{}, errors.New("the ledger is down")
	})
	<-given
	stop()
	d.drain(d.take)
	d.gone("c", all...)
}

func garbageComes(d *drained) {
	all := d.issue("c", 3)
	for range 2 {
		stage.Must(d.t, d.Litter(d.t.Context(), "c"))
	}
	all = append(all, d.issue("c", 3)...)
	names, failed := map[string]bool{}, false
	d.drain(func(ctx context.Context, b record.Batch) (record.Result, error) {
		for _, g := range b.Garbage {
			names[g.Source] = true // it has the same each time it comes
		}
		if again := failed; !again {
			failed = true
			return record.Result{}, errors.New("the ledger is down")
		}
		return d.take(ctx, b)
	})
	d.gone("c", all...)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.garbage) != 2 || len(names) != 2 {
		d.t.Errorf("garbage came as %+v, under %d names", d.garbage, len(names))
	}
	for _, g := range d.garbage {
		if g.Source == "" || g.Cause == "" || g.Payload == "" {
			d.t.Errorf("garbage came as %+v", g)
		}
	}
}

func twoRecorders(d *drained) {
	var all []firstcome.Coupon
	for range 40 {
		all = append(all, d.issue("c", 10)...)
	}
	inOrder := func(ctx context.Context, b record.Batch) (record.Result, error) {
		defer func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			slices.SortFunc(d.coupons["c"], func(a, b firstcome.Coupon) int { return int(a.Number - b.Number) })
		}()
		return d.take(ctx, b)
	}
	d.drain(inOrder)
	stage.Drain(d.t, d.Another(), inOrder)
	d.gone("c", all...)
}

// troubleOfOne has a campaign that another node must record, and one whose row is locked.
func troubleOfOne(d *drained) {
	d.make("other")
	d.make("locked")
	all, locked := d.issue("c", 10), d.issue("locked", 10)
	d.issue("other", 10)
	released := make(chan struct{})
	d.drain(func(ctx context.Context, b record.Batch) (record.Result, error) {
		switch b.Campaign {
		case "other":
			return record.Result{}, firstcome.ErrGateMismatch
		case "locked":
			select {
			case <-released:
			default:
				return record.Result{}, record.ErrRowLocked
			}
		}
		return d.take(ctx, b)
	})
	d.gone("c", all...)
	d.gone("c", append(all, d.issue("c", 10)...)...)
	close(released)
	d.gone("locked", locked...)
	if left, err := d.Left(d.t.Context(), "other"); !left || err != nil {
		d.t.Errorf("what nobody recorded is gone, %v", err)
	}
}

func hangingSink(d *drained) {
	all, let := map[firstcome.CampaignID][]firstcome.Coupon{}, make(chan struct{})
	release := sync.OnceFunc(func() { close(let) })
	defer release() // also if the test fails: the end of the drain waits for its sinks
	for n := range 20 {
		id := firstcome.CampaignID(fmt.Sprint("many-", n))
		d.make(id)
		all[id] = d.issue(id, 50)
	}
	d.drain(func(ctx context.Context, b record.Batch) (record.Result, error) {
		if b.Campaign == "many-0" {
			<-let
		}
		return d.take(ctx, b)
	})
	for id, coupons := range all {
		if id != "many-0" {
			d.gone(id, coupons...)
		}
	}
	release()
	d.gone("many-0", all["many-0"]...)
}

// reportComes puts entries about a line between coupons and garbage. The first sink takes none of them.
func reportComes(d *drained) {
	all := d.issue("c", 3)
	one := gate.LineReport{Line: firstcome.Line{Generation: 2}, Past: []firstcome.PastLine{ended(1, "sold_out")}}
	two := gate.LineReport{Line: firstcome.Line{Generation: 3}, Past: []firstcome.PastLine{ended(2, "closed")}}
	stage.Must(d.t, d.Report(d.t.Context(), "c", one))
	stage.Must(d.t, d.Litter(d.t.Context(), "c"))
	stage.Must(d.t, d.Report(d.t.Context(), "c", two))
	failed := false
	d.drain(func(ctx context.Context, b record.Batch) (record.Result, error) {
		if again := failed; !again {
			failed = true
			return record.Result{}, errors.New("the ledger is down")
		}
		return d.take(ctx, b)
	})
	d.gone("c", all...)
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(gate.LineReport{Line: two.Line, Past: []firstcome.PastLine{ended(1, "sold_out"), ended(2, "closed")}}, d.line); diff != "" || len(d.garbage) != 1 {
		d.t.Errorf("the line was reported otherwise, beside %d garbage (-want +got):\n%s", len(d.garbage), diff)
	}
}
