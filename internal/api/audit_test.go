package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/test/stage"
)

// auditBooks audits a campaign by the ledger's tables.
func (s *shop) auditBooks(ctx context.Context, id firstcome.CampaignID) (found api.Audited, err error) {
	found.Report, err = audit.Ledger(ctx, s.ledger.Tables().Source(), id, nil, nil)
	return found, err
}

// audits returns a change of open: the shop audits with do.
func audits(do func(context.Context, firstcome.CampaignID) (api.Audited, error)) func(*shop, *api.Options) {
	return func(_ *shop, c *api.Options) { c.Audit = do }
}

// TestTheClientKnowsAllThatAnAuditFinds decodes an audit with a value in every field.
func TestTheClientKnowsAllThatAnAuditFinds(t *testing.T) {
	breaches := audit.Breaches{Total: 2, Count: map[string]int64{"P4": 2}, Shown: []audit.Breach{{Promise: "P4", Query: "missing", Text: "number 2 is missing"}}}
	s := open(t, audits(func(_ context.Context, id firstcome.CampaignID) (api.Audited, error) {
		return api.Audited{
			Report: audit.Report{
				Campaign: id, Coupons: 1, InForce: 2, Voided: 3, Facts: 4, Letters: 5, Lost: 6, LostTold: 7, Lines: 8, Missing: 9,
				Held: []string{"P1", "P4"}, Breaches: breaches,
			},
			Gate: &audit.GateReport{Campaign: id, Holders: 1, Unrecorded: 2, Waiting: 3, Moving: true, Elsewhere: "redis:1", Failed: "away", Breaches: breaches},
		}, nil
	}))
	s.createInLedger("c")
	answer := s.call("GET", "/v1/campaigns/c/audit", "").want(t, 200, "")
	known, err := client.New(s.url, "").Operator().Audit(t.Context(), "c")
	stage.Must(t, err)
	text, err := json.Marshal(known)
	stage.Must(t, err)
	var sent, got any
	stage.Must(t, errors.Join(json.Unmarshal(answer.body, &sent), json.Unmarshal(text, &got)))
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("the server sends (-), and the client knows (+):\n%s", diff)
	}
}

func TestANodeThatAuditsAlreadySaysWhenToAskAgain(t *testing.T) {
	s := open(t, audits(func(context.Context, firstcome.CampaignID) (api.Audited, error) {
		return api.Audited{}, api.ErrAuditRunning
	}))
	s.createInLedger("c")
	s.call("GET", "/v1/campaigns/c/audit", "").want(t, 503, "")
	_, err := client.New(s.url, "").Operator().Audit(t.Context(), "c")
	var p *client.Problem
	if !errors.As(err, &p) || p.Code != "audit_running" || p.RetryAfter <= 0 {
		t.Errorf("the client is told %v", err)
	}
	s.call("GET", "/v1/campaigns/none/audit", "").want(t, 404, "")
}

// TestAnAuditOfARowThatCannotBeRead expects a breach instead of an error.
func TestAnAuditOfARowThatCannotBeRead(t *testing.T) {
	s := open(t)
	s.createInLedger("c")
	s.behind(`UPDATE changes SET payload = '[' || payload`)
	if r := s.call("GET", "/v1/campaigns/c/audit", "").want(t, 200, ""); !strings.Contains(string(r.body), `"promise":"unreadable"`) {
		t.Errorf("it answers %s", r.body)
	}
}

// heardOf signals when the first part of an answer is written.
type heardOf struct {
	*httptest.ResponseRecorder
	first chan struct{}
}

func (h *heardOf) Write(part []byte) (int, error) {
	n, err := h.ResponseRecorder.Write(part)
	if h.Body.Len() == n {
		close(h.first)
	}
	return n, err
}

// TestALongAuditSendsSpacesMeanwhile, so that no proxy mistakes the node for dead. If the audit fails after a space, the node
// cuts the connection.
func TestALongAuditSendsSpacesMeanwhile(t *testing.T) {
	for name, fails := range map[string]error{"it ends": nil, "it fails": errors.New("the ledger is gone")} {
		t.Run(name, func(t *testing.T) {
			w := &heardOf{httptest.NewRecorder(), make(chan struct{})}
			s := open(t, func(s *shop, c *api.Options) {
				c.PartTime = 3 * time.Millisecond
				c.Audit = func(ctx context.Context, id firstcome.CampaignID) (api.Audited, error) {
					select {
					case <-w.first:
					case <-time.After(time.Minute):
						t.Error("no space came in a minute")
					}
					found, err := s.auditBooks(ctx, id)
					return found, errors.Join(err, fails)
				}
			})
			s.createInLedger("c")
			r := httptest.NewRequest("GET", "/v1/campaigns/c/audit", nil)
			r.Host = "localhost"
			ended := any(nil)
			func() {
				defer func() { ended = recover() }()
				s.server.Handler().ServeHTTP(w, r)
			}()
			var found client.Audit
			err := json.Unmarshal(w.Body.Bytes(), &found)
			switch {
			case fails != nil && (ended != http.ErrAbortHandler || err == nil):
				t.Errorf("it ends with %v and %q", ended, w.Body)
			case fails == nil && (ended != nil || err != nil || found.CampaignID != "c" || w.Body.Bytes()[0] != ' '):
				t.Errorf("it ends with %v and %q, %v", ended, w.Body, err)
			}
		})
	}
}
