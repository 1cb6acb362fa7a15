//go:build !check && (!race || soak)

package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
)

// TestAHeadIsAsBoundedAsItsGet sends HEAD to every operation that has GET. It streams nothing of a campaign, and does not wait for facts.
func TestAHeadIsAsBoundedAsItsGet(t *testing.T) {
	s := open(t, audits(func(context.Context, firstcome.CampaignID) (api.Audited, error) {
		return api.Audited{}, errors.New("nobody reads what an audit for a HEAD finds")
	}))
	s.createInLedger("c")
	for range 20 {
		s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["`+strings.Repeat(`x","`, 200)+`y"]}`).want(t, 200, "")
	}
	s.client.Timeout = 20 * time.Second // this would also end the wait for facts
	for _, operation := range s.server.Operations() {
		path, ok := strings.CutPrefix(operation, "GET ")
		if !ok {
			continue
		}
		path = strings.NewReplacer("{id}", "c", "{user_id}", "x").Replace(path)
		query, status := "", http.StatusOK
		if strings.HasSuffix(path, "/reconcile") {
			status = http.StatusConflict // the ledger decides, so there is no gate
		}
		if strings.HasSuffix(path, "/facts") {
			query = "?after=900&wait=1m"
		}
		for _, accept := range []string{"application/json", "text/csv", "application/x-ndjson"} {
			answer, err := s.try("HEAD", path+query, "", "Accept", accept)
			if answer.status != status || len(answer.body) > 0 || err != nil {
				t.Errorf("%s as %s answers %d with %d bytes, %v", path, accept, answer.status, len(answer.body), err)
			}
			if media := answer.header.Get("Content-Type"); strings.HasSuffix(path, "/coupons") && !strings.Contains(path, "users") && !strings.HasPrefix(media, accept) {
				t.Errorf("%s as %s answers as %s", path, accept, media)
			}
		}
	}
}

// TestAHeadOfAnExportReadsNoCoupon uses a ledger whose exports fail, which would cut the connection.
func TestAHeadOfAnExportReadsNoCoupon(t *testing.T) {
	s := open(t)
	s.createInLedger("c")
	s.behind(`DROP TABLE coupons`)
	for method, want := range map[string]any{"GET": http.ErrAbortHandler, "HEAD": nil} {
		r := httptest.NewRequest(method, "/v1/campaigns/c/coupons", nil)
		r.Host = "localhost"
		r.Header.Set("Accept", "text/csv")
		answer, ended := httptest.NewRecorder(), any(nil)
		func() {
			defer func() { ended = recover() }()
			s.server.Handler().ServeHTTP(answer, r)
		}()
		if ended != want || answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "text/csv; charset=utf-8" {
			t.Errorf("%s ends in %v and answers %d %v", method, ended, answer.Code, answer.Header())
		}
	}
}

// TestWhoHasNoKeyDoesNotHaveTheLedgerAsked requests /readyz?verbose with a key and without.
func TestWhoHasNoKeyDoesNotHaveTheLedgerAsked(t *testing.T) {
	s := open(t, guarded)
	for _, role := range []firstcome.Role{firstcome.Admin, firstcome.Service, firstcome.Viewer} {
		if r := s.call("GET", "/readyz?verbose", "", s.key(role)...); r.status != 200 || r.text("ledger") != "ok" || r.text("version") != "test" {
			t.Errorf("as %s it answers %d %s", role, r.status, r.body)
		}
	}
	for name, header := range map[string][]string{"nobody": nil, "a user": s.token("u"), "a wrong key": {"Authorization", "Bearer fc_x_y"}} {
		if r := s.call("GET", "/readyz?verbose", "", header...); r.status != 200 || string(r.body) != `{"status":"ready"}` {
			t.Errorf("as %s it answers %d %s", name, r.status, r.body)
		}
	}
}
