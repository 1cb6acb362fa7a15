//go:build linux && !check

package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
)

// A stranger is a node on a fleet's ledger that does not belong to the fleet.
type stranger struct {
	name string
	*process
}

const withAnotherRedis = "with another Redis"

// strangers starts nodes on the fleet's ledger that have another secret, and other
// gates.
func (f *fleet) strangers(t *testing.T, redis bool) []stranger {
	t.Helper()
	ledger := slices.Concat(f.args[:2], patient)
	other := launch{args: append(f.role, f.args...), env: []string{"FIRSTCOME_SECRET=another secret of the tests, 32 bytes and more"}}
	elsewhere := launch{args: append([]string{"--gate", services.Redis.Database(t)}, ledger...), env: f.env}
	all := []stranger{{"with another secret", serve(t, other)}, {withAnotherRedis, serve(t, elsewhere)}}
	if redis {
		all = append(all, stranger{"whose ledger is its gate", serve(t, launch{args: ledger, env: f.env})})
	}
	return all
}

// TestF32F64ANodeWithAnotherSecretOrGateThanTheFleetDecidesNothing has such nodes asked
// for all that decides, while the fleet issues.
func TestF32F64ANodeWithAnotherSecretOrGateThanTheFleetDecidesNothing(t *testing.T) {
	on(t, strangersDecideNothing, postgreSQL, redisOfMariaDB)
}

func strangersDecideNothing(t *testing.T, s setup) {
	f := s.fleet(t, patient...)
	f.create("spring", 10_000_000, firstcome.Recorded)
	crowd := newCrowd("spring")
	stop := f.claimUntil(crowd, 4)
	defer stop()
	crowd.awaitAnswers(t, 50)
	for _, p := range f.strangers(t, s.redis) {
		at := p.url + "/v1/campaigns/spring"
		for _, ask := range [][3]string{
			{http.MethodPost, at + "/claims", `{"user_id":"user-1"}`}, // who has a coupon
			{http.MethodPost, at + "/claims", `{"user_id":"nobody"}`},
			{http.MethodPost, at + "/coupons", `{"user_ids":["nobody"]}`},
			{http.MethodPost, at + "/pause", ""},
			{http.MethodPost, at + "/close", ""},
			{http.MethodPatch, at, `{"quantity":1}`},
			{http.MethodPost, at + "/coupons/1/void", `{"reason":"e2e"}`},
		} {
			if s.redis && p.name == withAnotherRedis && strings.HasSuffix(ask[1], "/close") {
				continue // the ledger takes it, as of a campaign whose Redis is gone: see adr 26
			}
			answer, text := p.ask(ask[0], ask[1], ask[2])
			if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" ||
				!strings.Contains(string(text), firstcome.ErrGateMismatch.Error()) {
				t.Errorf("a node %s answers %s with %s %s", p.name, ask[1], answer.Status, text)
			}
		}
		if !strings.Contains(p.text(), "another code secret than this node") && !strings.Contains(p.text(), firstcome.ErrGateMismatch.Error()) {
			t.Errorf("the log of a node %s does not say why:\n%s", p.name, p.text())
		}
		crowd.awaitAnswers(t, 50)
	}
	stop()
	f.drained("spring")
	f.verdict(crowd)
	changes, err := f.node(0).calls.Operator().Changes(t.Context(), "spring", 0, 0)
	if err != nil || len(changes.Items) != 1 {
		t.Errorf("the campaign has %d changes, want that which made it: %v", len(changes.Items), err)
	}
}

// TestF65UsersWithTheDocumentedRightsServeAFleet has nodes whose user of the database
// may read and write rows only, and whose user of Redis has no more than redis.Rights.
func TestF65UsersWithTheDocumentedRightsServeAFleet(t *testing.T) {
	on(t, documentedRights, postgreSQL, redisOfMariaDB)
}

func documentedRights(t *testing.T, s setup) {
	owner, gate := s.ledger.Database(t), ""
	status, out := executeWith(t, t.TempDir(), []string{"FIRSTCOME_SECRET=" + fleetSecret}, "migrate", "--ledger", owner)
	if status != 0 {
		t.Fatalf("migrate ends with %d: %s", status, out)
	}
	if s.redis {
		gate = services.User(t, services.Redis.Database(t), strings.Fields(redis.Rights)...)
	}
	f := newFleet(t, services.User(t, owner, "SELECT", "INSERT", "UPDATE"), gate, patient...)
	f.create("spring", 10_000_000, firstcome.Recorded)
	crowd := newCrowd("spring")
	crowd.returned = true
	stop := f.claimUntil(crowd, 4)
	defer stop()
	o := &operator{f: f, crowd: crowd}
	crowd.awaitAnswers(t, 100)
	_, paused := o.do(o.pause)
	o.issuing(o.between(paused, o.resume))
	o.do(o.void(1))
	crowd.awaitAnswers(t, 100)
	stop()
	for _, err := range crowd.errs {
		t.Error(err)
	}
	f.drained("spring")
	f.verdict(crowd)
}
