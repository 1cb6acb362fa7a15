//go:build linux && !check

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
	for id, away := range map[string]struct {
		ledger     services.Kind
		goes, back func(*hollow) error
	}{
		"killed": {services.PostgreSQL, func(d *hollow) error { return d.gate.Kill() }, func(d *hollow) error { return d.gate.Restart(d.t.Context()) }},
		"reset":  {services.MariaDB, func(d *hollow) error { d.proxy.Cut(); return nil }, func(d *hollow) error { d.proxy.Heal(); return nil }},
		"silent": {services.PostgreSQL, func(d *hollow) error { d.proxy.Freeze(); return nil }, func(d *hollow) error { d.proxy.Heal(); return nil }},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel() // it waits for what is away
			d := newHollow(t, away.ledger, "--answer-wait", "1s")
			d.create(id, 1000, firstcome.Recorded)
			one, other := d.node(0), d.node(1)
			post := func(p *process, path, body string) (int, string) {
				answer, text := p.ask(http.MethodPost, p.url+"/v1/campaigns/"+id+path, body)
				return answer.StatusCode, string(text)
			}
			claim := func(p *process, user string) (status int, text string) {
				waitFor(t, user+" to be told", func() bool {
					status, text = post(p, "/claims", fmt.Sprintf(`{"user_id":%q}`, user))
					return status != http.StatusServiceUnavailable
				})
				return status, text
			}
			if status, text := claim(one, "early"); status != http.StatusCreated && status != http.StatusOK {
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
			changes, err := other.calls.Operator().Changes(t.Context(), id, 0, 500)
			if err != nil || len(changes.Items) != 2 {
				t.Errorf("there are the changes %+v, %v", changes.Items, err)
			}
			if status, text := claim(one, "after"); status != http.StatusGone || !strings.Contains(text, "closed") {
				t.Errorf("after it reached the gate: %d %s", status, text)
			}
			d.audit()
		})
	}
}
