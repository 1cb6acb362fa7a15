package issue_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/test/stage"
)

func TestASoldOutCampaignAsksTheGateFiveTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(1, "c")
		i := stage.Issuer(t, m, issue.Options{})
		stage.Claim(t, i, "c", "winner", firstcome.Issued)
		stage.Claim(t, i, "c", "loser", firstcome.SoldOut)
		synctest.Wait() // the holders filter is read
		before := len(m.Seen())
		for n := range 10_000 { // of ten seconds, a claim each millisecond
			stage.Claim(t, i, "c", firstcome.UserID("loser-"+strconv.Itoa(n)), firstcome.SoldOut)
			time.Sleep(time.Millisecond)
		}
		// Ten seconds of leases of 200 ms, and one or two users whom the filter takes for holders.
		if calls := len(m.Seen()) - before; calls < 45 || calls > 55 {
			t.Errorf("the gate was asked %d times", calls)
		}
	})
}

// A late gate decides at once, and answers later.
type late struct {
	*stage.Gate
	by time.Duration
}

func (l *late) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := l.Gate.Claim(ctx, id, users)
	time.Sleep(l.by)
	return decisions, err
}

// TestALeaseCountsFromTheSending makes answers take 150 ms, so that 50 ms of a lease of 200 ms are left when an answer comes. The gate quarantines
// stock that another node returned for 250 ms. A node that repeated a refusal for longer would refuse a user after another user was issued that
// stock.
func TestALeaseCountsFromTheSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(1, "c")
		gate := &late{Gate: m}
		i := stage.Issuer(t, gate, issue.Options{})
		stage.Claim(t, i, "c", "winner", firstcome.Issued)
		gate.by = 150 * time.Millisecond
		sent := time.Now()
		stage.Claim(t, i, "c", "loser", firstcome.SoldOut)
		synctest.Wait() // the holders filter is read
		asked := len(m.Seen())
		time.Sleep(time.Until(sent.Add(199 * time.Millisecond)))
		stage.Claim(t, i, "c", "loser-1", firstcome.SoldOut)
		if calls := len(m.Seen()) - asked; calls != 0 {
			t.Errorf("within the lease the gate was asked %d times", calls)
		}
		time.Sleep(time.Until(sent.Add(201 * time.Millisecond)))
		stage.Claim(t, i, "c", "loser-2", firstcome.SoldOut)
		if calls := len(m.Seen()) - asked; calls != 1 {
			t.Errorf("behind the lease the gate was asked %d times", calls)
		}
	})
}

func TestWhatIsRepeatedSaysSinceWhenItIsSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(1, "c")
		m.Course("c").SoldOutAt = time.Now().Add(-time.Hour)
		i := stage.Issuer(t, m, issue.Options{})
		stage.Claim(t, i, "c", "winner", firstcome.Issued)
		for range 3 {
			if d := stage.Claim(t, i, "c", "loser", firstcome.SoldOut); !d.Since.Equal(m.Course("c").SoldOutAt) {
				t.Errorf("since %v", d.Since)
			}
			synctest.Wait() // the holders filter is read
		}
		if i.Stats().Cached == 0 {
			t.Error("nothing was repeated")
		}
	})
}

func TestAHolderIsFoundWhileTheRefusalIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(2, "c")
		i := stage.Issuer(t, m, issue.Options{})
		other := stage.Issuer(t, m, issue.Options{}) // another node: this one's coupons are news to the first
		stage.Claim(t, other, "c", "a", firstcome.Issued)
		stage.Claim(t, other, "c", "b", firstcome.Issued)
		for range 5 {
			stage.Claim(t, i, "c", "loser", firstcome.SoldOut)
			synctest.Wait()
			if d := stage.Claim(t, i, "c", "b", firstcome.AlreadyIssued); d.Coupon.Number != 2 {
				t.Errorf("got number %d", d.Coupon.Number)
			}
		}
	})
}

func TestALeaseEndsBeforeAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(1, "c")
		i := stage.Issuer(t, m, issue.Options{})
		stage.Claim(t, i, "c", "a", firstcome.Issued)
		stage.Claim(t, i, "c", "b", firstcome.SoldOut)
		synctest.Wait()
		err := i.Change("c", func() error {
			// During the change the gate answers every claim, and the node learns nothing.
			stage.Claim(t, i, "c", "b", firstcome.SoldOut)
			synctest.Wait()
			void(t, m, "a")
			stage.Claim(t, i, "c", "b", firstcome.Issued)
			return nil
		})
		stage.Must(t, err)
		stage.Claim(t, i, "c", "b", firstcome.AlreadyIssued)
		stage.Claim(t, i, "c", "a", firstcome.SoldOut)
	})
}

func TestAVoidedCouponIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(2, "c")
		i := stage.Issuer(t, m, issue.Options{})
		stage.Claim(t, i, "c", "a", firstcome.Issued)
		stage.Claim(t, i, "c", "a", firstcome.AlreadyIssued)
		if calls := len(m.Seen()); calls != 1 {
			t.Errorf("the gate was asked %d times about a coupon that it had just named", calls)
		}
		refused := errors.New("refused")
		err := i.Change("c", func() error {
			void(t, m, "a")
			return refused
		})
		if !errors.Is(err, refused) {
			t.Errorf("the change's error became %v", err)
		}
		stage.Claim(t, i, "c", "a", firstcome.Issued)
	})
}

func TestAPauseIsNeverRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(2, "c")
		m.Lease = 0
		m.Course("c").Paused = true
		i := stage.Issuer(t, m, issue.Options{})
		for n := range 10 {
			stage.Claim(t, i, "c", "a", firstcome.Paused)
			synctest.Wait()
			if calls := len(m.Seen()); calls != n+1 {
				t.Fatalf("the gate was asked %d times for %d claims", calls, n+1)
			}
		}
	})
}

// TestF24ACrowdBeforeTheOpeningBarelyLoadsTheGate lets a crowd ask until the campaign opens. No user is issued a coupon before that, and the first
// user who asks after it is.
func TestF24ACrowdBeforeTheOpeningBarelyLoadsTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(5, "c")
		opens := time.Now().Add(time.Second)
		m.Course("c").OpensAt = opens
		i := stage.Issuer(t, m, issue.Options{})
		for n := 0; time.Now().Before(opens); n++ {
			stage.Claim(t, i, "c", firstcome.UserID(strconv.Itoa(n)), firstcome.NotOpen)
			synctest.Wait()
			time.Sleep(100 * time.Microsecond)
		}
		if calls := len(m.Seen()); calls > 8 {
			t.Errorf("the gate was asked %d times in a second", calls)
		}
		stage.Claim(t, i, "c", "late", firstcome.Issued)
	})
}

// A lagging gate reads its holders from a replica that lacks the newest.
type lagging struct {
	*stage.Gate
	lacks firstcome.UserID
}

func (l *lagging) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (int64, error) {
	return l.Gate.Holders(ctx, id, func(user firstcome.UserID) {
		if user != l.lacks {
			each(user)
		}
	})
}

// TestHoldersWhoAreTooFewAreNotTakenForAll reads from a replica at the refusal's version, and from one at an earlier version.
func TestHoldersWhoAreTooFewAreNotTakenForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(2, "c")
		l := &lagging{Gate: m, lacks: "b"}
		i, other := stage.Issuer(t, l, issue.Options{}), stage.Issuer(t, m, issue.Options{})
		stage.Claim(t, other, "c", "a", firstcome.Issued)
		stage.Claim(t, other, "c", "b", firstcome.Issued)
		stage.Claim(t, i, "c", "loser", firstcome.SoldOut)
		synctest.Wait() // the holders were read
		stage.Claim(t, i, "c", "b", firstcome.AlreadyIssued)
		l.lacks = ""
		stage.Claim(t, i, "c", "loser", firstcome.SoldOut)
		synctest.Wait()
		before := len(m.Seen())
		stage.Claim(t, i, "c", "another", firstcome.SoldOut)
		if calls := len(m.Seen()) - before; calls > 0 {
			t.Errorf("once the copy has all of them, the gate is still asked")
		}
	})
}

// TestTheHoldersOfAnEarlierVersionAreNotTakenForThoseOfThis voids a coupon on another node, which then issues the stock to another user.
func TestTheHoldersOfAnEarlierVersionAreNotTakenForThoseOfThis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(1, "c")
		i, other := stage.Issuer(t, m, issue.Options{}), stage.Issuer(t, m, issue.Options{})
		stage.Claim(t, other, "c", "a", firstcome.Issued)
		stage.Claim(t, i, "c", "loser", firstcome.SoldOut)
		synctest.Wait() // the holders filter is read
		void(t, m, "a")
		stage.Claim(t, other, "c", "b", firstcome.Issued)
		time.Sleep(m.Lease)
		stage.Claim(t, i, "c", "loser", firstcome.SoldOut)
		synctest.Wait()
		stage.Claim(t, i, "c", "b", firstcome.AlreadyIssued)
	})
}

// A forgetful gate issues directly, and loses its answer.
type forgetful struct{ *stage.Gate }

func (f forgetful) Issue(ctx context.Context, order gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	if _, err := f.Gate.Issue(ctx, order, id, users); err != nil {
		return nil, err
	}
	return nil, firstcome.ErrGateUnavailable
}

// TestF61ADirectIssueWhoseAnswerIsLostEndsTheLease issues directly to a user who was refused before the opening. The node must not repeat the refusal
// to a user who may now have a coupon.
func TestF61ADirectIssueWhoseAnswerIsLostEndsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(2, "c")
		m.Course("c").OpensAt = time.Now().Add(time.Hour)
		i := stage.Issuer(t, forgetful{m}, issue.Options{})
		stage.Claim(t, i, "c", "a", firstcome.NotOpen)
		synctest.Wait() // the holders filter is read
		stage.Claim(t, i, "c", "a", firstcome.NotOpen)
		if i.Stats().Cached != 1 {
			t.Fatal("the refusal was not repeated")
		}
		if _, err := i.Issue(t.Context(), gate.Order{Actor: "op"}, "c", []firstcome.UserID{"a"}); !errors.Is(err, firstcome.ErrGateUnavailable) {
			t.Errorf("the direct issue got %v", err)
		}
		stage.Claim(t, i, "c", "a", firstcome.AlreadyIssued)
	})
}
