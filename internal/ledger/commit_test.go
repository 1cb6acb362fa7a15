package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/stage"
)

// A losing database is SQLite, which may fail at COMMIT: what became of that transaction is not told.
type losing struct {
	real driver.Driver
	file string
	loss atomic.Int32 // one of the following
}

const (
	noLoss    int32 = iota
	theAnswer       // the transaction is committed
	theCommit       // it is not
)

var errDisk = errors.New("disk I/O error")

func (d *losing) Connect(context.Context) (driver.Conn, error) {
	c, err := d.real.Open(sqldb.DSN(d.file, nil))
	if err != nil {
		return nil, err
	}
	return losingConn{c, c.(sqlite.DBStatus), d}, nil
}

func (d *losing) Driver() driver.Driver { return d.real }

type losingConn struct {
	driver.Conn
	sqlite.DBStatus
	from *losing
}

func (c losingConn) Prepare(query string) (driver.Stmt, error) {
	s, err := c.Conn.Prepare(query)
	if err == nil && query == `COMMIT` {
		s = losingCommit{s, c.from}
	}
	return s, err
}

type losingCommit struct {
	driver.Stmt
	from *losing
}

// ExecContext commits, or not.
func (s losingCommit) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	loss := s.from.loss.Load()
	if loss == theCommit {
		return nil, errDisk
	}
	done, err := s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	if err == nil && loss == theAnswer {
		err = errDisk
	}
	return done, err
}

// losingLedger runs a ledger, with the campaign c of 5 coupons, that writes by way of what is returned beside it.
func losingLedger(t *testing.T) (*Ledger, *losing) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "firstcome.db")
	l := opened(t, path, "")
	disk := &losing{real: l.db.Write.Driver(), file: path}
	stage.Must(t, l.db.Write.Close())
	l.db.Write = sql.OpenDB(disk)
	l.db.Write.SetMaxOpenConns(1)
	stage.Run(t, l.Run)
	quantity(t, l, 5)
	return l, disk
}

// claimed is what users are answered, like "issued:1 sold_out:0", or why they are not.
func claimed(t *testing.T, l *Ledger, users ...firstcome.UserID) string {
	t.Helper()
	decisions, err := l.Gate.Claim(t.Context(), "c", users)
	if err != nil {
		return err.Error()
	}
	var words []string
	for _, d := range decisions {
		words = append(words, fmt.Sprintf("%v:%d", d.Outcome, d.Coupon.Number))
	}
	return strings.Join(words, " ")
}

// TestF52WhoAsksAgainBehindACommitThatIsUnknownFindsWhatItDid has SQLite fail at COMMIT, behind it or in its
// place, with claims and with a void, which then are asked again.
func TestF52WhoAsksAgainBehindACommitThatIsUnknownFindsWhatItDid(t *testing.T) {
	for what, c := range map[string]struct {
		loss          int32
		again, voided string
	}{
		"it is committed": {theAnswer, "already_issued:2 already_issued:3 issued:4", firstcome.ErrAlreadyVoided.Error()},
		"it is not":       {theCommit, "issued:2 issued:3 issued:4", "<nil>"},
	} {
		t.Run(what, func(t *testing.T) {
			l, disk := losingLedger(t)
			want := func(what, want, got string) {
				t.Helper()
				if !strings.HasSuffix(got, want) {
					t.Errorf("%s: %s, want %s", what, got, want)
				}
			}
			void := func() string {
				_, err := l.Campaigns.Void(t.Context(), "test", "c", 1, "r")
				return fmt.Sprint(err)
			}
			want("before", "issued:1", claimed(t, l, "a"))
			disk.loss.Store(c.loss)
			want("unknown", "write to the ledger: whether it was committed is unknown: disk I/O error", claimed(t, l, "b", "d"))
			disk.loss.Store(noLoss)
			want("asked again", c.again, claimed(t, l, "b", "d", "e"))
			disk.loss.Store(c.loss)
			want("an unknown void", "write to the ledger: whether it was committed is unknown: disk I/O error", void())
			disk.loss.Store(noLoss)
			want("voided again", c.voided, void())
			want("what is left", "issued:5 issued:6 sold_out:0", claimed(t, l, "f", "a", "g"))
			wantOnce(t, l)
		})
	}
}

// wantOnce wants six coupons, of which one is void, and each fact of them once.
func wantOnce(t *testing.T, l *Ledger) {
	t.Helper()
	s, err := l.Reads.Campaign(t.Context(), "c")
	if err != nil || s.InForce != 5 || s.Issued != 6 || s.LastNumber != 6 || s.Position != 7 || s.Version != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	facts, coupons := 0, 0
	err = l.Reads.Facts(t.Context(), "c", 0, 100, func(firstcome.Fact) error { facts++; return nil })
	all := l.Reads.Coupons(t.Context(), "c", Page{Voided: true}, func(firstcome.Coupon) error { coupons++; return nil })
	if err != nil || all != nil || facts != 7 || coupons != 6 {
		t.Errorf("%d facts of %d coupons: %v, %v", facts, coupons, err, all)
	}
}

// TestF71AServiceBehindACommitThatIsUnknownGoesOnWithTheNext has SQLite fail at COMMIT, behind it or in its place, while
// people join, are served and leave.
func TestF71AServiceBehindACommitThatIsUnknownGoesOnWithTheNext(t *testing.T) {
	for what, c := range map[string]struct {
		loss  int32
		first int64 // number that the service behind the unknown one issues
	}{"it is committed": {theAnswer, 3}, "it is not": {theCommit, 1}} {
		t.Run(what, func(t *testing.T) {
			l, disk := losingLedger(t)
			stage.Must(t, stage.Err(l.Campaigns.SetTerms(t.Context(), "test", "c", 0, func(t *firstcome.Terms) { t.Pace = &firstcome.Pace{} })))
			unknown := func(do func() error) {
				t.Helper()
				disk.loss.Store(c.loss)
				if err := do(); !errors.Is(err, sqldb.ErrUnknown) {
					t.Errorf("the commit is lost: %v", err)
				}
				disk.loss.Store(noLoss)
			}
			all := []firstcome.UserID{"a", "b", "c", "d", "e", "f", "g", "h"}
			unknown(func() error { return stage.Err(l.Gate.Claim(t.Context(), "c", all)) })
			decisions, err := l.Gate.Claim(t.Context(), "c", all)
			stage.Must(t, err)
			for n, d := range decisions {
				if d.Place.Ticket != int64(n+1) {
					t.Errorf("%s has the ticket %d", all[n], d.Place.Ticket)
				}
			}
			unknown(func() error { return stage.Err(l.Gate.Serve(t.Context(), "c", 2)) })
			unknown(func() error { return stage.Err(l.Gate.Leave(t.Context(), "c", "d")) })
			stage.Must(t, stage.Err(l.Gate.Leave(t.Context(), "c", "d")))
			served, err := l.Gate.Serve(t.Context(), "c", 9)
			if err != nil || len(served.Coupons) == 0 || served.Coupons[0].Number != c.first || served.Ended != "sold_out" {
				t.Errorf("%+v, %v", served, err)
			}
			var order []firstcome.UserID
			stage.Must(t, l.Reads.Coupons(t.Context(), "c", Page{}, func(c firstcome.Coupon) error {
				order = append(order, c.User)
				return nil
			}))
			if got := fmt.Sprint(order); got != "[a b c e f]" {
				t.Errorf("served were %s", got)
			}
		})
	}
}
