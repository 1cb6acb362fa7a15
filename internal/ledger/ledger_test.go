package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF52AClaimWhoseCommitIsUnknownMayBeAskedAgain lets the caller's time end while
// the transaction cannot begin, and asks again.
func TestF52AClaimWhoseCommitIsUnknownMayBeAskedAgain(t *testing.T) {
	path := file(t)
	l := start(t, path, nil)
	create(t, l, "c", 10)
	lock, err := services.Beside(t, path).Begin()
	stage.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l.Gate.Claim(ctx, "c", users("a")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	stage.Must(t, lock.Rollback())
	claim(t, l.Gate, "c", "a", "b")
	stage.Same(t, "again", "already_issued:1 already_issued:2 issued:3", claim(t, l.Gate, "c", "a", "b", "c"))
}

// TestAChangeIsNotLeftToComeLater ends the operator's request while the ledger is
// held up: the change must not return before it is done, because what a node may
// repeat is forgotten only until then.
func TestAChangeIsNotLeftToComeLater(t *testing.T) {
	path := file(t)
	l := start(t, path, nil)
	create(t, l, "c", 1)
	claim(t, l.Gate, "c", "a")
	lock, err := services.Beside(t, path).Begin()
	stage.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	voided := make(chan error, 1)
	go func() {
		_, err := l.Campaigns.Void(ctx, "test", "c", 1, "test")
		voided <- err
	}()
	cancel()
	select {
	case err := <-voided:
		stage.Must(t, lock.Rollback())
		t.Fatalf("the void returned while the ledger was held up: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	stage.Must(t, lock.Rollback())
	stage.Must(t, <-voided)
	stage.Same(t, "afterwards", "issued:2", claim(t, l.Gate, "c", "b"))
}

func TestACouponKeepsTheTermsUnderWhichItWasIssued(t *testing.T) {
	l := start(t, file(t), nil)
	create(t, l, "c", 10)
	claim(t, l.Gate, "c", "a")
	void(t, l, "c", 1) // a change that is not one of terms
	stage.Must(t, stage.Err(l.Campaigns.SetTerms(t.Context(), "test", "c", 2, func(terms *firstcome.Terms) {
		terms.Benefit = []byte(`{"percent":30}`)
	})))
	claim(t, l.Gate, "c", "a")
	benefits := map[int64]string{}
	for _, c := range allCoupons(t, l) {
		terms, err := l.Reads.Terms(t.Context(), "c", c.TermsVersion)
		stage.Must(t, err)
		benefits[c.Number] = string(terms.Benefit)
	}
	stage.Same(t, "benefits", map[int64]string{1: `{"percent":20}`, 2: `{"percent":30}`}, benefits)
}

func TestAStaleChangeIsRefusedAndARepeatedOneIsOne(t *testing.T) {
	l := start(t, file(t), nil)
	create(t, l, "c", 10)
	for _, made := range []int64{2, 0} {
		version, err := l.Campaigns.ChangeState(t.Context(), "test", "c", 0, firstcome.ChangePause)
		if err != nil || version != made {
			t.Fatalf("it made version %d, %v, and should make %d", version, err, made)
		}
	}
	if c := status(t, l); c.Version != 2 || !c.Paused {
		t.Fatalf("got %+v", c)
	}
	_, err := l.Campaigns.SetTerms(t.Context(), "test", "c", 1, func(terms *firstcome.Terms) { terms.Name = "stale" })
	if !errors.Is(err, firstcome.ErrStale) {
		t.Errorf("got %v", err)
	}
	stage.Same(t, "audit log", []string{"campaign.pause", "campaign.create"}, actions(t, l, "c"))
}

func TestFactsHaveDensePositionsInTheOrderOfTheLedger(t *testing.T) {
	l := start(t, file(t), nil)
	create(t, l, "c", 4)
	news, forget := l.Reads.NewFacts("c")
	defer forget()
	claim(t, l.Gate, "c", "a", "b", "c")
	<-news
	void(t, l, "c", 2)
	void(t, l, "c", 1)
	claim(t, l.Gate, "c", "a", "d")
	all := []string{"1 issued 1", "2 issued 2", "3 issued 3", "4 voided 2", "5 voided 1", "6 issued 4", "7 issued 5"}
	for after := range int64(8) {
		for limit := range 8 {
			var got []string
			err := l.Reads.Facts(t.Context(), "c", after, limit, func(f firstcome.Fact) error {
				got = append(got, fmt.Sprintf("%d %s %d", f.Position, strings.TrimPrefix(string(f.Kind), "coupon."), f.Coupon.Number))
				return nil
			})
			stage.Must(t, err)
			want := all[min(after, 7):min(int(after)+limit, 7)]
			if len(want)+len(got) > 0 {
				stage.Same(t, fmt.Sprintf("after %d, at most %d", after, limit), want, got)
			}
		}
	}
}

func TestWhoWaitsForFactsOfOneCampaignIsNotWokenByAnother(t *testing.T) {
	l := start(t, file(t), nil)
	create(t, l, "c", 4)
	create(t, l, "d", 4)
	news, forget := l.Reads.NewFacts("c")
	defer forget()
	claim(t, l.Gate, "d", "a")
	select {
	case <-news:
		t.Error("woken")
	default:
	}
	claim(t, l.Gate, "c", "a")
	<-news
}

func TestABackupIsALedger(t *testing.T) {
	path, backup := file(t), file(t)
	l := start(t, path, nil)
	create(t, l, "c", 3)
	claim(t, l.Gate, "c", "a", "b")
	shared := reader(t, path)
	stage.Must(t, shared.Backup(t.Context(), backup))
	if err := shared.Backup(t.Context(), backup); err == nil {
		t.Error("a backup was overwritten")
	}
	claim(t, l.Gate, "c", "late")
	restored := start(t, backup, nil)
	stage.Same(t, "restored", "already_issued:1 already_issued:2 issued:3 sold_out:0", claim(t, restored.Gate, "c", "a", "b", "c", "d"))
}

func TestAGateWithAnotherSecretDecidesNothing(t *testing.T) {
	path := file(t)
	l, stop := serve(t, path, ledger.Options{})
	create(t, l, "c", 3)
	stop()
	other, err := firstcome.NewSecret([]byte("another secret, of 32 bytes and more"))
	stage.Must(t, err)
	l, err = ledger.Open(t.Context(), path, ledger.Options{Secret: other})
	stage.Must(t, err)
	stage.Serve(t, l)
	if _, err = l.Gate.Claim(t.Context(), "c", users("a")); !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("got %v", err)
	}
}
