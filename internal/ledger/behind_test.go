package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// seen returns all that a ledger says of the campaign c but the clock's time.
func seen(t *testing.T, l *ledger.Ledger) []string {
	t.Helper()
	status, err := l.Campaign(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	listed, err := l.Campaigns(t.Context(), "", 10)
	if err != nil || len(listed) != 1 {
		t.Fatal(listed, err)
	}
	listed[0].Change = status.Change
	same(t, "in the list", status, listed[0])
	all := []string{fmt.Sprintf("%d in force, %d issued, %d recorded, last number %d, position %d, at %v",
		status.InForce, status.Issued, status.Recorded, status.LastNumber, status.Position, status.Now)}
	err = l.Facts(t.Context(), "c", 0, 100, func(f firstcome.Fact) error {
		all = append(all, fmt.Sprintf("%d %s %d %s", f.Position, f.Kind, f.Coupon.Number, f.Coupon.User))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestACampaignWhoseRowIsBehindItsCouponsIsAsItIs puts the row back to what it was before
// the last coupons, as a kill leaves it, and goes on in every way there is.
func TestACampaignWhoseRowIsBehindItsCouponsIsAsItIs(t *testing.T) {
	const counters = `in_force, issued, last_number, position, decided_at`
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return at }
	then := map[string]func(t *testing.T, l *ledger.Ledger){
		"nothing": func(*testing.T, *ledger.Ledger) {},
		"claims": func(t *testing.T, l *ledger.Ledger) {
			same(t, "claims", "already_issued:3 already_issued:1 issued:5 issued:6 sold_out:0", claim(t, l, "c", "d", "a", "f", "b", "g"))
		},
		"a claim after the clock went back": func(t *testing.T, l *ledger.Ledger) {
			at = at.Add(-time.Hour)
			d, err := l.Claim(t.Context(), "c", []firstcome.UserID{"d", "f"})
			if err != nil || d[1].Coupon.Number != 5 || d[1].At.Before(d[0].Coupon.IssuedAt) {
				t.Errorf("%v, %v", d, err)
			}
		},
		"a void": func(t *testing.T, l *ledger.Ledger) {
			if _, err := l.Void(t.Context(), "test", "c", 4, "r"); err != nil {
				t.Error(err)
			}
			same(t, "claims", "issued:5", claim(t, l, "c", "e"))
		},
		"terms": func(t *testing.T, l *ledger.Ledger) {
			_, err := l.SetTerms(t.Context(), "test", "c", 0, func(terms *firstcome.Terms) error {
				terms.Quantity = 2
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), "3 are") {
				t.Errorf("a quantity of 2 beside 3 in force: %v", err)
			}
			if _, err := l.SetTerms(t.Context(), "test", "c", 0, func(terms *firstcome.Terms) error {
				terms.Quantity = 4
				return nil
			}); err != nil {
				t.Error(err)
			}
			same(t, "claims", "issued:5 sold_out:0", claim(t, l, "c", "f", "g"))
		},
		"a pause": func(t *testing.T, l *ledger.Ledger) {
			for _, to := range []ledger.Switch{ledger.Pause, ledger.Resume} {
				if _, err := l.Switch(t.Context(), "test", "c", to); err != nil {
					t.Error(err)
				}
			}
		},
	}
	for name, goOn := range then {
		t.Run(name, func(t *testing.T) {
			began := at
			var want []string
			for _, behind := range []bool{false, true} {
				at = began
				path := filepath.Join(t.TempDir(), "firstcome.db")
				l, stop := open(t, path, clock)
				create(t, l, "c", 5)
				claim(t, l, "c", "a", "b")
				if _, err := l.Void(t.Context(), "test", "c", 2, "r"); err != nil {
					t.Fatal(err)
				}
				stop()
				db := raw(t, path)
				if _, err := db.Exec(`CREATE TABLE kept AS SELECT ` + counters + ` FROM campaigns`); err != nil {
					t.Fatal(err)
				}
				l, stop = open(t, path, clock)
				for _, user := range []firstcome.UserID{"d", "e"} {
					at = at.Add(time.Second)
					claim(t, l, "c", user)
				}
				stop()
				if behind {
					r, err := db.Exec(`UPDATE campaigns SET (` + counters + `) = (SELECT ` + counters + ` FROM kept) WHERE last_number = 4`)
					if err != nil {
						t.Fatal(err)
					}
					if n, err := r.RowsAffected(); n != 1 || err != nil {
						t.Fatalf("the row was not as a stop leaves it: %v", err)
					}
				}
				l, stop = open(t, path, clock)
				before := seen(t, l)
				at = at.Add(time.Second)
				goOn(t, l)
				got := append(before, seen(t, l)...)
				stop()
				var row string
				err := db.QueryRow(`SELECT in_force || ' in force, ' || issued || ' issued, ' || issued || ' recorded, last number ' || last_number ||
					', position ' || position FROM campaigns`).Scan(&row)
				if last := got[len(before)]; name != "nothing" && (err != nil || !strings.HasPrefix(last, row)) {
					t.Errorf("the row says %s (%v), the ledger said %s", row, err, last)
				}
				if !behind {
					want = got
				}
				same(t, "as if the row had not been behind", want, got)
			}
		})
	}
}

// TestACouponSaysWhatStockIsLeftBehindIt reads what P1 is held by: see coupons.stock.
func TestACouponSaysWhatStockIsLeftBehindIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firstcome.db")
	l := start(t, path, nil)
	create(t, l, "c", 3)
	quantity := func(n int64) {
		_, err := l.SetTerms(t.Context(), "test", "c", 0, func(terms *firstcome.Terms) error {
			terms.Quantity = n
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	claim(t, l, "c", "a", "b", "d", "e")
	if _, err := l.Void(t.Context(), "test", "c", 1, "r"); err != nil {
		t.Fatal(err)
	}
	claim(t, l, "c", "b", "e", "f")
	quantity(firstcome.Unlimited)
	claim(t, l, "c", "g")
	quantity(5)
	claim(t, l, "c", "h")
	var got string
	err := raw(t, path).QueryRow(`SELECT group_concat(coalesce(stock, '-'), ' ' ORDER BY number) FROM coupons`).Scan(&got)
	same(t, "the stock behind each", "2 1 0 0 - 0", got)
	if err != nil {
		t.Error(err)
	}
}

// TestRowsFollowTheirCoupons has claims at more campaigns than one transaction brings up, looks a
// second later, and then whether anything goes on.
func TestRowsFollowTheirCoupons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "firstcome.db")
		l, err := ledger.Open(context.Background(), path, ledger.Options{Secret: secret(t)})
		if err != nil {
			t.Fatal(err)
		}
		commits, refused := 0, 0
		l.OnCommit = func(_ int, _ time.Duration, err error) {
			commits++
			if err != nil && strings.Contains(err.Error(), "not this row") {
				refused++
			}
		}
		defer run(t, l)()
		const campaigns = 300
		db := raw(t, path)
		defer db.Close()
		rows := func() (sum int) {
			if err := db.QueryRow(`SELECT sum(last_number) FROM campaigns`).Scan(&sum); err != nil {
				t.Fatal(err)
			}
			return sum
		}
		ids := make([]firstcome.CampaignID, campaigns)
		for n := range ids {
			ids[n] = firstcome.CampaignID(fmt.Sprint("c", n))
			create(t, l, ids[n], 10)
		}
		for _, id := range ids {
			claim(t, l, id, "a", "b")
		}
		same(t, "at once", 0, rows())
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		same(t, "after a second", 2*campaigns, rows())

		before := commits
		time.Sleep(time.Hour)
		synctest.Wait()
		same(t, "transactions in an hour without claims", before, commits)
		for range 2 { // a row that is not behind is not written
			if _, err := l.Void(t.Context(), "test", "c0", 99, "r"); !errors.Is(err, firstcome.ErrNoCoupon) {
				t.Error(err)
			}
		}
		same(t, "transactions that refused changes wrote something in", before, commits)

		// Claims come and go: each second the rows are as they were at most a second ago.
		for second := range 3 {
			for _, id := range slices.Concat(ids[:200], ids[100:]) {
				claim(t, l, id, firstcome.UserID(fmt.Sprint(second)))
			}
			time.Sleep(1100 * time.Millisecond)
			synctest.Wait()
			same(t, "after another second", (2+second+1)*campaigns, rows())
		}

		// What the schema refuses is told, once, and is no hindrance to claims.
		if _, err := db.Exec(`CREATE TRIGGER refuse BEFORE UPDATE ON campaigns BEGIN SELECT RAISE(ABORT, 'not this row'); END`); err != nil {
			t.Fatal(err)
		}
		claim(t, l, "c7", "late")
		time.Sleep(time.Hour)
		synctest.Wait()
		same(t, "refusals told", 1, refused)
		same(t, "another claim", "issued:7", claim(t, l, "c7", "later"))
		if _, err := db.Exec(`DROP TRIGGER refuse`); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTheRowOfAnotherGatesCampaignIsWhatItCounts has a coupon that nobody recorded behind those
// that were: the audit finds it only if the counters do not follow it.
func TestTheRowOfAnotherGatesCampaignIsWhatItCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firstcome.db")
	l := remote(t, path, 9)
	record(t, l, decided(t, 1), decided(t, 2))
	_, err := raw(t, path).Exec(`INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position)
		VALUES ('c', 7, 'intruder', 'x', 1, 1, 1, 3)`)
	if err != nil {
		t.Fatal(err)
	}
	record(t, l, decided(t, 3))
	s, err := l.Campaign(t.Context(), "c")
	if err != nil || s.InForce != 3 || s.Issued != 3 || s.LastNumber != 3 || s.Position != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}
