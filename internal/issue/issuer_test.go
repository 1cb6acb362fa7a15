package issue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/test/stage"
)

// heldIssuer returns an Issuer of a gate whose calls for the campaign c wait until the test lets them continue.
func heldIssuer(t *testing.T, quantity int64, limits issue.Options) (m *stage.Gate, i *issue.Issuer, letGo func()) {
	m = stage.NewLedgerGate(quantity, "c")
	letGo = stage.Hold(m, "c")
	return m, stage.Issuer(t, m, limits), letGo
}

func TestClaimsGatherInArrivalOrderWhileABatchIsAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, i, letGo := heldIssuer(t, 100, issue.Options{Batch: 3})
		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() { stage.Claim(t, i, "c", firstcome.UserID(strconv.Itoa(n)), firstcome.Issued) })
			synctest.Wait()
		}
		letGo()
		all.Wait()
		batches := [][]firstcome.UserID{{"0"}, {"1", "2", "3"}, {"4", "5", "6"}, {"7"}}
		if diff := cmp.Diff(batches, m.Seen()); diff != "" {
			t.Errorf("the gate got other batches (-want +got):\n%s", diff)
		}
	})
}

func TestOneCampaignDoesNotWaitForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(100, "slow", "quick")
		letGo := stage.Hold(m, "slow")
		i := stage.Issuer(t, m, issue.Options{})
		var slow sync.WaitGroup
		slow.Go(func() { stage.Claim(t, i, "slow", "a", firstcome.Issued) })
		synctest.Wait()
		stage.Claim(t, i, "quick", "a", firstcome.Issued)
		letGo()
		slow.Wait()
	})
}

func TestF33AClaimWhoseCallerWentAwayIsDecidedAndFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, i, letGo := heldIssuer(t, 100, issue.Options{})
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for n := range 50 {
			all.Go(func() {
				if _, err := i.Claim(ctx, "c", firstcome.UserID(strconv.Itoa(n))); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		letGo()
		synctest.Wait()
		for n := range 50 {
			stage.Claim(t, i, "c", firstcome.UserID(strconv.Itoa(n)), firstcome.AlreadyIssued)
		}
		if waiting := i.Stats().Waiting; waiting != 0 {
			t.Errorf("%d claims wait", waiting)
		}
	})
}

func TestF34AFullQueueShedsAndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const asked, limit = 50_000, 1_000
		_, i, letGo := heldIssuer(t, asked, issue.Options{Waiting: limit, Gate: time.Hour})
		go stage.Claim(t, i, "c", "first", firstcome.Issued)
		synctest.Wait()
		var all sync.WaitGroup
		var mu sync.Mutex
		outcomes := map[string]int{}
		for n := range asked {
			all.Go(func() {
				d, err := i.Claim(t.Context(), "c", firstcome.UserID(strconv.Itoa(n)))
				mu.Lock()
				defer mu.Unlock()
				if firstcome.CauseOf(err) == firstcome.Busy {
					outcomes["busy"]++
				} else {
					outcomes[d.Outcome.String()]++
				}
			})
		}
		synctest.Wait()
		letGo()
		all.Wait()
		if diff := cmp.Diff(map[string]int{"busy": asked - limit, "issued": limit}, outcomes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if shed := i.Stats().Shed; shed != asked-limit {
			t.Errorf("counted %d shed", shed)
		}
	})
}

func TestF25OneUserWhoClaimsAHundredTimesAtOnceIsIssuedOnce(t *testing.T) {
	m := stage.NewLedgerGate(100, "c")
	i := stage.Issuer(t, m, issue.Options{})
	var all sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for range 100 {
		all.Go(func() {
			d, err := i.Claim(t.Context(), "c", "a")
			mu.Lock()
			defer mu.Unlock()
			outcomes[fmt.Sprint(d.Outcome, d.Coupon.Number, err)]++
		})
	}
	all.Wait()
	if diff := cmp.Diff(map[string]int{"issued 1 <nil>": 1, "already_issued 1 <nil>": 99}, outcomes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnErrorOfTheGateIsEveryClaimsOfTheBatchAndOnlyThose(t *testing.T) {
	m := stage.NewLedgerGate(100, "c")
	lost := errors.New("lost")
	m.Before = func(context.Context, firstcome.CampaignID) error { return lost }
	i := stage.Issuer(t, m, issue.Options{})
	if _, err := i.Claim(t.Context(), "c", "a"); !errors.Is(err, lost) {
		t.Fatalf("got %v", err)
	}
	m.Before = nil
	stage.Claim(t, i, "c", "a", firstcome.Issued)
	if _, err := i.Claim(t.Context(), "nowhere", "a"); !errors.Is(err, firstcome.ErrNoCampaign) || i.Stats().Failed != 1 {
		t.Errorf("got %v", err)
	}
}

func TestCampaignsThatDoNotExistAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(100)
		i := stage.Issuer(t, m, issue.Options{})
		for n := range 1000 {
			if _, err := i.Claim(t.Context(), firstcome.CampaignID(strconv.Itoa(n)), "a"); !errors.Is(err, firstcome.ErrNoCampaign) {
				t.Fatalf("got %v", err)
			}
		}
		synctest.Wait()
		if n := i.Stats().Campaigns; n != 0 {
			t.Errorf("the Issuer remembers %d campaigns that do not exist", n)
		}
		m.Make(1, "7")
		stage.Claim(t, i, "7", "a", firstcome.Issued)
		synctest.Wait()
		if n := i.Stats().Campaigns; n != 1 {
			t.Errorf("the Issuer remembers %d campaigns", n)
		}
	})
}

func TestACallHasItsTimeLessASixtyFourthAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(100)
		m.Before = func(ctx context.Context, _ firstcome.CampaignID) error {
			<-ctx.Done()
			return ctx.Err()
		}
		const limit = 64 * time.Second
		i := stage.Issuer(t, m, issue.Options{Gate: limit})
		var all sync.WaitGroup
		for _, c := range []struct {
			id         firstcome.CampaignID
			begin, end time.Duration
		}{
			{"first", 0, limit},
			{"beside it", limit/64 - 1, limit},
			{"behind it", limit / 64, limit/64 + limit},
			{"later", limit / 2, limit/2 + limit},
		} {
			began := time.Now()
			all.Go(func() {
				time.Sleep(c.begin)
				_, err := i.Claim(t.Context(), c.id, "a")
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != c.end {
					t.Errorf("%s: got %v at %v, want it at %v", c.id, err, time.Since(began), c.end)
				}
			})
		}
		all.Wait()
	})
}

func TestWhoWaitsWhileTheGateHangsIsShedAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, i, letGo := heldIssuer(t, 100, issue.Options{Gate: 3 * time.Second, Batch: 10})
		go func() { _, _ = i.Claim(context.Background(), "c", "first") }()
		synctest.Wait()
		began := time.Now()
		var all sync.WaitGroup
		for n := range 1000 {
			all.Go(func() {
				_, err := i.Claim(context.Background(), "c", firstcome.UserID(strconv.Itoa(n)))
				if firstcome.CauseOf(err) != firstcome.GateUnavailable || time.Since(began) != 3*time.Second {
					t.Errorf("got %v after %v", err, time.Since(began))
				}
			})
		}
		all.Wait()
		letGo()
		if s := i.Stats(); s.Waiting != 0 || s.Shed != 0 {
			t.Errorf("counted %+v", s)
		}
		stage.Claim(t, i, "c", "7", firstcome.Issued)
	})
}

func TestStopAnswersWhoWaitsAndRefusesWhoComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, i, letGo := heldIssuer(t, 100, issue.Options{})
		var waiting sync.WaitGroup
		for n := range 10 {
			waiting.Go(func() { stage.Claim(t, i, "c", firstcome.UserID(strconv.Itoa(n)), firstcome.Issued) })
		}
		synctest.Wait()
		var stopped sync.WaitGroup
		stopped.Go(func() {
			if err := i.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if _, err := i.Claim(t.Context(), "c", "late"); firstcome.CauseOf(err) != firstcome.Stopping {
			t.Errorf("a claim while stopping got %v", err)
		}
		letGo()
		waiting.Wait()
		stopped.Wait()
	})
}

func TestStopGivesUpWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(100, "c")
		defer stage.Hold(m, "c")()
		i := issue.NewIssuer(m, issue.Options{Gate: time.Hour})
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if _, err := i.Claim(context.Background(), "c", "a"); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := i.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		waiting.Wait()
	})
}

func TestADirectIssueKeepsTheOrderAndLetsNobodyIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, i, letGo := heldIssuer(t, 3, issue.Options{Batch: 2, Waiting: 1})
		go stage.Claim(t, i, "c", "first", firstcome.Issued)
		synctest.Wait()
		var all sync.WaitGroup
		all.Go(func() {
			got, err := i.Issue(t.Context(), gate.Order{Actor: "op"}, "c", []firstcome.UserID{"a", "b", "a", "c"})
			if err != nil {
				t.Error(err)
			}
			var numbers []int64
			for _, d := range got {
				numbers = append(numbers, d.Coupon.Number)
			}
			if diff := cmp.Diff([]int64{2, 3, 2, 0}, numbers); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
		synctest.Wait()
		if _, err := i.Claim(t.Context(), "c", "late"); !errors.Is(err, firstcome.ErrBusy) {
			t.Errorf("a claim at a full queue got %v", err)
		}
		letGo()
		all.Wait()
	})
}

func TestAnIdleCampaignCostsNoGoroutineAndIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stage.NewLedgerGate(1)
		for n := range 10_000 {
			m.Make(1, firstcome.CampaignID(strconv.Itoa(n)))
		}
		i := stage.Issuer(t, m, issue.Options{})
		before := runtime.NumGoroutine()
		for n := range 10_000 {
			stage.Claim(t, i, firstcome.CampaignID(strconv.Itoa(n)), "a", firstcome.Issued)
		}
		synctest.Wait()
		if now := runtime.NumGoroutine(); now > before+10 { // one may be about to end
			t.Errorf("%d goroutines before 10,000 campaigns, %d after", before, now)
		}
		if n := i.Stats().Campaigns; n != 10_000 {
			t.Errorf("the Issuer remembers %d campaigns", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var ran sync.WaitGroup
		ran.Go(func() { _ = i.Run(ctx) })
		time.Sleep(3 * time.Minute) // of the bubble's clock
		synctest.Wait()
		if n := i.Stats().Campaigns; n != 0 {
			t.Errorf("the Issuer still remembers %d campaigns", n)
		}
		stage.Claim(t, i, "7", "b", firstcome.SoldOut)
		cancel()
		ran.Wait()
	})
}

// A full gate decides no claim of a user who holds no coupon.
type full struct{ *stage.Gate }

func (f full) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := f.Gate.Claim(ctx, id, users)
	for n := range decisions {
		if decisions[n].Outcome == firstcome.Issued {
			decisions[n] = firstcome.Decision{}
		}
	}
	return decisions, err
}

func (f full) Issue(ctx context.Context, _ gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return f.Claim(ctx, id, users)
}

func TestAFullGateIsBusyAndItsHoldersAreFound(t *testing.T) {
	m := stage.NewLedgerGate(100, "c")
	stage.Claim(t, stage.Issuer(t, m, issue.Options{}), "c", "holder", firstcome.Issued)
	i := stage.Issuer(t, full{m}, issue.Options{})
	if _, err := i.Claim(t.Context(), "c", "other"); firstcome.CauseOf(err) != firstcome.GateFull {
		t.Errorf("a claim that was not decided got %v", err)
	}
	stage.Claim(t, i, "c", "holder", firstcome.AlreadyIssued)
	if _, err := i.Issue(t.Context(), gate.Order{Actor: "op"}, "c", []firstcome.UserID{"holder", "third", "fourth"}); firstcome.CauseOf(err) != firstcome.GateFull {
		t.Errorf("claims of which two were not decided got %v", err)
	}
	if s := i.Stats(); s.Shed != 0 || s.Failed != 0 {
		t.Errorf("counted %+v", s)
	}
}
