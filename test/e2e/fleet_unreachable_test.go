//go:build linux

package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF20WhileTheGateCannotBeReachedAChangeIs503AndIsDoneWhenItCan has Redis be away in each way that there is: its
// process is killed, its connections are reset, or it is silent. An operator's close is then 503 and waits; the
// next change is told so; nobody is told that it is closed. As soon as the gate is back it is closed, without anybody asking again.
func TestF20WhileTheGateCannotBeReachedAChangeIs503AndIsDoneWhenItCan(t *testing.T) {
	all := func(do func(*services.Proxy)) func(*deployment) error { // of those that answer and those that record
		return func(d *deployment) error {
			do(d.toGate)
			do(d.recordGate)
			return nil
		}
	}
	for id, away := range map[string]struct{ goes, back func(*deployment) error }{
		"killed": {func(d *deployment) error { return d.gate.Kill() }, func(d *deployment) error { return d.gate.Restart(d.t.Context()) }},
		"reset":  {all((*services.Proxy).Cut), all((*services.Proxy).Heal)},
		"silent": {all((*services.Proxy).Freeze), all((*services.Proxy).Heal)},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel() // it waits for what is away
			d := setup{name: "Redis is the gate of PostgreSQL", ledger: services.PostgreSQL, redis: true, synced: true}.deploy(t)
			d.create(id, 1000, firstcome.Recorded)
			one, other := d.node(0), d.node(1)
			post := func(p *process, path, body string) (int, string) {
				answer, text := p.ask(http.MethodPost, p.url+"/v1/campaigns/"+id+path, body)
				return answer.StatusCode, string(text)
			}
			if status, text := post(one, "/claims", `{"user_id":"early"}`); status != http.StatusCreated {
				t.Errorf("before: %d %s", status, text)
			}
			stage.Must(t, away.goes(d))
			if status, text := post(one, "/close", ""); status != http.StatusServiceUnavailable || !strings.Contains(text, "will be done") {
				t.Errorf("the close is answered %d %s", status, text)
			}
			if status, text := post(other, "/pause", ""); status != http.StatusServiceUnavailable || !strings.Contains(text, "nothing was changed") {
				t.Errorf("the next change is answered %d %s", status, text)
			}
			if status, text := post(other, "/claims", `{"user_id":"between"}`); status != http.StatusServiceUnavailable {
				t.Errorf("a claim is answered %d %s", status, text)
			}
			stage.Must(t, away.back(d))
			newcomers := 0
			waitFor(t, "the change to reach the gate", func() bool {
				newcomers++ // one who comes before may be issued a coupon: nobody was told yet that it is closed
				status, _ := post(other, "/claims", fmt.Sprintf(`{"user_id":"late-%d"}`, newcomers))
				return status == http.StatusGone
			})
			changes, err := other.calls.Changes(t.Context(), id, 0, 500)
			if err != nil || len(changes.Items) != 2 {
				t.Errorf("there are the changes %+v, %v", changes.Items, err)
			}
			if status, text := post(one, "/claims", `{"user_id":"after"}`); status != http.StatusGone || !strings.Contains(text, "closed") {
				t.Errorf("after it reached the gate: %d %s", status, text)
			}
			d.audit()
		})
	}
}
