//go:build linux && !check

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

// TestF09F53WhileAServerHangsEveryCallIsAnsweredAndTheNodeStops freezes each server that
// a node stands on, asks everything of it at once, and stops it. In a soak that is so on every set-up, and no answer takes longer than
// docs/limits.md says.
func TestF09F53WhileAServerHangsEveryCallIsAnsweredAndTheNodeStops(t *testing.T) {
	t.Run("a ledger that decides", func(t *testing.T) { t.Parallel(); aServerHangs(t, mariaDB, theLedger, patience) })
	t.Run("a ledger that does not decide", func(t *testing.T) { t.Parallel(); aServerHangs(t, redisOfPostgreSQL, theLedger, patience) })
	t.Run("Redis", func(t *testing.T) { t.Parallel(); aServerHangs(t, redisOfMariaDB, theGate, patience) })
}

// The servers of a set-up.
const theLedger, theGate = "the ledger", "the gate"

// aServerHangs freezes one of the servers. No answer may take longer than longest.
func aServerHangs(t *testing.T, s setup, which string, longest time.Duration) {
	p, servers := s.one(t)
	p.create("spring", 100)
	p.ask(http.MethodPost, p.url+"/v1/campaigns/spring/claims", `{"user_id":"early"}`)
	stage.Must(t, servers[which].Freeze())
	p.http.Timeout = longest
	var all sync.WaitGroup
	for _, q := range asked {
		all.Go(func() { p.wantAnswer(q.method, p.url+q.path, q.body) })
	}
	all.Go(func() { p.wantAnswer(http.MethodGet, "http://"+p.ops+"/metrics", "") })
	all.Wait()
	p.stop()
}

// one starts servers and a single node on them.
func (s setup) one(t *testing.T) (p *process, servers map[string]*services.Server) {
	t.Helper()
	ledger := s.ledger.Server(t, s.ledger.Fast()...)
	url, err := ledger.Database(t.Context())
	stage.Must(t, err)
	servers = map[string]*services.Server{theLedger: ledger}
	args := []string{"--ledger", url}
	if s.redis {
		gate := services.Redis.Server(t)
		servers[theGate] = gate
		args = append(args, "--gate", gate.URL())
	}
	return serve(t, launch{args: args, env: []string{"FIRSTCOME_SECRET=" + fleetSecret}}), servers
}

// wantAnswer asks and wants an answer that is no mistake of the server's.
func (p *process) wantAnswer(method, url, body string) {
	started := time.Now()
	answer, text := p.ask(method, url, body)
	if answer.StatusCode >= 500 && answer.StatusCode != http.StatusServiceUnavailable {
		p.t.Errorf("%s %s: %s %s", method, url, answer.Status, text)
	}
	p.t.Logf("%s %s: %s after %v", method, strings.TrimPrefix(url, p.url), answer.Status, time.Since(started).Round(10*time.Millisecond))
}
