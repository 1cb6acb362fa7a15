package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/internal/sqlgate"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// refused expects that the ledger refuses, and writes nothing.
func refused(t testing.TB, l *ledger.Ledger, why string, coupons ...firstcome.Coupon) {
	t.Helper()
	before := books(t, l)
	_, err := l.Recorder.Record(context.Background(), given(coupons...))
	if !errors.Is(err, record.ErrRefused) {
		t.Errorf("%s: got %v, want a refusal", why, err)
	}
	stage.Same(t, why, before, books(t, l))
}

// books returns all that the ledger says of the campaign.
func books(t testing.TB, l *ledger.Ledger) (all struct {
	InForce, Issued, Position int64
	Coupons                   []firstcome.Coupon
	Facts                     []string
},
) {
	t.Helper()
	c := status(t, l)
	all.InForce, all.Issued, all.Position, all.Coupons = c.InForce, c.Issued, c.Position, allCoupons(t, l)
	stage.Must(t, l.Reads.Facts(context.Background(), "c", 0, 1_000_000, func(f firstcome.Fact) error {
		all.Facts = append(all.Facts, fmt.Sprint(f.Position, f.Kind, f.Coupon.Number))
		return nil
	}))
	return all
}

// A book is a ledger as conform.Ledger looks at it.
type book struct {
	*ledger.Ledger
	*ledger.Recorder
	*sqlgate.Gate
	t    *testing.T
	name string
}

func (b book) Create(ctx context.Context, id firstcome.CampaignID, terms firstcome.Terms) error {
	return b.Ledger.Campaigns.Create(ctx, "test", id, terms)
}

func (b book) Kept(ctx context.Context, id firstcome.CampaignID) (coupons []firstcome.Coupon, letters int, err error) {
	dead, err := b.Reads.DeadLetters(ctx, ledger.Letters{})
	all := books(b.t, b.Ledger)
	if in := int64(len(all.Coupons)); in != all.InForce || in != all.Issued || in != all.Position || in != int64(len(all.Facts)) {
		b.t.Errorf("of %s the ledger counts %+v", id, all)
	}
	return all.Coupons, len(dead), err
}

func (b book) Another() record.Keeper {
	if sqldb.OnServer(b.name) {
		return remoteAt(b.t, b.name).Recorder
	}
	return b.Ledger.Recorder
}

func TestF41F42F44F45F51TheLedgerConforms(t *testing.T) {
	t.Parallel()
	for kind, database := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			conform.Ledger(t, func(t *testing.T) conform.Book {
				name := database(t)
				l := remoteAt(t, name)
				return book{l, l.Recorder, l.Gate, t, name}
			})
		})
	}
}

func TestTheLedgerOfAnotherGateRecordsNothing(t *testing.T) {
	path := file(t)
	l, stop := serve(t, path, ledger.Options{})
	create(t, l, "c", 5)
	if _, err := l.Recorder.Record(t.Context(), given(stage.Coupon("c", 1))); !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("the gate ledger: %v", err)
	}
	stop()
	l = remoteAt(t, path)
	if _, err := l.Recorder.Record(t.Context(), given(stage.Coupon("c", 1))); !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("a campaign of the gate ledger: %v", err)
	}
	create(t, l, "mine", 5)
	if _, err := l.Gate.Claim(t.Context(), "mine", users("a")); !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("the ledger decided a claim of a remote gate: %v", err)
	}
}

// TestANumberAboveTheCeilingIsRefused: no gate may give it, so the entry is forged or damaged, and the numbers after it would jump for good.
func TestANumberAboveTheCeilingIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l, _ := serve(t, name, ledger.Options{Gate: "redis:test", Backlog: 100})
		create(t, l, "c", 1000)
		refused(t, l, "above the ceiling", stage.Coupons("c", 101, 101)...)
		refused(t, l, "partly above the ceiling", stage.Coupons("c", 98, 101)...)
		recordIn(t, l, stage.Coupons("c", 100, 100)...)
		last := status(t, l).LastNumber
		bury(t, l, "forged", append(stage.Coupons("c", 201, 250), stage.Coupons("c", 4951, 5000)...)...)
		stage.Same(t, "the last number after the burial", last, status(t, l).LastNumber)
		for _, letter := range letters(t, l, ledger.Letters{}) {
			stage.Same(t, "the number of "+letter.Payload, int64(0), letter.Number)
		}
		before := books(t, l)
		refused(t, l, "above the next ceiling", stage.Coupons("c", 201, 201)...)
		stage.Same(t, "the books after the burial", before, books(t, l))
		stage.Same(t, "drained", drained(1), recordIn(t, l, stage.Coupons("c", 1, 1)...))
		recordIn(t, l, stage.Coupons("c", 200, 200)...)
		found, err := audit.Ledger(t.Context(), l.Tables().Source(), "c", nil, nil)
		if err != nil || found.Breaches.Total != 0 || found.Letters != 100 {
			t.Errorf("the audit says %+v, %v", found, err)
		}
	})
}

// TestF18ALateRecorderFindsItsBatchDone has a recorder frozen with a batch, while the
// gate is rebuilt under a new epoch and another recorder drains what it held.
func TestF18ALateRecorderFindsItsBatchDone(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 10)
		held := stage.Coupons("c", 1, 5)
		recordIn(t, l, held[:4]...)
		execute(t, services.Beside(t, name), `UPDATE campaigns SET epoch = 2 WHERE id = 'c'`)
		before := books(t, l)
		stage.Same(t, "drained", drained(4), recordIn(t, l, held[:4]...))
		stage.Same(t, "the books", before, books(t, l))
		refused(t, l, "what nobody drained belongs to the epoch that is over", held...)
	})
}
