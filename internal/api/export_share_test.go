package api_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/ledger"
)

// slowExports makes a ledger's exports end only when the test releases them.
type slowExports struct {
	*ledger.Reads
	begun chan struct{}
	let   chan struct{}
}

func (l *slowExports) Export(ctx context.Context, id firstcome.CampaignID, p ledger.Page, each func(firstcome.Coupon, string) error) error {
	l.begun <- struct{}{}
	<-l.let
	return l.Reads.Export(ctx, id, p, each)
}

// TestASlowExportHindersItsOwnKeyAlone. The key may export again once its export has ended.
func TestASlowExportHindersItsOwnKeyAlone(t *testing.T) {
	slow := &slowExports{begun: make(chan struct{}, 9), let: make(chan struct{})}
	s := open(t, guarded, func(s *shop, c *api.Options) { slow.Reads, c.Ledger = s.ledger.Reads, slow })
	one, other := s.key(firstcome.Operator), s.key(firstcome.Operator)
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9}`, one...).want(t, 201, "")
	export := func(key []string) int {
		return s.call("GET", "/v1/campaigns/c/coupons", "", append(key, "Accept", "text/csv")...).status
	}
	answers := make(chan int, 2)
	for range cap(answers) {
		go func() { answers <- export(one) }()
	}
	<-slow.begun
	if got := <-answers; got != http.StatusServiceUnavailable {
		t.Errorf("the key's second export is answered %d", got)
	}
	go func() { answers <- export(other) }()
	<-slow.begun
	close(slow.let)
	for range cap(answers) {
		if got := <-answers; got != http.StatusOK {
			t.Errorf("an export is answered %d", got)
		}
	}
	if got := export(one); got != http.StatusOK {
		t.Errorf("the next export is answered %d", got)
	}
}

// TestOneKeyWaitsForFactsSoOften at once. Another key can still wait for them.
func TestOneKeyWaitsForFactsSoOften(t *testing.T) {
	const most = 256 // api.followsOfKey
	s := open(t, guarded)
	one, other := s.key(firstcome.Operator), s.key(firstcome.Operator)
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9}`, one...).want(t, 201, "")
	facts := func(key []string, wait string) int {
		return s.call("GET", "/v1/campaigns/c/facts?after=99&wait="+wait, "", key...).status
	}
	answers := make(chan int, most+1)
	for range cap(answers) {
		go func() { answers <- facts(one, "1m") }()
	}
	if got := <-answers; got != http.StatusServiceUnavailable {
		t.Errorf("one too many is answered %d", got)
	}
	if here, there := facts(one, "0s"), facts(other, "1ms"); here != 200 || there != 200 {
		t.Errorf("who does not wait is answered %d, and another key %d", here, there)
	}
	s.server.Drain()
	for range most {
		if got := <-answers; got != http.StatusOK {
			t.Errorf("one who waited is answered %d", got)
		}
	}
}
