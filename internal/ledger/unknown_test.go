//go:build !check

package ledger_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/codes"
	"github.com/firstcome/firstcome/internal/follow"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A batch is what one call writes, which a caller repeats until there is an answer.
type batch struct {
	send func(l *ledger.Ledger) error
	// there tells whether the ledger has it.
	there func(l *ledger.Ledger) (bool, error)
	size  int64 // coupons
}

// claimed is a batch of two users who claim, of whom the call is to be told the same coupons each time.
func claimed(t *testing.T, k int) batch {
	both := users(firstcome.UserID(fmt.Sprint("a-", k)), firstcome.UserID(fmt.Sprint("b-", k)))
	return batch{
		func(l *ledger.Ledger) error {
			decisions, err := l.Gate.Claim(t.Context(), "c", both)
			for _, d := range decisions {
				if !d.Outcome.HasCoupon() {
					t.Errorf("batch %d: somebody is told %v", k, d.Outcome)
				}
			}
			return err
		},
		func(l *ledger.Ledger) (bool, error) {
			_, err := l.Gate.CouponOf(t.Context(), "c", both[1])
			if errors.Is(err, firstcome.ErrNoCoupon) {
				return false, nil
			}
			return true, err
		}, 2,
	}
}

// recorded is a batch of two coupons of a remote gate.
func recorded(t *testing.T, k int) batch {
	coupons := stage.Coupons("c", int64(2*k-1), int64(2*k))
	return batch{
		func(l *ledger.Ledger) error { _, err := l.Recorder.Record(t.Context(), given(coupons...)); return err },
		func(l *ledger.Ledger) (bool, error) {
			has, err := l.Recorder.Has(t.Context(), "c", coupons[1:])
			return err == nil && has[0], err
		}, 2,
	}
}

// TestF52ACommitThatStaysUnknownIsAnErrorUntilItIsKnownAndNothingIsDoubled cuts a node off at each reply of a
// batch in turn, that of COMMIT among them, and leaves it so while the batch is tried again and again. Meanwhile it is
// never answered; then the same batch is, whether or not the ledger had it. A reply that comes in two parts counts
// as two, so that the turn of COMMIT's may not come before the next time around.
func TestF52ACommitThatStaysUnknownIsAnErrorUntilItIsKnownAndNothingIsDoubled(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		for what, next := range map[string]func(*testing.T, int) batch{"claims": claimed, "records": recorded} {
			open := func(name string) *ledger.Ledger { return start(t, name, nil) }
			if what == "records" {
				open = func(name string) *ledger.Ledger { return remoteAt(t, name) }
			}
			name := kind.Database(t)
			direct := open(name)
			create(t, direct, "c", firstcome.Unlimited)
			proxy, far := through(t, name)
			l := open(far)
			committed, ended, coupons := 0, false, int64(0)
			for n, k := 1, 1; n <= 200 && !(ended && committed > 0); n, k = n+1, k+1 {
				b := next(t, n)
				coupons += b.size
				at := proxy.CutAtReply(k)
				err, cut := b.send(l), true
				select {
				case <-at:
				default:
					cut, ended, k = false, true, 0
				}
				for tries := 0; cut && tries < 4; tries++ {
					if err == nil || isAnswer(err) {
						t.Errorf("%s, cut at reply %d and tried %d times more: %v", what, k, tries, err)
					}
					err = b.send(l)
				}
				there, err := b.there(direct)
				stage.Must(t, err)
				if cut && there {
					committed++
				}
				proxy.Heal()
				for range 2 {
					if err := b.send(l); err != nil {
						t.Errorf("%s, cut at reply %d and healed: %v", what, k, err)
					}
				}
			}
			if committed == 0 {
				t.Errorf("%s: no reply of COMMIT was lost", what)
			}
			keptOnce(t, direct, coupons)
		}
	})
}

// keptOnce holds that c has so many coupons in force, with the numbers from 1 on, each of another user.
func keptOnce(t *testing.T, l *ledger.Ledger, coupons int64) {
	t.Helper()
	users := map[firstcome.UserID]bool{}
	all := allCoupons(t, l)
	for n, c := range all {
		if c.Number != int64(n+1) || users[c.User] {
			t.Errorf("%s has number %d in the place of %d, or two", c.User, c.Number, n+1)
		}
		users[c.User] = true
	}
	if s := status(t, l); int64(len(all)) != coupons || s.InForce != coupons || s.Issued != coupons || s.Position != coupons {
		t.Errorf("of %d coupons there are %d, and the campaign says %+v", coupons, len(all), s)
	}
}

// isAnswer tells whether an error says something of a campaign.
func isAnswer(err error) bool {
	for _, answer := range []error{
		firstcome.ErrNoCampaign, firstcome.ErrNoCoupon, firstcome.ErrNoDeadLetter, ledger.ErrNoKey, firstcome.ErrCampaignExists, firstcome.ErrStale,
		firstcome.ErrClosed, firstcome.ErrPending, firstcome.ErrNotRecorded, firstcome.ErrGateMismatch, record.ErrRefused, gate.ErrGone, gate.ErrGap,
		firstcome.ErrNoTicket, firstcome.ErrServed, recovery.ErrSuperseded, gate.ErrUnnamed, follow.ErrFollowed, ledger.ErrNoFact, follow.ErrNoFollower, ledger.ErrNodeTaken,
		firstcome.ErrNoList, codes.ErrNoEntry,
	} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}
