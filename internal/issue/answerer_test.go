package issue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/test/stage"
)

// answerer returns an Answerer in front of a gate in memory that records nothing.
func answerer(t *testing.T, b *board, when firstcome.AnswerWhen) *issue.Answerer {
	t.Helper()
	m := stage.NewGate(10, "c")
	return &issue.Answerer{
		Issuer: stage.Issuer(t, m, issue.Options{}), Waiter: waiter(t, b), Wait: time.Second,
		Terms: func(context.Context, firstcome.CampaignID, int64) (firstcome.Terms, error) {
			return firstcome.Terms{Answer: when}, nil
		},
	}
}

func TestACampaignThatAnswersWhenRecordedNeverNamesAnUnrecordedCoupon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a := answerer(t, b, firstcome.Recorded)
		start := time.Now()
		if d, err := a.Claim(t.Context(), "c", "a"); !errors.Is(err, issue.ErrNotRecordedYet) || d.Outcome != 0 || time.Since(start) != time.Second {
			t.Errorf("after %v: %+v, %v", time.Since(start), d, err)
		}
		b.settle("c", 1)
		if d, err := a.Claim(t.Context(), "c", "a"); err != nil || !d.Coupon.Recorded || d.Outcome != firstcome.AlreadyIssued || d.Coupon.Number != 1 {
			t.Errorf("asked again: %+v, %v", d, err)
		}
		b.settle("c", 4, 3)
		decisions, err := a.Issue(t.Context(), gate.Order{Actor: "op"}, "c", []firstcome.UserID{"b"})
		if err != nil || !decisions[0].Coupon.Recorded {
			t.Errorf("many at once: %+v, %v", decisions, err)
		}
		if _, err := a.Issue(t.Context(), gate.Order{Actor: "op"}, "c", []firstcome.UserID{"a", "c"}); !errors.Is(err, issue.ErrUnrecorded) {
			t.Errorf("a dead letter among them: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.Claim(ctx, "c", "z"); err == nil || errors.Is(err, issue.ErrNotRecordedYet) {
			t.Errorf("a caller who went away: %v", err)
		}
	})
}

func TestEachClaimWaitsAsLongAsIfItWereAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := answerer(t, newBoard(), firstcome.Recorded)
		var claims sync.WaitGroup
		for n := range 9 {
			claims.Go(func() {
				time.Sleep(time.Duration(n) * 5 * time.Millisecond) // some of them share a deadline
				start := time.Now()
				_, err := a.Claim(t.Context(), "c", firstcome.UserID(rune('a'+n)))
				if took := time.Since(start); !errors.Is(err, issue.ErrNotRecordedYet) || took > time.Second || took < time.Second-time.Second/64 {
					t.Errorf("claim %d, after %v: %v", n, took, err)
				}
			})
		}
		claims.Go(func() {
			ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer leave()
			start := time.Now()
			if _, err := a.Claim(ctx, "c", "z"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 100*time.Millisecond {
				t.Errorf("a caller who went away, after %v: %v", time.Since(start), err)
			}
		})
		claims.Wait()
	})
}

func TestACampaignThatAnswersWhenDecidedTellsTheTruthAboutRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a := answerer(t, b, firstcome.Decided)
		d, err := a.Claim(t.Context(), "c", "a")
		if err != nil || d.Coupon.Recorded || d.Outcome != firstcome.Issued {
			t.Errorf("%+v, %v", d, err)
		}
		stage.Same(t, "readings", 0, b.readings())
		b.settle("c", 2, 1)
		a.Coupons = holder{Campaign: "c", Number: 1, Buried: true}
		if c, err := a.CouponOf(t.Context(), "c", "a"); err != nil || c.Recorded {
			t.Errorf("a dead letter: %+v, %v", c, err)
		}
		a.Coupons = holder{Campaign: "c", Number: 2, Buried: true}
		if c, err := a.CouponOf(t.Context(), "c", "a"); err != nil || !c.Recorded {
			t.Errorf("one that was replayed: %+v, %v", c, err)
		}
	})
}

// holder is a gate with one coupon.
type holder firstcome.Coupon

func (h holder) CouponOf(context.Context, firstcome.CampaignID, firstcome.UserID) (firstcome.Coupon, error) {
	return firstcome.Coupon(h), nil
}
