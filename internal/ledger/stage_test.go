package ledger_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// onEach runs a test with the name of a new ledger in each kind of database, beside other tests.
func onEach(t *testing.T, test func(t *testing.T, name string)) {
	t.Parallel() // they wait for their servers
	for kind, database := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, database(t))
		})
	}
}

// onServers runs a test on each kind of database that nodes may share, beside other tests.
func onServers(t *testing.T, test func(t *testing.T, kind services.Kind)) {
	t.Parallel() // they wait for their servers
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

// file returns the name of a new ledger in a file.
func file(t testing.TB) string { return filepath.Join(t.TempDir(), "firstcome.db") }

// serve opens a ledger and runs it until stop is called or the test ends.
func serve(t testing.TB, name string, o ledger.Options) (l *ledger.Ledger, stop func()) {
	t.Helper()
	o.Owner, o.Secret = "a test", stage.Secret()
	l, err := ledger.Open(context.Background(), name, o)
	stage.Must(t, err)
	return l, stage.Serve(t, l)
}

// start serves a ledger that decides, by a clock or, if that is nil, its own.
func start(t testing.TB, name string, clock func() time.Time) *ledger.Ledger {
	t.Helper()
	l, _ := serve(t, name, ledger.Options{Clock: clock})
	return l
}

// remoteAt serves a ledger beside a remote gate.
func remoteAt(t testing.TB, name string) *ledger.Ledger {
	t.Helper()
	l, _ := serve(t, name, ledger.Options{Gate: "redis:test"})
	return l
}

// remote is remoteAt with the campaign c in the ledger.
func remote(t testing.TB, name string, quantity int64) *ledger.Ledger {
	t.Helper()
	l := remoteAt(t, name)
	create(t, l, "c", quantity)
	return l
}

// migrated makes a ledger's tables, and returns its name.
func migrated(t testing.TB, name string) string {
	t.Helper()
	_, stop := serve(t, name, ledger.Options{})
	stop()
	return name
}

// reader opens a ledger beside those who use it, as the command line does.
func reader(t testing.TB, name string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.OpenShared(t.Context(), name)
	stage.Must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// openError opens a ledger, which has to fail, and returns why.
func openError(t testing.TB, name string) string {
	t.Helper()
	l, err := ledger.Open(t.Context(), name, ledger.Options{Owner: "another", Secret: stage.Secret()})
	if err == nil {
		t.Errorf("%s was opened: %v", sqldb.Masked(name), l.Close())
		return ""
	}
	return err.Error()
}

func wantAdvice(t testing.TB, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%q does not say %q", got, part)
		}
	}
}

// execute runs statements.
func execute(t testing.TB, db interface {
	Exec(query string, args ...any) (sql.Result, error)
}, statements ...string,
) {
	t.Helper()
	for _, s := range statements {
		stage.Must(t, stage.Err(db.Exec(s)))
	}
}

// terms returns the terms of a campaign.
func terms(quantity int64) firstcome.Terms {
	return firstcome.Terms{Name: "Test", Quantity: quantity, Answer: firstcome.Recorded, Benefit: []byte(`{"percent":20}`)}
}

// create makes a campaign.
func create(t testing.TB, l *ledger.Ledger, id firstcome.CampaignID, quantity int64) {
	t.Helper()
	stage.Must(t, l.Campaigns.Create(context.Background(), "test", id, terms(quantity)))
}

// claim claims and returns what is answered, like "issued:1 sold_out:0".
func claim(t testing.TB, l gate.Decider, id firstcome.CampaignID, users ...firstcome.UserID) string {
	t.Helper()
	decisions, err := l.Claim(context.Background(), id, users)
	stage.Must(t, err)
	var words []string
	for _, d := range decisions {
		words = append(words, fmt.Sprintf("%v:%d", d.Outcome, d.Coupon.Number))
	}
	return strings.Join(words, " ")
}

// void voids a number.
func void(t testing.TB, l *ledger.Ledger, id firstcome.CampaignID, number int64) {
	t.Helper()
	stage.Must(t, stage.Err(l.Campaigns.Void(context.Background(), "test", id, number, "a mistake")))
}

func users(names ...firstcome.UserID) []firstcome.UserID { return names }

// begin begins a transaction by hand, which runs the statements.
func begin(t testing.TB, db *sql.DB, statements ...string) *sql.Tx {
	t.Helper()
	hand, err := db.BeginTx(context.Background(), nil)
	stage.Must(t, err)
	t.Cleanup(func() { _ = hand.Rollback() })
	execute(t, hand, statements...)
	return hand
}

// parse returns the parts of a server's URL.
func parse(t testing.TB, at string) *url.URL {
	t.Helper()
	u, err := url.Parse(at)
	stage.Must(t, err)
	return u
}

// through returns a proxy to a database's server, and the database's name through it.
func through(t testing.TB, name string) (proxy *services.Proxy, far string) {
	t.Helper()
	proxy = services.Through(t, parse(t, name).Host)
	far, err := proxy.URL(name)
	stage.Must(t, err)
	return proxy, far
}

// status returns what the ledger says of the campaign c.
func status(t testing.TB, l *ledger.Ledger) ledger.Status {
	t.Helper()
	s, err := l.Reads.Campaign(context.Background(), "c")
	stage.Must(t, err)
	return s
}

// allCoupons returns the coupons of the campaign c in number order, also those that are voided.
func allCoupons(t testing.TB, l *ledger.Ledger) (all []firstcome.Coupon) {
	t.Helper()
	stage.Must(t, l.Reads.Coupons(context.Background(), "c", ledger.Page{Voided: true}, func(c firstcome.Coupon) error {
		all = append(all, c)
		return nil
	}))
	return all
}

// actions returns the actions of the audit log, the latest first, of a campaign or, if that is empty, all.
func actions(t testing.TB, l *ledger.Ledger, id firstcome.CampaignID) (all []string) {
	t.Helper()
	log, err := l.Reads.AuditLog(context.Background(), ledger.LogFilter{Campaign: id, Limit: 100})
	stage.Must(t, err)
	for _, e := range log {
		all = append(all, e.Action)
	}
	return all
}

// examine returns what is found of a ledger's server.
func examine(t testing.TB, name string) conform.Examination {
	t.Helper()
	return conform.Examined(t, sqldb.Examine(t.Context(), name), services.Password)
}

// database makes a database on a server, with the ledger's tables in it or not.
func database(t testing.TB, server *services.Server, tables bool) string {
	t.Helper()
	name, err := server.Database(t.Context())
	stage.Must(t, err)
	if tables {
		migrated(t, name)
	}
	return name
}
