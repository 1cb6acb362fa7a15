//go:build !check

package main

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A backup is a backup of a ledger: a file, or a copy of the tables about campaigns.
type backup struct {
	*desk
	file   string           // for SQLite: a ledger itself
	newest map[string]int64 // for a server: the last ids of tables that only grow
}

// copied are the tables whose rows change. growing are the tables whose rows do not.
var copied, growing = []string{"campaigns", "coupons", "tickets", "past_lines", "facts", "changes", "lost", "gate_runs", "followers", "cursors"}, []string{"dead_letters", "audit_log"}

func (d *desk) backup() backup {
	d.t.Helper()
	b := backup{desk: d, newest: map[string]int64{}}
	if !sqldb.OnServer(d.name) {
		b.file = filepath.Join(d.t.TempDir(), "backup.db")
		stage.Must(d.t, d.ledger.Backup(d.t.Context(), b.file))
		return b
	}
	db := services.Beside(d.t, d.name)
	for _, table := range copied {
		stage.Must(d.t, stage.Err(db.Exec("CREATE TABLE kept_"+table+" AS SELECT * FROM "+table)))
	}
	for _, table := range growing {
		var last int64
		stage.Must(d.t, db.QueryRow("SELECT COALESCE(MAX(id), 0) FROM "+table).Scan(&last))
		b.newest[table] = last
	}
	return b
}

// restore restores the ledger from the backup, and returns the desk of a node that starts afterwards.
func (b backup) restore() *desk {
	b.t.Helper()
	if b.file != "" {
		return newDesk(b.t, b.url, b.file, nil)
	}
	db := services.Beside(b.t, b.name)
	db.SetMaxOpenConns(1)
	for _, table := range slices.Backward(copied) { // tables refer to tables before them
		stage.Must(b.t, stage.Err(db.Exec("DELETE FROM "+table)))
	}
	for _, table := range copied {
		columns := strings.Join(b.columns(db, table), ", ")
		stage.Must(b.t, stage.Err(db.Exec("INSERT INTO "+table+" ("+columns+") SELECT "+columns+" FROM kept_"+table)))
		stage.Must(b.t, stage.Err(db.Exec("DROP TABLE kept_"+table)))
	}
	for table, last := range b.newest {
		stage.Must(b.t, stage.Err(db.Exec(fmt.Sprintf("DELETE FROM %s WHERE id > %d", table, last))))
	}
	return newDesk(b.t, b.url, b.name, nil)
}

// columns returns the columns of a table whose values are not generated.
func (b backup) columns(db *sql.DB, table string) []string {
	b.t.Helper()
	query := "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND is_generated = 'NEVER' AND table_name = '" + table + "'"
	if strings.HasPrefix(b.name, "mysql:") {
		query = "SELECT column_name FROM information_schema.columns WHERE table_schema = database() AND extra NOT LIKE '%GENERATED%' AND table_name = '" + table + "'"
	}
	rows, err := db.Query(query)
	names, err := sqldb.AllRows(rows, err, sqldb.One[string])
	stage.Must(b.t, err)
	return names
}

// sound expects that the ledger and its gate keep every promise.
func (d *desk) sound() {
	d.t.Helper()
	found, err := audit.Ledger(d.t.Context(), d.ledger.Tables().Source(), "c", nil, nil)
	stage.Must(d.t, err)
	for _, b := range found.Breaches.Shown {
		d.t.Errorf("the audit finds %s: %s", b.Promise, b.Text)
	}
	campaign := d.status()
	compared, err := compareWithGate(d.t.Context(), d.ledger.Tables().Source(), inspected(d.t, d.options(d.url)), nil, &campaign, nil)
	stage.Must(d.t, err)
	for _, b := range compared.Breaches.Shown {
		d.t.Errorf("gate and ledger differ, %s: %s", b.Promise, b.Text)
	}
}

// terms changes the terms of the campaign c.
func (d *desk) terms(edit func(*firstcome.Terms)) {
	d.t.Helper()
	d.reaches("c", stage.Err(d.ledger.Campaigns.SetTerms(d.t.Context(), "op", "c", 0, edit)))
}

func (d *desk) turn(to firstcome.ChangeKind) {
	d.t.Helper()
	d.reaches("c", stage.Err(d.ledger.Campaigns.ChangeState(d.t.Context(), "op", "c", 0, to)))
}

var closing = time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)

// kept records coupons of new users, and acknowledges their entries.
func (d *desk) kept(users ...firstcome.UserID) (coupons []firstcome.Coupon) {
	d.t.Helper()
	coupons = d.issue("c", users...)
	all := d.journalled()
	d.settle(d.record(coupons...), all[len(all)-1])
	return coupons
}

// behind returns a desk with a ledger that was restored from a backup with ten coupons. After the backup, ten more coupons were issued and five of them
// recorded. Numbers 3 and 12 were voided, number 3's user got number 21, the quantity was raised to 120, a closing time was set, and the campaign was paused.
func behind(t *testing.T, name string) *desk {
	t.Helper()
	d := newDesk(t, services.Redis.Database(t), name, nil, "c")
	d.kept(people("user-", 10)...)
	b := d.backup()
	d.kept(people("more-", 5)...)
	d.issue("c", people("late-", 5)...)
	for _, number := range []int64{3, 12} {
		d.reaches("c", stage.Err(d.ledger.Campaigns.Void(t.Context(), "op", "c", number, "a trial")))
	}
	d.issue("c", "user-2")
	d.terms(func(terms *firstcome.Terms) { terms.Quantity, terms.ClosesAt = 120, closing })
	d.turn(firstcome.ChangePause)
	return b.restore()
}

// TestF54ALedgerThatWasRestoredFromABackupIsNoticed tries every action that would hide or lose data that only the gate has.
func TestF54ALedgerThatWasRestoredFromABackupIsNoticed(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := behind(t, name)
		var told []error
		r := recovery.New(d.ledger.Recorder, d.ledger.Epochs, d.remote.gate.recovery, recovery.NewWatch(func(err error) { told = append(told, err) }), nil)
		over := &gate.Router{Gate: d.remote.gate, Retired: d.ledger.Gate, Ledger: d.ledger.Recorder, Watch: r}
		stage.Same(t, "what a node knows before it looks", nil, r.Refusal("c"))
		r.LookBack(t.Context())
		before := d.status()
		for what, try := range map[string]func() error{
			"a claim": func() error { return stage.Err(over.Claim(t.Context(), "c", people("new-", 1))) },
			"a direct issue": func() error {
				return stage.Err(over.Issue(t.Context(), gate.Order{Actor: "op"}, "c", people("new-", 1)))
			},
			"a change":    func() error { return r.Newest(t.Context(), "c") },
			"a rebuild":   func() error { return stage.Err(r.Rebuild(t.Context(), "op", "c", recovery.Order{})) },
			"a recording": func() error { return stage.Err(r.Guard(d.ledger.Recorder).Record(t.Context(), batch())) },
			"a dead letter": func() error {
				return stage.Err(d.rebuilder().Guard(d.ledger.Recorder).Bury(t.Context(), batch(firstcome.Coupon{Campaign: "c", Number: 22, User: "u"}), "a trial"))
			},
		} {
			if err := try(); !errors.Is(err, gate.ErrLedgerRolledBack) || !strings.Contains(err.Error(), "firstcome gate reconcile c") {
				t.Errorf("%s: %v", what, err)
			}
		}
		state, err := over.State(t.Context(), "c")
		if err != nil || !state.LedgerRolledBack {
			t.Errorf("the gate's state is %+v, %v", state, err)
		}
		after := d.status()
		after.Now, after.Clock, after.Attempt = before.Now, before.Clock, before.Attempt // a rebuild that was refused took a number
		stage.Same(t, "the campaign", before, after)
		stage.Same(t, "how often it was told", 1, len(told))
	})
}

// TestF54AGateThatIsAheadInOneThingAloneIsNotRebuilt has a gate that is unverified after its server's restart, and ahead of the ledger in one value. A
// rebuild would lose this value.
func TestF54AGateThatIsAheadInOneThingAloneIsNotRebuilt(t *testing.T) {
	for field, was := range map[string]string{"epoch": "1", "version": "1", "drained_through": "3"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
			d.kept(people("user-", 3)...)
			d.do("HSET", d.key("campaign"), "last_number", "4", field, "4", "run", "another")
			if err := d.rebuilder().Newest(t.Context(), "c"); !errors.Is(err, gate.ErrLedgerRolledBack) {
				t.Fatalf("a change is told %v", err)
			}
			r := d.watch()
			r.Suspect("c", gate.ErrUnverified)
			stage.Await(t, "a campaign that is refused, and of which nothing is done", recovery.Stats{RolledBack: 1}, r.Stats)
			d.do("HSET", d.key("campaign"), "last_number", "3", field, was)
			stage.Same(t, "what a gate that is not ahead any longer comes to", recovery.Stats{Finished: 1, Lost: 97}, d.decides(r))
		})
	}
}

// TestF54AReconcileBringsBackWhatTheGateHas compares the users' answers with their coupons after a reconcile.
func TestF54AReconcileBringsBackWhatTheGateHas(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := behind(t, name)
		done, err := d.rebuilder().Reconcile(t.Context(), "op", "c")
		stage.Must(t, err)
		d.isWhole(done)
		stage.Same(t, "what was brought back", [4]int64{10, 0, 1, 0}, [4]int64{done.Recovered, done.Letters, done.Voided, done.Unexplained})
		stage.Same(t, "the lost number, and the versions before", [3]int64{1, 1, 5}, [3]int64{done.Lost, done.Behind, done.Adopted.Version})
		if _, err := d.rebuilder().Reconcile(t.Context(), "op", "c"); !errors.Is(err, recovery.ErrNothingToReconcile) {
			t.Errorf("a second reconcile: %v", err)
		}
	})
}

// TestF54AReconcileBringsBackACampaignOfALaterEpoch rebuilds the gate after the backup, and then issues five coupons that are not recorded.
func TestF54AReconcileBringsBackACampaignOfALaterEpoch(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		before := newDesk(t, services.Redis.Database(t), name, nil, "c")
		before.kept(people("user-", 10)...)
		b := before.backup()
		before.kept("more-0")
		stage.Same(t, "the rebuild behind the backup", int64(2), before.rebuilt(before.rebuilder()).Epoch)
		late := before.issue("c", people("late-", 5)...)
		d := b.restore()
		done, err := d.rebuilder().Reconcile(t.Context(), "op", "c")
		stage.Must(t, err)
		stage.Same(t, "the epoch, and what was brought back", []int64{3, 6, 0}, []int64{done.Rebuilt.Epoch, done.Recovered, done.Letters})
		d.sound()
		last := late[4].Number
		stage.Same(t, "who was told behind the backup, and somebody new",
			[]string{"already_issued:11", fmt.Sprint("already_issued:", last), fmt.Sprint("issued:", last+1)}, d.claims("more-0", "late-4", "new"))
	})
}

// journalled returns the entries of the journal of the campaign c.
func (d *desk) journalled() (ids []string) {
	d.t.Helper()
	entries := d.do("XRANGE", d.key("journal"), "-", "+")
	all, err := entries.AsXRange()
	stage.Must(d.t, err)
	for _, e := range all {
		ids = append(ids, e.ID)
	}
	return ids
}

// TestF54P9AReconcileKeepsPeopleInLine has users in line when the backup is made. After the backup, four users were served and two of their coupons recorded,
// one user got a coupon directly, one left, two joined, and the quantity was raised.
func TestF54P9AReconcileKeepsPeopleInLine(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		r := newLine(t, name, 100, 10)
		r.serves(2)
		r.records()
		b := r.backup()
		r.settleAll(r.record(r.serves(2)...))
		r.serves(2)
		r.directly("user-7")
		r.leaves("user-8")
		r.joins("new-0", "new-1")
		r.terms(func(terms *firstcome.Terms) { terms.Quantity = 120 })
		r.desk = b.restore()

		done, err := r.rebuilder().Reconcile(t.Context(), "op", "c")
		stage.Must(t, err)
		stage.Same(t, "who was brought back, who kept their places, and who did not", [3]int64{5, 4, 0}, [3]int64{done.Recovered, done.Carried, done.LostPlaces})
		stage.Same(t, "places", []string{"#1", "#3", "#6", "2.7+0", "#7", "no", "2.10+3", "2.11+4", "2.12+5"},
			r.places("user-0", "user-2", "user-5", "user-6", "user-7", "user-8", "user-9", "new-0", "new-1"))
		r.joins("late")
		stage.Same(t, "who is served", []string{"user-6@2.7", "user-9@2.10"}, tickets(r.serves(2)))
		r.audited()
	})
}

// settleAll acknowledges all entries of the journal, which are in the ledger.
func (r *rewind) settleAll(drained record.Result) {
	r.journal = r.key("journal")
	r.settle(drained, r.entries()...)
}

// isWhole expects that each user of a desk made by behind has the coupon of their last answer.
func (d *desk) isWhole(done recovery.Reconciled) {
	d.t.Helper()
	s := d.status()
	stage.Same(d.t, "quantity, close and pause", []any{int64(120), closing, true, false}, []any{s.Quantity, s.ClosesAt, s.Paused, s.Closed})
	if s.Version <= 5 || s.Epoch < 2 || s.Applied != s.Version || done.Rebuilt.Epoch > s.Epoch {
		d.t.Errorf("the campaign is %+v", s)
	}
	d.sound()
	var want []string
	for n := range 10 {
		want = append(want, fmt.Sprint("already_issued:", n+1))
	}
	want[2] = "already_issued:21"
	stage.Same(d.t, "who was told before the backup", want, d.claims(people("user-", 10)...))
	stage.Same(d.t, "who was told behind it", []string{"already_issued:11", "paused:0", "already_issued:13", "already_issued:16", "already_issued:20"},
		d.claims("more-0", "more-1", "more-2", "late-0", "late-4"))
	d.turn(firstcome.ChangeResume)
	for _, answer := range d.claims("more-1", "new") {
		var number int64
		if _, err := fmt.Sscanf(answer, "issued:%d", &number); err != nil || number <= 21 {
			d.t.Errorf("somebody new is answered %s", answer)
		}
	}
}
