package conform

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/stage"
)

// A Book is a ledger under test, beside a remote gate.
type Book interface {
	record.Keeper
	Create(ctx context.Context, id firstcome.CampaignID, terms firstcome.Terms) error
	// Kept returns a campaign's coupons in number order, and how many dead letters it has.
	Kept(ctx context.Context, id firstcome.CampaignID) (coupons []firstcome.Coupon, letters int, err error)
	// LineOf returns what it knows of a campaign's line: see gate.Places.
	LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error)
	// Another returns another node of the ledger, or the same again.
	Another() record.Keeper
}

// Ledger runs all tests of a ledger with a recorder. fresh returns a new one without campaigns.
func Ledger(t *testing.T, fresh func(t *testing.T) Book) {
	for what, test := range map[string]func(*kept){
		"F41 what is recorded again is done":            recordedAgain,
		"F42 half of a batch may be recorded":           halfRecorded,
		"what would break a promise is refused whole":   brokenPromises,
		"F45 F51 overlapping batches in any order":      overlapping,
		"F44 garbage is a dead letter once":             garbageOnce,
		"a dead letter is drained and stays one":        staysDead,
		"a dead letter that was not told is told":       toldLetters,
		"a coupon that came in meanwhile is not buried": cameMeanwhile,
		"F50 a coupon of another epoch has no number":   otherEpochs,
		"P9 a line is kept as it was reported last":     lineReported,
		"P9 a coupon keeps its ticket":                  ticketKept,
	} {
		t.Run(what, func(t *testing.T) { test(&kept{t: t, Book: fresh(t)}) })
	}
}

// kept is a book in a test.
type kept struct {
	t *testing.T
	Book
	told int64 // see record.Batch
}

// create makes the campaign c.
func (k *kept) create(quantity int64) {
	k.t.Helper()
	terms := firstcome.Terms{Name: "Test", Quantity: quantity, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
	stage.Must(k.t, k.Create(k.t.Context(), "c", terms))
}

// batch returns coupons of the campaign c as a recorder gives them.
func batch(coupons ...firstcome.Coupon) record.Batch {
	return record.Batch{Campaign: "c", Epoch: 1, Coupons: coupons}
}

// records expects that the ledger takes coupons, and says that it is drained through a number then, and which are dead letters.
func (k *kept) records(through int64, letters []int64, coupons ...firstcome.Coupon) {
	k.t.Helper()
	k.drained(through, letters, false)(k.Record(k.t.Context(), k.batch(coupons...)))
}

// batch is batch by a source that has told the gate of whatever it heard.
func (k *kept) batch(coupons ...firstcome.Coupon) record.Batch {
	b := batch(coupons...)
	b.LettersKnownThrough = k.told
	return b
}

// buries is records for a dead letter.
func (k *kept) buries(through int64, c firstcome.Coupon) {
	k.t.Helper()
	k.drained(through, []int64{c.Number}, false)(k.Bury(k.t.Context(), k.batch(c), "a trial"))
}

func (k *kept) drained(through int64, letters []int64, twice bool) func(record.Result, error) {
	return func(got record.Result, err error) {
		k.t.Helper()
		want := record.Result{Through: through, LettersKnownThrough: k.told, Twice: twice}
		k.told = through
		var numbers []int64
		for _, c := range got.Letters {
			numbers = append(numbers, c.Number)
		}
		slices.Sort(numbers)
		got.Letters, got.Grant = nil, record.Grant{} // only a gate needs the grant
		if diff := cmp.Diff(want, got) + cmp.Diff(letters, numbers); err != nil || diff != "" {
			k.t.Fatalf("it says otherwise: %v (-want +got):\n%s", err, diff)
		}
	}
}

// has expects the coupons with these numbers, as the gate gave them, and so many dead letters.
func (k *kept) has(letters int, numbers ...int64) {
	k.t.Helper()
	coupons, dead, err := k.Kept(k.t.Context(), "c")
	stage.Must(k.t, err)
	var want []firstcome.Coupon
	for _, n := range numbers {
		want = append(want, stage.Coupon("c", n))
	}
	for n := range coupons {
		coupons[n].Recorded = false // as the gate gave it
	}
	if diff := cmp.Diff(want, coupons); diff != "" || dead != letters {
		k.t.Errorf("it has %d dead letters, want %d, and other coupons (-want +got):\n%s", dead, letters, diff)
	}
}

func recordedAgain(k *kept) {
	k.create(10)
	for range 2 {
		k.records(5, nil, stage.Coupons("c", 1, 5)...)
		k.has(0, 1, 2, 3, 4, 5)
	}
}

func halfRecorded(k *kept) {
	k.create(10)
	k.records(3, nil, stage.Coupons("c", 1, 3)...)
	k.records(6, nil, stage.Coupons("c", 2, 6)...)
	k.records(6, nil, stage.Coupon("c", 5), stage.Coupon("c", 2), stage.Coupon("c", 2))
	k.records(6, nil, stage.Coupon("c", 8)) // with a gap
	k.records(8, nil, stage.Coupon("c", 7), stage.Coupon("c", 8))
	k.records(8, nil)
	k.has(0, 1, 2, 3, 4, 5, 6, 7, 8)
}

func brokenPromises(k *kept) {
	k.create(5)
	k.records(3, nil, stage.Coupons("c", 1, 3)...)
	with := func(number int64, edit func(*firstcome.Coupon)) firstcome.Coupon {
		c := stage.Coupon("c", number)
		edit(&c)
		return c
	}
	for why, coupons := range map[string][]firstcome.Coupon{
		"another user under a known number": {stage.Coupon("c", 4), with(2, func(c *firstcome.Coupon) { c.User = "x" })},
		"another code":                      {stage.Coupon("c", 4), with(2, func(c *firstcome.Coupon) { c.Code = stage.Coupon("c", 9).Code })},
		"another instant":                   {stage.Coupon("c", 4), with(2, func(c *firstcome.Coupon) { c.IssuedAt = c.IssuedAt.Add(time.Microsecond) })},
		"other terms":                       {stage.Coupon("c", 4), with(2, func(c *firstcome.Coupon) { c.TermsVersion = 2 })},
		"terms that are none":               {with(4, func(c *firstcome.Coupon) { c.TermsVersion = 2 })},
		"a user who holds one":              {stage.Coupon("c", 4), with(5, func(c *firstcome.Coupon) { c.User = "user-1" })},
		"a user twice in the batch":         {stage.Coupon("c", 4), with(5, func(c *firstcome.Coupon) { c.User = "user-4" })},
		"a number twice in the batch":       {stage.Coupon("c", 4), with(4, func(c *firstcome.Coupon) { c.User = "x" })},
		"over the quantity by one":          stage.Coupons("c", 1, 6),
		"no number":                         {with(0, func(*firstcome.Coupon) {})},
		"no user":                           {with(4, func(c *firstcome.Coupon) { c.User = "\x00" })},
		"another ticket":                    {stage.Coupon("c", 4), with(2, func(c *firstcome.Coupon) { c.Generation, c.Ticket = 1, 2 })},
		"a ticket without a generation":     {with(4, func(c *firstcome.Coupon) { c.Ticket = 1 })},
		"a generation without a ticket":     {with(4, func(c *firstcome.Coupon) { c.Generation = 1 })},
		"no code":                           {with(4, func(c *firstcome.Coupon) { c.Code = "" })},
		"another campaign":                  {with(4, func(c *firstcome.Coupon) { c.Campaign = "d" })},
	} {
		if _, err := k.Record(k.t.Context(), batch(coupons...)); !errors.Is(err, record.ErrRefused) {
			k.t.Errorf("%s: got %v, want a refusal", why, err)
		}
		k.has(0, 1, 2, 3)
	}
	unknown := record.Batch{Campaign: "d", Coupons: []firstcome.Coupon{with(1, func(c *firstcome.Coupon) { c.Campaign = "d" })}}
	if _, err := k.Record(k.t.Context(), unknown); !errors.Is(err, record.ErrRefused) {
		k.t.Errorf("an unknown campaign: %v", err)
	}
	another := batch(stage.Coupons("c", 3, 4)...)
	another.Epoch = 7
	if _, err := k.Record(k.t.Context(), another); !errors.Is(err, record.ErrRefused) {
		k.t.Errorf("another epoch: %v", err)
	}
	another.Coupons = another.Coupons[:1]
	another.LettersKnownThrough = k.told
	k.drained(3, nil, false)(k.Record(k.t.Context(), another)) // one that is known is done
}

// overlapping has two recorders give duplicated, reordered and overlapping batches at once.
func overlapping(k *kept) {
	const last, step = 400, 5 // each batch goes on to the next one's first, so that every number is given
	k.create(last)
	var wait sync.WaitGroup
	for n, node := range []record.Keeper{k, k.Another()} {
		wait.Go(func() {
			random := seed.Rand(k.t, n)
			var batches [][]firstcome.Coupon
			for first := int64(1); first <= last; first += step {
				batches = append(batches, stage.Coupons("c", first, min(last, first+step-1+random.Int64N(20))))
			}
			batches = append(batches, stage.Coupons("c", last, last)) // no other batch may reach so far
			batches = append(batches, batches...)
			random.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
			for _, coupons := range batches {
				if _, err := node.Record(k.t.Context(), batch(coupons...)); err != nil {
					k.t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	k.records(last, nil)
	k.has(0, stage.Numbers(1, last)...)
}

func garbageOnce(k *kept) {
	k.create(10)
	garbage := record.Garbage{Source: "journal/7-0", Payload: "\x00\xff" + strings.Repeat("x", 100_000), Cause: "unknown version"}
	for range 2 {
		k.drained(0, nil, false)(k.Bury(k.t.Context(), record.Batch{Campaign: "c", LettersKnownThrough: k.told, Garbage: []record.Garbage{garbage}}, ""))
	}
	k.has(1)
}

func staysDead(k *kept) {
	k.create(10)
	k.records(2, nil, stage.Coupons("c", 1, 2)...)
	k.records(2, nil, stage.Coupon("c", 4))
	k.buries(4, stage.Coupon("c", 3))
	k.buries(4, stage.Coupon("c", 3))
	k.buries(4, stage.Coupon("c", 7)) // far above
	k.records(4, []int64{7}, stage.Coupon("c", 7))
	k.records(5, nil, stage.Coupon("c", 5))
	k.records(7, []int64{7}, stage.Coupons("c", 6, 7)...)
	k.records(7, []int64{3, 7}, stage.Coupons("c", 1, 7)...) // the entries are given again
	k.has(2, 1, 2, 4, 5, 6)
}

// toldLetters asks as a source that does not know of all dead letters.
func toldLetters(k *kept) {
	k.create(20)
	k.records(4, nil, stage.Coupons("c", 1, 4)...)
	for _, n := range []int64{5, 6, 9} {
		k.buries(min(n, 6), stage.Coupon("c", n))
	}
	for told, letters := range map[int64][]int64{0: {5, 6}, 4: {5, 6}, 5: {6}, 6: nil, 7: nil} { // nine is above the gap
		k.told = told
		k.records(6, letters)
	}
	k.told = 4
	k.records(6, []int64{5, 6}, stage.Coupon("c", 6)) // its entry comes again, and is told once
	k.told = 3
	k.records(10, []int64{5, 6, 9}, stage.Coupon("c", 7), stage.Coupon("c", 8), stage.Coupon("c", 10))
	k.told = 8
	k.drained(10, []int64{9}, false)(k.Bury(k.t.Context(), k.batch(stage.Coupon("c", 10)), "a trial")) // which it has
	k.has(3, 1, 2, 3, 4, 7, 8, 10)
	users := map[int64]firstcome.UserID{}
	got, err := k.Record(k.t.Context(), batch())
	stage.Must(k.t, err)
	for _, c := range got.Letters {
		users[c.Number] = c.User
	}
	if diff := cmp.Diff(map[int64]firstcome.UserID{5: "user-5", 6: "user-6", 9: "user-9"}, users); diff != "" {
		k.t.Errorf("other users (-want +got):\n%s", diff)
	}
}

func cameMeanwhile(k *kept) {
	k.create(3)
	k.records(1, nil, stage.Coupon("c", 1))
	k.drained(1, nil, false)(k.Bury(k.t.Context(), k.batch(stage.Coupon("c", 1)), "a trial"))
	k.has(0, 1)
	other := stage.Coupon("c", 1) // beside another of its number
	other.User = "another"
	for range 2 {
		k.drained(1, []int64{1}, true)(k.Bury(k.t.Context(), k.batch(other), "given twice"))
	}
	k.has(1, 1)
}

// otherEpochs buries coupons of other epochs under a number that is taken, and under one that another user gets later.
func otherEpochs(k *kept) {
	k.create(10)
	k.records(2, nil, stage.Coupons("c", 1, 2)...)
	for n, number := range []int64{1, 3} {
		for _, epoch := range []int64{0, 2} {
			other := stage.Coupon("c", number)
			other.User = "another"
			b := k.batch(other)
			b.Epoch = epoch
			if _, err := k.Record(k.t.Context(), b); !errors.Is(err, record.ErrRefused) {
				k.t.Errorf("number %d of epoch %d: got %v, want a refusal", number, epoch, err)
			}
			k.drained(2, nil, false)(k.Bury(k.t.Context(), b, "of another epoch"))
			k.has(n+1, 1, 2)
		}
	}
	k.records(3, nil, stage.Coupon("c", 3))
	k.has(2, 1, 2, 3)
}
