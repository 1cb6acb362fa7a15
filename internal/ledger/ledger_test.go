package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// create makes a campaign.
func create(t testing.TB, l *ledger.Ledger, id firstcome.CampaignID, quantity int64) {
	t.Helper()
	_, err := l.Create(context.Background(), "test", id, firstcome.Terms{
		Name: "Test", Quantity: quantity, Answer: firstcome.Recorded, Benefit: []byte(`{"percent":20}`),
	})
	stage.Must(t, err)
}

// claim claims and returns what is answered, like "issued:1 sold_out:0".
func claim(t testing.TB, l *ledger.Ledger, id firstcome.CampaignID, users ...firstcome.UserID) string {
	t.Helper()
	decisions, err := l.Claim(context.Background(), id, users)
	stage.Must(t, err)
	var words []string
	for _, d := range decisions {
		words = append(words, fmt.Sprintf("%v:%d", d.Outcome, d.Coupon.Number))
	}
	return strings.Join(words, " ")
}

func same(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// raw opens the file beside the ledger, as an intruder would.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	stage.Must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestF55ASecondProcessIsToldWhoHasTheLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firstcome.db")
	_, stop := open(t, path, nil)
	_, err := ledger.Open(t.Context(), path, ledger.Options{Owner: "the second", Secret: secret(t)})
	if err == nil || !strings.Contains(err.Error(), "process ") || !strings.Contains(err.Error(), "a test") {
		t.Errorf("the second was told: %v", err)
	}
	stop()
	_, stop = open(t, path, nil)
	stop()
}

func TestF56ASchemaThatIsCompatibleWithNewerBinariesOnlyIsRefusedWithAdvice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firstcome.db")
	_, stop := open(t, path, nil)
	stop()
	db := raw(t, path)
	for _, statement := range []string{
		`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`,
		`UPDATE compatibility SET compatible_from = 9998`,
	} {
		stage.Must(t, stage.Err(db.Exec(statement)))
	}
	for name, open := range map[string]func() error{
		"Open": func() error {
			_, err := ledger.Open(t.Context(), path, ledger.Options{Secret: secret(t)})
			return err
		},
		"OpenShared": func() error {
			_, err := ledger.OpenShared(t.Context(), path)
			return err
		},
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), "run the newer firstcome") || !strings.Contains(err.Error(), "9998") {
			t.Errorf("%s: %v", name, err)
		}
		stage.Must(t, stage.Err(db.Exec(`DROP TABLE IF EXISTS compatibility`)))
		if err := open(); err == nil || !strings.Contains(err.Error(), "run the newer firstcome") {
			t.Errorf("%s, where the ledger does not say so: %v", name, err)
		}
		stage.Must(t, stage.Err(db.Exec(`CREATE TABLE compatibility AS SELECT 9998 AS compatible_from`)))
	}
}

func TestCouponsSurviveTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firstcome.db")
	l, stop := open(t, path, nil)
	create(t, l, "c", 2)
	same(t, "before", "issued:1 issued:2 sold_out:0", claim(t, l, "c", "a", "b", "x"))
	stop()
	l, stop = open(t, path, nil)
	defer stop()
	same(t, "after", "already_issued:2 already_issued:1 sold_out:0", claim(t, l, "c", "b", "a", "x"))
	wrong, err := l.Verify(t.Context())
	if err != nil || len(wrong) > 0 {
		t.Errorf("the file is unsound: %v %v", wrong, err)
	}
}

func TestF16TheGatesClockNeverGoesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firstcome.db")
	var clock atomic.Int64
	noon := time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC)
	clock.Store(noon.UnixNano())
	now := func() time.Time { return time.Unix(0, clock.Load()) }
	l, stop := open(t, path, now)
	_, err := l.Create(t.Context(), "test", "c", firstcome.Terms{
		Name: "Test", Quantity: 9, OpensAt: noon.Add(30 * time.Minute), Answer: firstcome.Recorded, Benefit: []byte(`{}`),
	})
	stage.Must(t, err)
	same(t, "before opening", "not_open:0", claim(t, l, "c", "a"))
	clock.Store(noon.Add(time.Hour).UnixNano()) // the clock jumps
	same(t, "after the jump", "issued:1", claim(t, l, "c", "a"))
	clock.Store(noon.UnixNano()) // and back
	same(t, "after the jump back", "issued:2", claim(t, l, "c", "b"))
	stop()
	l, stop = open(t, path, now)
	defer stop()
	same(t, "after a restart with the clock back", "issued:3", claim(t, l, "c", "c"))
	var times []time.Time
	err = l.Coupons(t.Context(), "c", ledger.Page{}, func(c firstcome.Coupon) error {
		times = append(times, c.IssuedAt)
		return nil
	})
	stage.Must(t, err)
	later := noon.Add(time.Hour)
	same(t, "issue times", []time.Time{later, later, later}, times)
}

// TestF52AClaimWhoseCommitIsUnknownMayBeAskedAgain lets the caller's time end while
// the transaction cannot begin, and asks again.
func TestF52AClaimWhoseCommitIsUnknownMayBeAskedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firstcome.db")
	l := start(t, path, nil)
	create(t, l, "c", 10)
	lock, err := raw(t, path).Begin()
	stage.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l.Claim(ctx, "c", []firstcome.UserID{"a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	stage.Must(t, lock.Rollback())
	claim(t, l, "c", "a", "b")
	same(t, "again", "already_issued:1 already_issued:2 issued:3", claim(t, l, "c", "a", "b", "c"))
}

// TestAChangeIsNotLeftToComeLater ends the operator's request while the ledger is
// held up: the change must not return before it is done, because what a node may
// repeat is forgotten only until then.
func TestAChangeIsNotLeftToComeLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firstcome.db")
	l := start(t, path, nil)
	create(t, l, "c", 1)
	claim(t, l, "c", "a")
	lock, err := raw(t, path).Begin()
	stage.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	voided := make(chan error, 1)
	go func() {
		_, err := l.Void(ctx, "test", "c", 1, "test")
		voided <- err
	}()
	cancel()
	select {
	case err := <-voided:
		t.Errorf("the void returned while the ledger was held up: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	stage.Must(t, lock.Rollback())
	if err := <-voided; err != nil {
		t.Error(err)
	}
	same(t, "afterwards", "issued:2", claim(t, l, "c", "b"))
}

func TestACouponKeepsTheTermsUnderWhichItWasIssued(t *testing.T) {
	l := start(t, filepath.Join(t.TempDir(), "firstcome.db"), nil)
	create(t, l, "c", 10)
	claim(t, l, "c", "a")
	if _, err := l.Void(t.Context(), "test", "c", 1, "a mistake"); err != nil { // a change that is not one of terms
		t.Fatal(err)
	}
	_, err := l.SetTerms(t.Context(), "test", "c", 2, func(terms *firstcome.Terms) {
		terms.Benefit = []byte(`{"percent":30}`)
	})
	stage.Must(t, err)
	claim(t, l, "c", "a")
	benefits := map[int64]string{}
	err = l.Coupons(t.Context(), "c", ledger.Page{Voided: true}, func(c firstcome.Coupon) error {
		terms, err := l.Terms(t.Context(), "c", c.TermsVersion)
		benefits[c.Number] = string(terms.Benefit)
		return err
	})
	stage.Must(t, err)
	same(t, "benefits", map[int64]string{1: `{"percent":20}`, 2: `{"percent":30}`}, benefits)
}

func TestAStaleChangeIsRefusedAndARepeatedOneIsOne(t *testing.T) {
	l := start(t, filepath.Join(t.TempDir(), "firstcome.db"), nil)
	create(t, l, "c", 10)
	for _, made := range []int64{2, 0} {
		version, err := l.Switch(t.Context(), "test", "c", ledger.Pause)
		if err != nil || version != made {
			t.Fatalf("it made version %d, %v, and should make %d", version, err, made)
		}
	}
	if status, err := l.Campaign(t.Context(), "c"); err != nil || status.Version != 2 || !status.Paused {
		t.Fatalf("got %+v, %v", status, err)
	}
	_, err := l.SetTerms(t.Context(), "test", "c", 1, func(terms *firstcome.Terms) {
		terms.Name = "stale"
	})
	if !errors.Is(err, firstcome.ErrStale) {
		t.Errorf("got %v", err)
	}
	log, err := l.AuditLog(t.Context(), ledger.LogFilter{Campaign: "c", Limit: 10})
	stage.Must(t, err)
	var actions []string
	for _, e := range log {
		actions = append(actions, e.Action)
	}
	same(t, "audit log", []string{"campaign.pause", "campaign.create"}, actions)
}

func TestFactsHaveDensePositionsInTheOrderOfTheLedger(t *testing.T) {
	l := start(t, filepath.Join(t.TempDir(), "firstcome.db"), nil)
	create(t, l, "c", 4)
	news, forget := l.NewFacts("c")
	defer forget()
	claim(t, l, "c", "a", "b", "c")
	<-news
	for _, number := range []int64{2, 1} {
		stage.Must(t, stage.Err(l.Void(t.Context(), "test", "c", number, "test")))
	}
	claim(t, l, "c", "a", "d")
	all := []string{"1 issued 1", "2 issued 2", "3 issued 3", "4 voided 2", "5 voided 1", "6 issued 4", "7 issued 5"}
	for after := range int64(8) {
		for limit := range 8 {
			var got []string
			err := l.Facts(t.Context(), "c", after, limit, func(f firstcome.Fact) error {
				got = append(got, fmt.Sprintf("%d %s %d", f.Position, strings.TrimPrefix(string(f.Kind), "coupon."), f.Coupon.Number))
				return nil
			})
			stage.Must(t, err)
			want := all[min(after, 7):min(int(after)+limit, 7)]
			if len(want)+len(got) > 0 {
				same(t, fmt.Sprintf("after %d, at most %d", after, limit), want, got)
			}
		}
	}
}

func TestWhoWaitsForFactsOfOneCampaignIsNotWokenByAnother(t *testing.T) {
	l := start(t, filepath.Join(t.TempDir(), "firstcome.db"), nil)
	create(t, l, "c", 4)
	create(t, l, "d", 4)
	news, forget := l.NewFacts("c")
	defer forget()
	claim(t, l, "d", "a")
	select {
	case <-news:
		t.Error("woken")
	default:
	}
	claim(t, l, "c", "a")
	<-news
}

func TestTheSchemaRefusesWhatWouldBreakAPromise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firstcome.db")
	l := start(t, path, nil)
	create(t, l, "c", 2)
	claim(t, l, "c", "a", "b")
	db := raw(t, path)
	const insert = `INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position) VALUES `
	for promise, statement := range map[string]string{
		"P1": `UPDATE campaigns SET in_force = 3 WHERE id = 'c'`,
		"P3": insert + `('c', 3, 'a', 'x', 1, 1, 1, 3)`,
		"P4": insert + `('c', 2, 'z', 'x', 1, 1, 1, 3)`,
	} {
		if _, err := db.Exec(statement); err == nil || !strings.Contains(err.Error(), "constraint failed") {
			t.Errorf("%s: %v", promise, err)
		}
	}
	if _, err := db.Exec(insert + `('c', 3, 'A', 'x', 1, 1, 1, 3)`); err != nil {
		t.Errorf("A is another user than a: %v", err)
	}
}

func TestABackupIsALedger(t *testing.T) {
	dir := t.TempDir()
	l := start(t, filepath.Join(dir, "firstcome.db"), nil)
	create(t, l, "c", 3)
	claim(t, l, "c", "a", "b")
	shared, err := ledger.OpenShared(t.Context(), filepath.Join(dir, "firstcome.db"))
	stage.Must(t, err)
	defer shared.Close()
	backup := filepath.Join(dir, "backup.db")
	stage.Must(t, shared.Backup(t.Context(), backup))
	if err := shared.Backup(t.Context(), backup); err == nil {
		t.Error("a backup was overwritten")
	}
	claim(t, l, "c", "late")
	restored := start(t, backup, nil)
	same(t, "restored", "already_issued:1 already_issued:2 issued:3 sold_out:0", claim(t, restored, "c", "a", "b", "c", "d"))
}

func TestAGateWithAnotherSecretDecidesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firstcome.db")
	l, stop := open(t, path, nil)
	create(t, l, "c", 3)
	stop()
	other, err := firstcome.NewSecret([]byte("another secret, of 32 bytes and more"))
	stage.Must(t, err)
	l, err = ledger.Open(t.Context(), path, ledger.Options{Secret: other})
	stage.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var ran sync.WaitGroup
	ran.Go(func() { _ = l.Run(ctx) })
	_, err = l.Claim(ctx, "c", []firstcome.UserID{"a"})
	if !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("got %v", err)
	}
	cancel()
	ran.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
