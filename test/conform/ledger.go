package conform

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/stage"
)

// A Book is a ledger under test, beside a gate that is not it.
type Book interface {
	flow.Keeper
	Create(ctx context.Context, id firstcome.CampaignID, terms firstcome.Terms) error
	// Kept returns a campaign's coupons in number order, and how many dead letters it has.
	Kept(ctx context.Context, id firstcome.CampaignID) (coupons []firstcome.Coupon, letters int, err error)
	// Another returns another node of the ledger, or the same again.
	Another() flow.Keeper
}

// Ledger runs everything that a ledger must do for a recorder. fresh returns a new one without campaigns.
func Ledger(t *testing.T, fresh func(t *testing.T) Book) {
	for what, test := range map[string]func(*kept){
		"F41 what is recorded again is done":                  recordedAgain,
		"F42 half of a batch may be recorded":                 halfRecorded,
		"what would break a promise is refused whole":         brokenPromises,
		"F45 F51 overlapping batches in any order":            overlapping,
		"F44 garbage is a dead letter once":                   garbageOnce,
		"a dead letter is drained and stays one":              staysDead,
		"a coupon that came in meanwhile is not buried":       cameMeanwhile,
		"a dead letter may come before its campaign is there": deadBeforeMade,
	} {
		t.Run(what, func(t *testing.T) { test(&kept{t, fresh(t)}) })
	}
}

// kept is a book in a test.
type kept struct {
	t *testing.T
	Book
}

// create makes the campaign c.
func (k *kept) create(quantity int64) {
	k.t.Helper()
	terms := firstcome.Terms{Name: "Test", Quantity: quantity, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
	if err := k.Create(k.t.Context(), "c", terms); err != nil {
		k.t.Fatal(err)
	}
}

// records expects that the ledger takes coupons, and says that it is drained through a number then.
func (k *kept) records(through int64, coupons ...firstcome.Coupon) {
	k.t.Helper()
	settled, err := k.Record(k.t.Context(), "c", coupons)
	k.drained(through, settled, err)
}

// buries is records for a dead letter.
func (k *kept) buries(through int64, c firstcome.Coupon) {
	k.t.Helper()
	settled, err := k.Bury(k.t.Context(), "c", []flow.DeadLetter{{Coupon: c, Cause: "a trial"}})
	k.drained(through, settled, err)
}

func (k *kept) drained(through int64, settled flow.Settled, err error) {
	k.t.Helper()
	if err != nil || settled.Through != through {
		k.t.Fatalf("it is drained through %d, want %d, %v", settled.Through, through, err)
	}
}

// has expects the coupons with these numbers, as the gate gave them, and so many dead letters.
func (k *kept) has(letters int, numbers ...int64) {
	k.t.Helper()
	coupons, dead, err := k.Kept(k.t.Context(), "c")
	if err != nil {
		k.t.Fatal(err)
	}
	var want []firstcome.Coupon
	for _, n := range numbers {
		want = append(want, stage.Coupon("c", n))
	}
	for n := range coupons { // of which the ledger says no epoch, or the gate's
		coupons[n].Epoch, coupons[n].Marker, coupons[n].Recorded = 1, "", false
	}
	if diff := cmp.Diff(want, coupons); diff != "" || dead != letters {
		k.t.Errorf("it has %d dead letters, want %d, and other coupons (-want +got):\n%s", dead, letters, diff)
	}
}

func recordedAgain(k *kept) {
	k.create(10)
	for range 2 {
		k.records(5, stage.Coupons("c", 1, 5)...)
		k.has(0, 1, 2, 3, 4, 5)
	}
}

func halfRecorded(k *kept) {
	k.create(10)
	k.records(3, stage.Coupons("c", 1, 3)...)
	k.records(6, stage.Coupons("c", 2, 6)...)
	k.records(6, stage.Coupon("c", 5), stage.Coupon("c", 2), stage.Coupon("c", 2))
	k.records(6, stage.Coupon("c", 8)) // with a gap
	k.records(8, stage.Coupon("c", 7), stage.Coupon("c", 8))
	k.records(8)
	k.has(0, 1, 2, 3, 4, 5, 6, 7, 8)
}

func brokenPromises(k *kept) {
	k.create(5)
	k.records(3, stage.Coupons("c", 1, 3)...)
	with := func(number int64, edit func(*firstcome.Coupon)) firstcome.Coupon {
		c := stage.Coupon("c", number)
		edit(&c)
		return c
	}
	for why, batch := range map[string][]firstcome.Coupon{
		"another user under a known number": {stage.Coupon("c", 4), with(2, func(c *firstcome.Coupon) { c.User = "x" })},
		"another code":                      {stage.Coupon("c", 4), with(2, func(c *firstcome.Coupon) { c.Code = stage.Coupon("c", 9).Code })},
		"another instant":                   {stage.Coupon("c", 4), with(2, func(c *firstcome.Coupon) { c.IssuedAt = c.IssuedAt.Add(time.Microsecond) })},
		"other terms":                       {stage.Coupon("c", 4), with(2, func(c *firstcome.Coupon) { c.TermsVersion = 2 })},
		"terms that are none":               {with(4, func(c *firstcome.Coupon) { c.TermsVersion = 2 })},
		"a user who holds one":              {stage.Coupon("c", 4), with(5, func(c *firstcome.Coupon) { c.User = "user-1" })},
		"a user twice in the batch":         {stage.Coupon("c", 4), with(5, func(c *firstcome.Coupon) { c.User = "user-4" })},
		"a number twice in the batch":       {stage.Coupon("c", 4), with(4, func(c *firstcome.Coupon) { c.User = "x" })},
		"over the quantity by one":          stage.Coupons("c", 1, 6),
		"another epoch":                     {stage.Coupon("c", 4), with(5, func(c *firstcome.Coupon) { c.Epoch = 2 })},
		"no number":                         {with(0, func(*firstcome.Coupon) {})},
		"no user":                           {with(4, func(c *firstcome.Coupon) { c.User = "\x00" })},
		"no code":                           {with(4, func(c *firstcome.Coupon) { c.Code = "" })},
		"another campaign":                  {with(4, func(c *firstcome.Coupon) { c.Campaign = "d" })},
	} {
		if _, err := k.Record(k.t.Context(), "c", batch); !errors.Is(err, flow.ErrRefused) {
			k.t.Errorf("%s: got %v, want a refusal", why, err)
		}
		k.has(0, 1, 2, 3)
	}
	unknown := []firstcome.Coupon{with(1, func(c *firstcome.Coupon) { c.Campaign = "d" })}
	if _, err := k.Record(k.t.Context(), "d", unknown); !errors.Is(err, flow.ErrRefused) {
		k.t.Errorf("an unknown campaign: %v", err)
	}
	// A known coupon of another epoch is done.
	k.records(5, with(3, func(c *firstcome.Coupon) { c.Epoch = 7 }), stage.Coupon("c", 4), stage.Coupon("c", 5))
}

// overlapping has two recorders give duplicated, reordered and overlapping batches at once.
func overlapping(k *kept) {
	const last, step = 400, 5 // each batch goes on to the next one's first, so that every number is given
	k.create(last)
	var wait sync.WaitGroup
	for n, node := range []flow.Keeper{k, k.Another()} {
		wait.Go(func() {
			random := seed.Rand(k.t, n)
			var batches [][]firstcome.Coupon
			for first := int64(1); first <= last; first += step {
				batches = append(batches, stage.Coupons("c", first, min(last, first+step-1+random.Int64N(20))))
			}
			batches = append(batches, stage.Coupons("c", last, last)) // no other one may reach so far
			batches = append(batches, batches...)
			random.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
			for _, batch := range batches {
				if _, err := node.Record(k.t.Context(), "c", batch); err != nil {
					k.t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	k.records(last)
	k.has(0, stage.Numbers(1, last)...)
}

func garbageOnce(k *kept) {
	k.create(10)
	garbage := flow.Garbage{Source: "journal/7-0", Payload: "\x00\xff" + strings.Repeat("x", 100_000), Cause: "unknown version"}
	for range 2 {
		settled, err := k.Bury(k.t.Context(), "c", []flow.DeadLetter{{Garbage: garbage, Cause: garbage.Cause}})
		k.drained(0, settled, err)
	}
	k.has(1)
}

func staysDead(k *kept) {
	k.create(10)
	k.records(2, stage.Coupons("c", 1, 2)...)
	k.records(2, stage.Coupon("c", 4))
	k.buries(4, stage.Coupon("c", 3))
	k.buries(4, stage.Coupon("c", 3))
	k.buries(4, stage.Coupon("c", 6)) // far above
	k.records(6, stage.Coupon("c", 5))
	k.records(6, stage.Coupons("c", 1, 6)...) // the entry is given again
	k.has(2, 1, 2, 4, 5)
}

func cameMeanwhile(k *kept) {
	k.create(3)
	k.records(1, stage.Coupon("c", 1))
	k.buries(1, stage.Coupon("c", 1))
	k.has(0, 1)
	other := stage.Coupon("c", 1) // beside another of its number
	other.User = "another"
	k.buries(1, other)
	k.has(1, 1)
}

func deadBeforeMade(k *kept) {
	_, err := k.Bury(k.t.Context(), "c", []flow.DeadLetter{{Coupon: stage.Coupon("c", 1), Cause: "no such campaign"}})
	if err != nil {
		k.t.Fatal(err)
	}
	k.create(10)
	k.records(2, stage.Coupons("c", 1, 2)...)
	k.has(1, 2)
}
