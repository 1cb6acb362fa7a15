package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
)

// opening is when the remote gate of these tests issues number 0.
var opening = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// onEach runs a test with a ledger in each kind of database, by the name of a new one.
func onEach(t *testing.T, test func(t *testing.T, name string)) {
	for kind, database := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // they wait for their servers
			test(t, database(t))
		})
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
		IssuedAt: opening.Add(time.Duration(number) * time.Millisecond), TermsVersion: 1,
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

// given returns coupons as a recorder gives them.
func given(coupons ...firstcome.Coupon) flow.Batch {
	return flow.Batch{Campaign: "c", Epoch: 1, Coupons: coupons}
}

// record records, and returns what is drained then.
func record(t testing.TB, l *ledger.Ledger, coupons ...firstcome.Coupon) flow.Drained {
	t.Helper()
	return must(t, l)(l.Record(context.Background(), given(coupons...)))
}

// must returns what a call said, and looks whether the ledger says the same of how far it is drained.
func must(t testing.TB, l *ledger.Ledger) func(flow.Drained, error) flow.Drained {
	return func(said flow.Drained, err error) flow.Drained {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		through, err := l.DrainedThrough(context.Background(), "c")
		if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) {
			t.Fatal(err)
		}
		if through != said.Through {
			t.Errorf("it is drained through %d, and the call said %+v", through, said)
		}
		return said
	}
}

// drained returns what a call says that drained the campaign through a number, and was given the dead letters of others.
func drained(t testing.TB, through int64, letters ...int64) flow.Drained {
	t.Helper()
	d := flow.Drained{Through: through}
	for _, n := range letters {
		d.Letters = append(d.Letters, decided(t, n))
	}
	return d
}

// refused expects that the ledger refuses, and writes nothing.
func refused(t testing.TB, l *ledger.Ledger, why string, coupons ...firstcome.Coupon) {
	t.Helper()
	before := books(t, l)
	_, err := l.Record(context.Background(), given(coupons...))
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

// A book is a ledger as conform.Ledger looks at it.
type book struct {
	*ledger.Ledger
	t    *testing.T
	name string
}

func (b book) Create(ctx context.Context, id firstcome.CampaignID, terms firstcome.Terms) error {
	_, err := b.Ledger.Create(ctx, "test", id, terms)
	return err
}

func (b book) Kept(ctx context.Context, id firstcome.CampaignID) (coupons []firstcome.Coupon, letters int, err error) {
	dead, err := b.DeadLetters(ctx, ledger.Letters{})
	all := books(b.t, b.Ledger)
	if in := int64(len(all.Coupons)); in != all.InForce || in != all.Issued || in != all.Position || in != int64(len(all.Facts)) {
		b.t.Errorf("of %s the ledger counts %+v", id, all)
	}
	return all.Coupons, len(dead), err
}

func (b book) Another() flow.Keeper {
	if ledger.OnServer(b.name) {
		return remoteAt(b.t, b.name)
	}
	return b.Ledger
}

func TestF41F42F44F45F51TheLedgerConforms(t *testing.T) {
	for kind, database := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			conform.Ledger(t, func(t *testing.T) conform.Book {
				name := database(t)
				return book{remoteAt(t, name), t, name}
			})
		})
	}
}

func TestTheLedgerOfAnotherGateRecordsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firstcome.db")
	l, stop := open(t, path, nil)
	create(t, l, "c", 5)
	if _, err := l.Record(t.Context(), given(decided(t, 1))); !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("the gate ledger: %v", err)
	}
	stop()
	l = remoteAt(t, path)
	if _, err := l.Record(t.Context(), given(decided(t, 1))); !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("a campaign of the gate ledger: %v", err)
	}
	create(t, l, "mine", 5)
	if _, err := l.Claim(t.Context(), "mine", []firstcome.UserID{"a"}); !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("the ledger decided a claim of a remote gate: %v", err)
	}
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
		same(t, "drained", drained(t, 4), record(t, l, held[:4]...))
		same(t, "the books", before, books(t, l))
		refused(t, l, "what nobody drained belongs to the epoch that is over", held...)
	})
}
