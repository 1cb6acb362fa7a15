package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestANodeAuditsOneCampaignAtATime expects that the API refuses a second audit, and that the console waits.
func TestANodeAuditsOneCampaignAtATime(t *testing.T) {
	name := services.Ledgers[services.SQLite](t)
	stage.Must(t, decider(t, name).Campaigns.Create(t.Context(), "op", "c", stage.Terms(1)))
	n := &auditor{running: make(chan struct{}, audits), base: &base{secret: plantSecret, flags: &serveCmd{}}}
	n.flags.Ledger = ledgerName("sqlite:" + name)
	n.running <- struct{}{}
	if _, err := n.audit(t.Context(), "c"); !errors.Is(err, api.ErrAuditRunning) {
		t.Errorf("the API is told %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.prove(canceled, "c", new(atomic.Int64)); !errors.Is(err, context.Canceled) {
		t.Errorf("a proof that is stopped before its turn ends with %v", err)
	}
	<-n.running
	for range 2 {
		if found, err := n.audit(t.Context(), "c"); err != nil || found.Campaign != "c" || found.Breaches.Total > 0 {
			t.Errorf("it finds %+v, %v", found, err)
		}
		if found, err := n.prove(t.Context(), "c", new(atomic.Int64)); err != nil || found.Ledger.Campaign != "c" {
			t.Errorf("it proves %+v, %v", found, err)
		}
	}
}

func TestTheCommandWaitsForItsTurn(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"code": "audit_running"}`)
			return
		}
		_, _ = io.WriteString(w, `{"campaign_id": "c"}`)
	}))
	defer s.Close()
	calls := client.New(s.URL, "")
	defer calls.CloseIdle()
	if found, err := auditInTurn(t.Context(), calls, "c"); err != nil || found.CampaignID != "c" || asked != 3 {
		t.Errorf("asked %d times, it is told %+v, %v", asked, found, err)
	}
}
