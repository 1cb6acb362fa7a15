//go:build linux && !check

package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// lines makes a topic that keeps lines, at the broker of a URL.
func lines(t *testing.T, at, name string) string {
	t.Helper()
	at, err := services.MakeTopic(t.Context(), at, name, 3, map[string]string{"retention.ms": "-1"})
	stage.Must(t, err)
	return at
}

// fedSetups are the setups whose lines a topic keeps here: those that are not the others' in what matters to a topic.
func fedSetups() []setup {
	if soaking {
		return lined()
	}
	return []setup{{"PostgreSQL is ledger and gate", services.PostgreSQL, false, false, false}, {"Redis is the gate of MariaDB", services.MariaDB, true, true, false}}
}

// TestF46F71P9ALineInATopicKeepsEveryPlaceWhileProcessesAreKilledInTurn is TestF71P9 of a line in a topic; one whose broker is killed, and
// one whose Redis is. The audit holds
// every coupon against the record of its ticket.
func TestF46F71P9ALineInATopicKeepsEveryPlaceWhileProcessesAreKilledInTurn(t *testing.T) {
	for _, s := range fedSetups() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel() // it waits for what starts again
			var topic string
			var d *deployment
			blows := []blow{{point.Served, nil}}
			if s.redis { // which is killed, and not the broker
				topic = lines(t, services.Kafka.Database(t), services.Unique("lines-of-the-killed"))
				d = s.deploy(t, withPoints(t), "--line", topic)
				blows = append(blows, blow{point.Served, d.gate}, blow{point.Committed, nil})
			} else {
				broker := services.Kafka.Server(t)
				topic = lines(t, broker.URL(), "lines")
				d = s.deploy(t, withPoints(t), "--line", topic)
				blows = append(blows, blow{point.Served, broker}, blow{point.Served, d.ledger})
			}
			d.createLine("spring", 200, slowPace)
			crowd := comeToTopic(d.fleet, "spring", 400)
			for _, b := range blows {
				d.suffer(b)
			}
			d.setPace("spring", map[string]any{}) // what is left goes as fast as it can
			wantIssued(t, crowd.verdict(), 200)
			d.auditWithLine(topic)
		})
	}
}

// auditWithLine is audit, and holds the coupons of spring against the topic with its line.
func (d *deployment) auditWithLine(topic string) {
	d.t.Helper()
	d.audit()
	if status, out := d.execute("audit", "--ledger", d.ledgerURL(), "--line", topic, "spring"); status != 0 {
		d.t.Errorf("the audit of the line ends with %d: %s", status, out)
	} else {
		d.t.Log(lastLine(out))
	}
}

// ledgerURL is the ledger's, for who goes there without a proxy.
func (d *deployment) ledgerURL() string {
	if d.plain != "" {
		return d.plain
	}
	return d.args[1]
}

// TestF48ALineWhoseTopicIsMadeAgainIsTold deletes the topic while people are in line, and makes it again: nobody is told a place in the new one
// that they do not have, nobody is served out of turn, and a pace that is given again sends those who waited away.
func TestF48ALineWhoseTopicIsMadeAgainIsTold(t *testing.T) {
	t.Parallel()
	broker := services.Kafka.Server(t)
	topic := lines(t, broker.URL(), "lines")
	d := alone.deploy(t, "--line", topic)
	d.createLine("spring", 10, 1)
	p := d.node(0)
	claim := func(user string) int {
		answer, _ := p.ask(http.MethodPost, p.url+"/v1/campaigns/spring/claims", `{"user_id":"`+user+`"}`)
		return answer.StatusCode
	}
	for _, user := range []string{"a", "b", "c", "d"} {
		if status := claim(user); status != http.StatusAccepted {
			t.Fatalf("the claim of %s is answered %d", user, status)
		}
	}
	stage.Must(t, services.DropTopic(t.Context(), topic))
	lines(t, broker.URL(), "lines")
	waitFor(t, "a claim that is refused", func() bool { return claim("late") == http.StatusServiceUnavailable })
	waitFor(t, "the log that says so", func() bool { return strings.Contains(p.text(), "the topic lines was made again") })
	d.setPace("spring", map[string]any{"per_second": 100})
	waitFor(t, "who claims behind to be answered", func() bool { return claim("e") == http.StatusAccepted })
	waitFor(t, "the coupon of who claimed behind", func() bool {
		answer, _ := p.ask(http.MethodGet, p.url+"/v1/campaigns/spring/claims/e", "")
		return answer.StatusCode == http.StatusOK
	})
	d.audit()
}

// TestF47AServerStartsWhileKafkaIsAway has what needs no topic be served meanwhile. The log says so, and what needs the topic goes on when Kafka is
// there.
func TestF47AServerStartsWhileKafkaIsAway(t *testing.T) {
	t.Parallel()
	broker := services.Kafka.Server(t)
	topic := lines(t, broker.URL(), "lines")
	stage.Must(t, broker.Stop())
	d := alone.deploy(t, "--line", topic)
	p := d.node(0)
	post := func(path, body string) (int, string) {
		answer, text := p.ask(http.MethodPost, p.url+"/v1/campaigns"+path, body)
		return answer.StatusCode, string(text)
	}
	if status, text := post("", `{"id":"plain","name":"plain","quantity":1}`); status != http.StatusCreated {
		t.Errorf("a campaign without a pace is answered %d %s", status, text)
	}
	if status, text := post("/plain/claims", `{"user_id":"a"}`); status != http.StatusCreated {
		t.Errorf("its claim is answered %d %s", status, text)
	}
	paced := func() (int, string) { return post("", `{"id":"spring","name":"spring","quantity":1,"pace":{}}`) }
	if status, text := paced(); status != http.StatusServiceUnavailable || !strings.Contains(text, "line_away") {
		t.Errorf("a campaign with a pace is answered %d %s", status, text)
	}
	if log := p.text(); !strings.Contains(log, "a waiting line in a topic needs a look") || !strings.Contains(log, "check hosts and ports") {
		t.Errorf("the log does not say that Kafka is away: %s", log)
	}
	stage.Must(t, broker.Restart(t.Context()))
	waitFor(t, "a campaign with a pace", func() bool {
		status, _ := paced()
		return status == http.StatusCreated
	})
	waitFor(t, "the claim of a place to be answered", func() bool { // a broker that has just started may take nothing for two seconds
		status, _ := post("/spring/claims", `{"user_id":"a"}`)
		return status == http.StatusAccepted
	})
	waitFor(t, "the coupon", func() bool {
		answer, _ := p.ask(http.MethodGet, p.url+"/v1/campaigns/spring/claims/a", "")
		return answer.StatusCode == http.StatusOK
	})
	d.audit()
}
