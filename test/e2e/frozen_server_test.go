//go:build linux

package e2e_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A question is a request that has to be answered, whatever hangs.
type question struct{ method, path, body string }

// asked are all kinds of calls that wait for the ledger or the gate.
var asked = []question{
	{http.MethodPost, "/v1/campaigns/spring/claims", `{"user_id":"late"}`},
	{http.MethodGet, "/v1/campaigns/spring/claims/early", ""},
	{http.MethodGet, "/v1/campaigns/spring", ""},
	{http.MethodGet, "/v1/campaigns", ""},
	{http.MethodGet, "/v1/users/early/coupons", ""},
	{http.MethodGet, "/v1/campaigns/spring/coupons", ""},
	{http.MethodGet, "/v1/campaigns/spring/facts?wait=1s", ""},
	{http.MethodGet, "/v1/dead-letters", ""},
	{http.MethodGet, "/v1/audit-log", ""},
	{http.MethodGet, "/v1/campaigns/spring/changes", ""},
	{http.MethodPost, "/v1/campaigns/spring/coupons", `{"user_ids":["later"]}`},
	{http.MethodPost, "/v1/campaigns/spring/coupons/1/void", `{"reason":"test"}`},
	{http.MethodPost, "/v1/campaigns/spring/pause", ""},
	{http.MethodPost, "/v1/campaigns", `{"id":"summer","name":"summer","quantity":1}`},
	{http.MethodGet, "/readyz?verbose", ""},
}

// longestAnswer is what docs/limits.md says of every answer while a server hangs.
const longestAnswer = 15 * time.Second

// TestF09F53WhileAServerHangsEveryCallIsAnsweredAndTheNodeStops freezes each server that
// a node stands on, asks everything of it at once, and stops it.
func TestF09F53WhileAServerHangsEveryCallIsAnsweredAndTheNodeStops(t *testing.T) {
	for _, s := range setups {
		hanging := []string{"the ledger"}
		if s.redis {
			hanging = append(hanging, "the gate")
		}
		for _, which := range hanging {
			t.Run(s.name+", "+which+" hangs", func(t *testing.T) {
				t.Parallel()
				p, servers := s.one(t)
				p.create("spring", 100)
				p.ask(http.MethodPost, p.url+"/v1/campaigns/spring/claims", `{"user_id":"early"}`)
				stage.Must(t, servers[which].Freeze())
				p.http.Timeout = longestAnswer
				var all sync.WaitGroup
				for _, q := range asked {
					all.Go(func() { p.wantAnswer(q.method, p.url+q.path, q.body) })
				}
				all.Go(func() { p.wantAnswer(http.MethodGet, "http://"+p.ops+"/metrics", "") })
				all.Wait()
				started := time.Now()
				p.stop()
				t.Logf("stopped in %v", time.Since(started))
			})
		}
	}
}

// one starts servers and a single node on them.
func (s setup) one(t *testing.T) (p *process, servers map[string]*services.Server) {
	t.Helper()
	ledger := s.ledger.Server(t, s.ledger.Fast()...)
	url, err := ledger.Database(t.Context())
	stage.Must(t, err)
	servers = map[string]*services.Server{"the ledger": ledger}
	args := []string{"--ledger", url}
	if s.redis {
		gate := services.Redis.Server(t)
		servers["the gate"] = gate
		args = append(args, "--gate", gate.URL())
	}
	return serve(t, launch{args: args, env: []string{"FIRSTCOME_SECRET=" + fleetSecret}}), servers
}

// wantAnswer asks and wants an answer, not too late, that is no mistake of the server's.
func (p *process) wantAnswer(method, url, body string) {
	started := time.Now()
	answer, text := p.ask(method, url, body)
	if answer.StatusCode >= 500 && answer.StatusCode != http.StatusServiceUnavailable {
		p.t.Errorf("%s %s: %s %s", method, url, answer.Status, text)
	}
	p.t.Logf("%s %s: %s after %v", method, strings.TrimPrefix(url, p.url), answer.Status, time.Since(started).Round(10*time.Millisecond))
}
