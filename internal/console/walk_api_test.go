//go:build !race || soak

package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/test/stage"
)

// A node answers callers of the API. It has no answers in memory yet.
type node struct {
	*walk
	handler http.Handler
}

// node returns a node that uses the same parts as the walk's pages.
func (w *walk) node() *node {
	issuer := issue.NewIssuer(w.decides, issue.Options{})
	w.t.Cleanup(func() { stage.Must(w.t, issuer.Stop(context.Background())) })
	terms := api.NewTermsCache(w.ledger.Reads.Terms)
	config := api.Options{
		Ledger: w.away, Keys: w.ledger.Deployment, Terms: terms, Claims: &issue.Answerer{Issuer: issuer, Coupons: w.coupons, Terms: terms.Terms},
		Places: w.decides, Operator: w.config.Operator, Auth: w.auth, Log: slog.New(slog.DiscardHandler), Observer: deaf{},
	}
	if w.far != nil {
		config.Gate = w.over
	}
	return &node{w, api.New(config).Handler()}
}

// deaf ignores everything.
type deaf struct{}

func (deaf) Claimed(firstcome.CampaignID, firstcome.Outcome, time.Duration) {}
func (deaf) Decided(firstcome.CampaignID, firstcome.Outcome)                {}
func (deaf) Undecided(context.Context, firstcome.CampaignID, error)         {}
func (deaf) Warn(string, ...any)                                            {}

// An answer is a JSON object, with the status of the response.
type answer map[string]any

// ask sends a request to a path below /v1/campaigns.
func (n *node) ask(method, path, body string) answer {
	n.t.Helper()
	r := httptest.NewRequestWithContext(n.t.Context(), method, "http://localhost/v1/campaigns"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	n.handler.ServeHTTP(w, r)
	got := answer{}
	stage.Must(n.t, json.Unmarshal(w.Body.Bytes(), &got))
	got["status"] = float64(w.Code)
	return got
}

// has fails unless an answer has these fields. It may have more.
func (n *node) has(step walked, what string, got, want answer) {
	n.t.Helper()
	is := answer{}
	for name := range want {
		is[name] = got[name]
	}
	text, err := json.Marshal(want) // so that both have the types of decoded JSON
	stage.Must(n.t, err)
	want = answer{}
	stage.Must(n.t, json.Unmarshal(text, &want))
	if diff := cmp.Diff(want, is); diff != "" {
		n.t.Errorf("%s: %s (-so +told):\n%s%v", step.name, what, diff, got)
	}
}

// wire returns an instant as answers write it, or nil if there is none.
func wire(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UTC().Format("2006-01-02T15:04:05.000000Z")
}

// reads checks every answer that changes nothing against the walk's facts.
func (n *node) reads(step walked) {
	n.t.Helper()
	n.campaign(step)
	if n.dark {
		return
	}
	n.readLine(step)
	n.claims(step)
}

// campaign reads the campaign alone and in the list.
func (n *node) campaign(step walked) {
	n.t.Helper()
	one, all := n.ask("GET", "/spring", ""), n.ask("GET", "", "")
	if n.dark {
		n.has(step, "the campaign", one, answer{"status": 503})
		n.has(step, "the list", all, answer{"status": 503})
		return
	}
	items, _ := all["items"].([]any)
	if len(items) != 1 {
		n.t.Fatalf("%s: the list is %v", step.name, all)
	}
	listed := answer(items[0].(map[string]any))
	held := int64(len(n.held))
	want := answer{
		"state": "open", "gate_state": "ok", "quantity": n.terms.Quantity, "in_force": held, "issued": n.issued, "recorded": n.issued - n.unrecorded, "remaining": n.terms.Quantity - held,
		"waiting": len(n.line.waiting), "opened_at": wire(n.opened), "sold_out_at": wire(n.soldOut), "closed_at": wire(n.closed), "opens_at": wire(n.terms.OpensAt),
	}
	if step.gets != firstcome.Issued && step.gets != firstcome.Waiting {
		want["state"] = step.gets.String()
	}
	if n.blind { // only the ledger's figures are known
		want["state"], want["gate_state"] = "unknown", stops[n.why].state
		want["waiting"], want["opened_at"], want["sold_out_at"] = nil, nil, nil
		want["in_force"], want["issued"], want["remaining"] = nil, nil, nil
	}
	n.has(step, "the campaign in the list", listed, want)
	if n.gateAway() {
		want = answer{"code": "gate_unavailable"}
	}
	want["status"] = 200
	if n.gateAway() {
		want["status"] = 503
	}
	n.has(step, "the campaign", one, want)
}

// readLine reads the line.
func (n *node) readLine(step walked) {
	n.t.Helper()
	got := n.ask("GET", "/spring/line", "")
	if n.blind {
		n.has(step, "the line", got, answer{"status": 503, "code": stops[n.why].code})
		return
	}
	want := answer{"status": 200, "generation": n.line.generation + 1, "waiting": len(n.line.waiting), "state": "open"}
	if step.gets != firstcome.Issued && step.gets != firstcome.Waiting {
		want["state"] = step.gets.String()
	}
	n.has(step, "the line", got, want)
	if ended, _ := got["ended"].([]any); n.line.away != nil {
		if len(ended) == 0 || ended[0].(map[string]any)["reason"] != n.line.why {
			n.t.Errorf("%s: everybody was sent away since it is %s, and the line says %v", step.name, n.line.why, ended)
		}
	}
	for _, one := range n.line.waiting {
		through, some := got["likely_through"].(float64)
		if place := n.ask("GET", "/spring/claims/"+one.user, ""); place["likely"] != (!some || float64(one.place.Ticket) <= through) {
			n.t.Errorf("%s: %s is told %v, and the line %v", step.name, one.user, place, got)
		}
	}
}

// claims reads the claims of users who have a coupon, of the user whose coupon was voided, of users who wait or waited, and of a stranger.
func (n *node) claims(step walked) {
	n.t.Helper()
	claim := func(user string) answer { return n.ask("GET", "/spring/claims/"+url.PathEscape(user), "") }
	none := answer{"status": 404, "code": "not_found"}
	if n.blind {
		none = answer{"status": 503, "code": stops[n.why].code}
	}
	for _, user := range append(n.line.gone(), "nobody", n.gone) {
		if user != "" {
			n.has(step, "the claim of "+user+", who has nothing,", claim(user), none)
		}
	}
	for user, number := range n.held {
		if n.terms.Answer == firstcome.Recorded && number > n.issued-n.unrecorded {
			continue // the answer would wait for the ledger
		}
		got := claim(user)
		if n.blind && n.why != errRolledBack { //nolint:errorlint // of an older ledger the gate knows who holds what
			n.has(step, "the claim of "+user, got, none)
			continue
		}
		coupon, _ := got["coupon"].(map[string]any)
		n.has(step, "the claim of "+user, got, answer{"status": 200, "outcome": "already_issued"})
		n.has(step, "the coupon of "+user, coupon, answer{"number": number, "user_id": user, "recorded": number <= n.issued-n.unrecorded, "state": "in_force"})
	}
	for ahead, one := range n.line.waiting {
		want := none
		if !n.blind {
			want = answer{
				"status": 200, "outcome": "waiting", "ticket": one.place.Ticket, "generation": n.line.generation + 1, "serving": step.gets != firstcome.Paused, "reason": nil,
				"likely": n.likely(ahead),
			}
			if step.gets == firstcome.Paused {
				want["reason"] = "paused"
			}
		}
		got := claim(one.user)
		n.has(step, "the place of "+one.user, got, want)
		if most, _ := got["ahead"].(float64); !n.blind && (int(most) < ahead || int(most) > ahead+len(n.line.gone())) {
			n.t.Errorf("%s: %d people are ahead of %s, who is told %v", step.name, ahead, one.user, got)
		}
	}
	if n.blind {
		return
	}
	for _, was := range []struct {
		one *waiter
		why string
	}{{n.line.left, n.line.became}, {n.line.away, n.line.why}} {
		if was.one == nil {
			continue
		}
		p := was.one.place
		path := fmt.Sprintf("/spring/claims/%s?place=%d.%d", was.one.user, p.Generation, p.Ticket)
		n.has(step, "what became of "+was.one.user, n.ask("GET", path, ""), answer{"status": 404, "outcome": was.why})
	}
}

// refuses claims for a newcomer who gets nothing in this state, and once more for a holder. In states in which a newcomer gets something, newcomer
// claims at the gate instead.
func (n *node) refuses(step walked) {
	n.t.Helper()
	claim := func(user string) answer { return n.ask("POST", "/spring/claims", fmt.Sprintf(`{"user_id":%q}`, user)) }
	for user, number := range n.held {
		if number > n.issued-n.unrecorded {
			continue
		}
		got := claim(user)
		coupon, _ := got["coupon"].(map[string]any)
		n.has(step, user+" claims again", got, answer{"status": 200, "outcome": "already_issued"})
		n.has(step, user+" claims again", coupon, answer{"number": number})
		break
	}
	want := answer{"outcome": step.gets.String(), "code": step.gets.String()}
	switch step.gets {
	case firstcome.NotOpen:
		want["status"], want["opens_at"] = 403, wire(n.terms.OpensAt)
	case firstcome.Paused:
		want["status"] = 403
	case firstcome.SoldOut:
		want["status"], want["sold_out_at"], want["opened_at"] = 410, wire(n.soldOut), wire(n.opened)
	case firstcome.Closed:
		want["status"], want["closed_at"], want["opened_at"] = 410, wire(n.closed), wire(n.opened)
	default:
		return
	}
	n.has(step, "a newcomer claims", claim("refused"), want)
}
