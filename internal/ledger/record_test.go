package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
)

// opening is when the remote gate of these tests issues number 0.
var opening = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// onEach runs a test with a ledger in each kind of database, by the name of a new one.
func onEach(t *testing.T, test func(t *testing.T, name string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "firstcome.db")) })
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) { test(t, kind.Database(t)) })
	}
}

// remote returns a ledger of a node with a remote gate, and the campaign c of the
// given quantity in it.
func remote(t testing.TB, name string, quantity int64) *ledger.Ledger {
	t.Helper()
	l := remoteAt(t, name)
	create(t, l, "c", quantity)
	return l
}

func remoteAt(t testing.TB, name string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(context.Background(), name, ledger.Options{Owner: "a test", Secret: secret(t), Gate: "redis:test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(run(t, l))
	return l
}

// decided returns the coupon that the gate gave a number, to the user named after it.
func decided(t testing.TB, number int64) firstcome.Coupon {
	t.Helper()
	return firstcome.Coupon{
		Campaign: "c", Number: number, User: firstcome.UserID(fmt.Sprint("user-", number)), Code: secret(t).Code("c", number),
		IssuedAt: opening.Add(time.Duration(number) * time.Millisecond), TermsVersion: 1, Epoch: 1,
	}
}

// between returns the coupons with the numbers from first to last.
func between(t testing.TB, first, last int64) []firstcome.Coupon {
	t.Helper()
	var coupons []firstcome.Coupon
	for n := first; n <= last; n++ {
		coupons = append(coupons, decided(t, n))
	}
	return coupons
}

// record records, and returns what is settled then: see whole.
func record(t testing.TB, l *ledger.Ledger, coupons ...firstcome.Coupon) flow.Settled {
	t.Helper()
	settled, err := l.Record(context.Background(), "c", coupons)
	if err != nil {
		t.Fatal(err)
	}
	return whole(t, l, settled)
}

// whole returns the number through which a call said that all are settled, and all of
// those up to it that are unrecorded.
func whole(t testing.TB, l *ledger.Ledger, said flow.Settled) flow.Settled {
	t.Helper()
	all, err := l.SettledSince(context.Background(), "c", 0)
	if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) {
		t.Fatal(err)
	}
	if all.Order != said.Order || all.Through != said.Through {
		t.Errorf("it is settled through %d in the order %d, and the call said %+v", all.Through, all.Order, said)
	}
	numbers := slices.DeleteFunc(all.Unrecorded, func(n int64) bool { return n > said.Through })
	if len(numbers) == 0 {
		numbers = nil
	}
	return flow.Settled{Through: said.Through, Unrecorded: numbers}
}

// refused expects that the ledger refuses, and writes nothing.
func refused(t testing.TB, l *ledger.Ledger, why string, coupons ...firstcome.Coupon) {
	t.Helper()
	before := books(t, l)
	_, err := l.Record(context.Background(), "c", coupons)
	if !errors.Is(err, flow.ErrRefused) {
		t.Errorf("%s: got %v, want a refusal", why, err)
	}
	same(t, why, before, books(t, l))
}

// books returns all that the ledger says of the campaign.
func books(t testing.TB, l *ledger.Ledger) (all struct {
	InForce, Issued, Position int64
	Coupons                   []firstcome.Coupon
	Facts                     []string
},
) {
	t.Helper()
	status, err := l.Campaign(context.Background(), "c")
	if err != nil {
		t.Fatal(err)
	}
	all.InForce, all.Issued, all.Position = status.InForce, status.Issued, status.Position
	err = l.Coupons(context.Background(), "c", ledger.Page{Voided: true}, func(c firstcome.Coupon) error {
		all.Coupons = append(all.Coupons, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = l.Facts(context.Background(), "c", 0, 1_000_000, func(f firstcome.Fact) error {
		all.Facts = append(all.Facts, fmt.Sprint(f.Position, f.Kind, f.Coupon.Number))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestF41WhatIsRecordedAgainIsDone(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		same(t, "settled", flow.Settled{Through: 5}, record(t, l, between(t, 1, 5)...))
		before := books(t, l)
		same(t, "settled again", flow.Settled{Through: 5}, record(t, l, between(t, 1, 5)...))
		same(t, "the books", before, books(t, l))
		for n := range before.Coupons {
			want := decided(t, int64(n+1))
			want.Epoch, want.Recorded = 0, true
			same(t, "the coupon", want, before.Coupons[n])
		}
	})
}

func TestF42HalfOfABatchMayBeRecordedAlready(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		record(t, l, between(t, 1, 3)...)
		same(t, "settled", flow.Settled{Through: 6}, record(t, l, between(t, 2, 6)...))
		same(t, "settled", flow.Settled{Through: 6}, record(t, l, decided(t, 5), decided(t, 2), decided(t, 2)))
		same(t, "settled, with a gap", flow.Settled{Through: 6}, record(t, l, decided(t, 8)))
		same(t, "settled, without", flow.Settled{Through: 8}, record(t, l, decided(t, 7), decided(t, 8)))
		got := books(t, l)
		same(t, "in force", int64(8), got.InForce)
		same(t, "facts", []string{
			"1coupon.issued1", "2coupon.issued2", "3coupon.issued3", "4coupon.issued4", "5coupon.issued5", "6coupon.issued6",
			"7coupon.issued8", "8coupon.issued7",
		}, got.Facts)
	})
}

func TestWhatWouldBreakAPromiseIsRefusedWhole(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 5)
		record(t, l, between(t, 1, 3)...)
		with := func(number int64, edit func(*firstcome.Coupon)) firstcome.Coupon {
			c := decided(t, number)
			edit(&c)
			return c
		}
		fourth := decided(t, 4)
		refused(t, l, "another user under a known number", fourth, with(2, func(c *firstcome.Coupon) { c.User = "x" }))
		refused(t, l, "another code", fourth, with(2, func(c *firstcome.Coupon) { c.Code = secret(t).Code("c", 9) }))
		refused(t, l, "another instant", fourth, with(2, func(c *firstcome.Coupon) { c.IssuedAt = c.IssuedAt.Add(time.Microsecond) }))
		refused(t, l, "other terms", fourth, with(2, func(c *firstcome.Coupon) { c.TermsVersion = 2 }))
		refused(t, l, "terms that are none", with(4, func(c *firstcome.Coupon) { c.TermsVersion = 2 }))
		refused(t, l, "a user who holds one", fourth, with(5, func(c *firstcome.Coupon) { c.User = "user-1" }))
		refused(t, l, "a user twice in the batch", fourth, with(5, func(c *firstcome.Coupon) { c.User = "user-4" }))
		refused(t, l, "a number twice in the batch", fourth, with(4, func(c *firstcome.Coupon) { c.User = "x" }))
		refused(t, l, "over the quantity by one", between(t, 1, 6)...)
		refused(t, l, "another epoch", fourth, with(5, func(c *firstcome.Coupon) { c.Epoch = 2 }))
		refused(t, l, "no number", with(0, func(*firstcome.Coupon) {}))
		refused(t, l, "no user", with(4, func(c *firstcome.Coupon) { c.User = "\x00" }))
		refused(t, l, "no code", with(4, func(c *firstcome.Coupon) { c.Code = "" }))
		refused(t, l, "another campaign", with(4, func(c *firstcome.Coupon) { c.Campaign = "d" }))
		if _, err := l.Record(t.Context(), "d", []firstcome.Coupon{with(1, func(c *firstcome.Coupon) { c.Campaign = "d" })}); !errors.Is(err, flow.ErrRefused) {
			t.Errorf("an unknown campaign: %v", err)
		}
		old := with(3, func(c *firstcome.Coupon) { c.Epoch = 7 })
		same(t, "settled: a known coupon of another epoch is done", flow.Settled{Through: 5}, record(t, l, old, fourth, decided(t, 5)))
	})
}

func TestTheLedgerOfAnotherGateRecordsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firstcome.db")
	l, stop := open(t, path, nil)
	create(t, l, "c", 5)
	if _, err := l.Record(t.Context(), "c", between(t, 1, 1)); !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("the gate ledger: %v", err)
	}
	stop()
	l = remoteAt(t, path)
	if _, err := l.Record(t.Context(), "c", between(t, 1, 1)); !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("a campaign of the gate ledger: %v", err)
	}
	create(t, l, "mine", 5)
	if _, err := l.Claim(t.Context(), "mine", []firstcome.UserID{"a"}); !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("the ledger decided a claim of a remote gate: %v", err)
	}
}

// TestF45F51OverlappingBatchesInAnyOrderLeaveTheSameLedger has two recorders give
// duplicated, reordered and overlapping batches at once.
func TestF45F51OverlappingBatchesInAnyOrderLeaveTheSameLedger(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		const last = 400
		l := remote(t, name, last)
		var wait sync.WaitGroup
		nodes := []*ledger.Ledger{l, l}
		if ledger.OnServer(name) {
			nodes[1] = remoteAt(t, name)
		}
		for recorder := range uint64(2) {
			wait.Go(func() {
				random := seed.Rand(t, recorder)
				var batches [][]firstcome.Coupon
				const step = 5 // each batch goes on to the next one's first, so that every number is given
				for first := int64(1); first <= last; first += step {
					batches = append(batches, between(t, first, min(last, first+step-1+random.Int64N(20))))
				}
				batches = append(batches, between(t, last, last)) // no other one may reach so far
				batches = append(batches, batches...)
				random.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
				for _, batch := range batches {
					if _, err := nodes[recorder].Record(t.Context(), "c", batch); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wait.Wait()
		same(t, "settled", flow.Settled{Through: last}, record(t, l))
		got := books(t, l)
		same(t, "counters", []int64{last, last, last}, []int64{got.InForce, got.Issued, got.Position})
		for n, c := range got.Coupons {
			c.Epoch, c.Recorded = 1, false
			if diff := cmp.Diff(decided(t, int64(n+1)), c); diff != "" {
				t.Fatal(diff)
			}
		}
		slices.Sort(got.Facts)
		same(t, "facts", last, len(slices.Compact(got.Facts)))
	})
}

// TestF18ALateRecorderFindsItsBatchDone has a recorder frozen with a batch, while the
// gate is rebuilt under a new epoch and another recorder drains what it held.
func TestF18ALateRecorderFindsItsBatchDone(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		held := between(t, 1, 5)
		record(t, l, held[:4]...)
		if _, err := beside(t, name).Exec(`UPDATE campaigns SET epoch = 2 WHERE id = 'c'`); err != nil {
			t.Fatal(err)
		}
		before := books(t, l)
		same(t, "settled", flow.Settled{Through: 4}, record(t, l, held[:4]...))
		same(t, "the books", before, books(t, l))
		refused(t, l, "what nobody drained belongs to the epoch that is over", held...)
	})
}
