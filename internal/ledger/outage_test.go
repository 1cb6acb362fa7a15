//go:build !check

package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestTheFirstOfTwoHostsMayBeSilent has it say nothing any more, as a machine that lost its power: the second is asked.
func TestTheFirstOfTwoHostsMayBeSilent(t *testing.T) {
	name := services.PostgreSQL.Database(t)
	proxy, _ := through(t, name)
	u := parse(t, name)
	u.Host = proxy.Address() + "," + u.Host
	l := start(t, u.String(), nil)
	create(t, l, "c", 5)
	claim(t, l.Gate, "c", "a")
	proxy.Cut()
	proxy.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if d, err := l.Gate.Claim(ctx, "c", users("b")); err != nil || d[0].Outcome != firstcome.Issued {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestF52AClaimWhoseReplyIsLostAtAnyPointIsDecidedOnce drops each reply of a claim's
// transaction in turn, that of COMMIT among them.
func TestF52AClaimWhoseReplyIsLostAtAnyPointIsDecidedOnce(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		direct := start(t, name, nil)
		create(t, direct, "c", firstcome.Unlimited)
		proxy, far := through(t, name)
		l := start(t, far, nil)
		claim(t, l.Gate, "c", "warm")
		survived, dropped := 0, true
		for k := 1; dropped; k++ {
			user := firstcome.UserID(fmt.Sprint("user-", k))
			lost := proxy.DropReply(k)
			first, err := l.Gate.Claim(t.Context(), "c", []firstcome.UserID{user})
			select {
			case <-lost:
			default:
				dropped = false
			}
			proxy.Heal()
			if err != nil {
				t.Logf("reply %d lost: %v", k, err)
				continue
			}
			// Behind a lost COMMIT the call finds what it issued itself: nobody was told before.
			if first[0].Outcome != firstcome.Issued {
				t.Errorf("after reply %d was lost the first claim got %v", k, first[0].Outcome)
			}
			if dropped {
				survived++
			}
			stage.Same(t, fmt.Sprintf("asked again after reply %d was lost", k),
				fmt.Sprintf("already_issued:%d", first[0].Coupon.Number), claim(t, direct.Gate, "c", user))
		}
		if survived == 0 {
			t.Error("no claim of which a reply was lost was answered")
		}
		keptOnce(t, direct, status(t, direct).Issued)
	})
}

// TestF52AVoidWhoseCommitIsUnknownIsNotRunAgain drops each reply of a void in turn:
// either it says that it is unknown, or it was done once, and never that somebody
// else had done it before. A reply that comes in two parts counts as two, so that the
// turn of COMMIT's may not come before the next time around.
func TestF52AVoidWhoseCommitIsUnknownIsNotRunAgain(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		direct := start(t, name, nil)
		create(t, direct, "c", firstcome.Unlimited)
		proxy, far := through(t, name)
		l := start(t, far, nil)
		unknown, ended := false, false
		for n, k := int64(1), 1; n <= 1000 && !(ended && unknown); n, k = n+1, k+1 {
			user := firstcome.UserID(fmt.Sprint("user-", n))
			claim(t, l.Gate, "c", user)
			lost := proxy.DropReply(k)
			_, err := l.Campaigns.Void(t.Context(), "test", "c", n, "test")
			select {
			case <-lost:
			default:
				ended, k = true, 0
			}
			proxy.Heal()
			if errors.Is(err, firstcome.ErrAlreadyVoided) {
				t.Errorf("reply %d lost: %v", k, err)
			}
			unknown = unknown || err != nil
			if _, found := direct.Gate.CouponOf(t.Context(), "c", user); err == nil && !errors.Is(found, firstcome.ErrNoCoupon) {
				t.Errorf("reply %d lost, told that it is voided: %v", k, found)
			}
		}
		if !unknown {
			t.Error("no reply of COMMIT was lost")
		}
	})
}

// TestF51AVoidThatIsTheVictimOfADeadlockIsRunAgain takes the void's locks in the
// opposite order, by hand.
func TestF51AVoidThatIsTheVictimOfADeadlockIsRunAgain(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, name := nodesOn(t, kind, 1, 10)
		claim(t, nodes[0].Gate, "c", "a")
		hand := lockByHand(t, services.Beside(t, name))
		if kind == services.PostgreSQL { // the first who looks for a dead-lock is its victim
			execute(t, hand, `SET LOCAL deadlock_timeout = '1min'`)
		}
		voided := make(chan error, 1)
		go func() {
			_, err := nodes[0].Campaigns.Void(context.Background(), "test", "c", 1, "test")
			voided <- err
		}()
		waitUntilBlocked(t, kind, services.Beside(t, name))
		if _, err := hand.Exec(`UPDATE campaigns SET decided_at = decided_at + 1 WHERE id = 'c'`); err != nil {
			t.Fatalf("the hand was the victim: %v", err)
		}
		stage.Must(t, hand.Commit())
		if err := <-voided; err != nil {
			t.Errorf("the void was not run again: %v", err)
		}
	})
}

// lockByHand begins a transaction that has the coupon's row, and has written so much
// that MariaDB makes the other one the victim.
func lockByHand(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	hand := begin(t, db)
	for range 50 {
		execute(t, hand, `INSERT INTO audit_log (at, actor, action, detail) VALUES (1, 'hand', 'hand', '{}')`)
	}
	execute(t, hand, `UPDATE coupons SET recorded_at = recorded_at + 1 WHERE campaign_id = 'c' AND number = 1`)
	return hand
}

// waitUntilBlocked returns when a transaction of the server waits for a lock.
func waitUntilBlocked(t *testing.T, kind services.Kind, db *sql.DB) {
	t.Helper()
	query := map[services.Kind]string{
		services.MariaDB: `SELECT count(*) FROM information_schema.processlist
			WHERE db = database() AND info NOT LIKE '%processlist%' AND time_ms > 50`,
		services.PostgreSQL: `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
	}[kind]
	for waiting := 0; waiting == 0; {
		stage.Must(t, db.QueryRowContext(t.Context(), query).Scan(&waiting))
	}
}

// TestF53AKilledServerIsTroubleAtOnceAndHealsWithoutARestart kills the database
// under a node.
func TestF53AKilledServerIsTroubleAtOnceAndHealsWithoutARestart(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		server := kind.Server(t)
		l := start(t, database(t, server, false), nil)
		create(t, l, "c", 10)
		stage.Same(t, "before", "issued:1", claim(t, l.Gate, "c", "a"))
		stage.Must(t, server.Kill())
		if _, err := l.Gate.Claim(t.Context(), "c", []firstcome.UserID{"b"}); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a claim without a server: %v", err)
		}
		stage.Must(t, server.Restart(t.Context()))
		stage.Same(t, "after", "already_issued:1 issued:2", claim(t, l.Gate, "c", "a", "b"))
	})
}

// TestF53AFrozenServerIsToldByTheDeadline freezes the database under a node.
func TestF53AFrozenServerIsToldByTheDeadline(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		server := kind.Server(t)
		l := start(t, database(t, server, false), nil)
		create(t, l, "c", 10)
		stage.Must(t, server.Freeze())
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := l.Gate.Claim(ctx, "c", users("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a claim on a frozen server: %v", err)
		}
		stage.Must(t, server.Continue())
		claim(t, l.Gate, "c", "a", "b")
		stage.Same(t, "after", "already_issued:1 already_issued:2", claim(t, l.Gate, "c", "a", "b"))
	})
}

// TestF53AServerThatHangsIsToldAtTheStart freezes the database before a node starts.
func TestF53AServerThatHangsIsToldAtTheStart(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		server := kind.Server(t, kind.Fast()...)
		name, err := server.Database(t.Context())
		stage.Must(t, err)
		start(t, name, nil)
		stage.Must(t, server.Freeze())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // far above the time of connecting, and below that of migrating
		defer cancel()
		var all sync.WaitGroup
		for what, open := range map[string]func() (*ledger.Ledger, error){
			"a node":   func() (*ledger.Ledger, error) { return ledger.Open(ctx, name, ledger.Options{Secret: stage.Secret()}) },
			"a reader": func() (*ledger.Ledger, error) { return ledger.OpenShared(ctx, name) },
		} {
			all.Go(func() {
				l, err := open()
				if err == nil {
					t.Errorf("%s is open: %v", what, l.Close())
				} else if ctx.Err() != nil || !strings.Contains(err.Error(), "did not answer within") {
					t.Errorf("%s is told: %v", what, err)
				}
			})
		}
		all.Wait()
	})
}
