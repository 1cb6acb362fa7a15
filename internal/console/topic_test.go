package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// openTopic opens a house whose new lines are in a topic of two partitions.
func openTopic(t testing.TB, change ...func(*house)) (*house, *stage.Topic) {
	t.Helper()
	h := &house{t: t, file: services.Ledgers[services.SQLite](t)}
	h.openLedger("")
	topic := stage.NewTopic(h.ledger, 2)
	h.decides, h.coupons, h.topic, h.issuer = topic, h.ledger, topic, flow.NewIssuer(topic, flow.Limits{})
	operator := operate.New(h.ledger, h.issuer, &flow.Answerer{Issuer: h.issuer, Coupons: h.ledger})
	operator.Lines = topic
	h.config.Places, h.config.Proofs, h.config.Operator = topic, topic, operator
	return h.open(nil, append(change, func(h *house) { h.config.Watcher.Lines = topic })...), topic
}

// paced makes a campaign with a line.
func (h *house) paced(id firstcome.CampaignID, quantity int64) {
	h.t.Helper()
	terms := firstcome.Terms{Name: "줄 " + string(id), Quantity: quantity, Answer: firstcome.Recorded, Pace: &firstcome.Pace{PerSecond: 5}}
	stage.Must(h.t, stage.Err(h.config.Operator.Create(h.t.Context(), "a test", id, terms)))
}

// finds wants a customer's page to say all of these, and none of those.
func (b *visitor) finds(query string, status int, says []string, not ...string) {
	b.h.t.Helper()
	got := b.get("/console/customer?" + query)
	for _, text := range says {
		if got.status != status || !strings.Contains(got.text(), text) {
			b.h.t.Errorf("%s: %d, and should be %d with %q: %s", query, got.status, status, text, got.text())
		}
	}
	for _, text := range not {
		if strings.Contains(got.text(), text) {
			b.h.t.Errorf("%s says %q: %s", query, text, got.text())
		}
	}
}

// TestACustomerInATopicIsFoundByTheirProof: without it support hears of coupons only, and says nothing of the line.
func TestACustomerInATopicIsFoundByTheirProof(t *testing.T) {
	h, topic := openTopic(t)
	h.paced("c", 2)
	h.claim("c", "a", "b", "late")
	b := h.browser()
	const asks, can = "A place in line is found by the proof", "You may join the line"
	proof := func(user string, ticket int64) string {
		return "&proof=" + url.QueryEscape(stage.ProofOf(firstcome.UserID(user), firstcome.Ticket{Generation: 1, Number: ticket}))
	}
	b.finds("campaign=c&user_id=b", 200, []string{asks, "Whether you are in line we can tell by the proof"}, can, "In line now")
	b.finds("campaign=c&user_id=b"+proof("b", 2), 200, []string{"In line now", "your ticket is 2, and at most 1 people are ahead"}, asks, can)
	b.finds("campaign=c&user_id=b"+proof("a", 1), http.StatusUnprocessableEntity, []string{asks, "This is no proof of this user and campaign", "Whether you are in line"}, can)
	stage.Must(t, topic.LeaveBy(t.Context(), "c", "b", stage.ProofOf("b", firstcome.Ticket{Generation: 1, Number: 2})))
	b.finds("campaign=c&user_id=b"+proof("b", 2), 200, []string{asks, "The place of this proof is not in line", can})
	stage.Must(t, stage.Err(topic.Serve(t.Context(), "c", 10)))
	b.finds("campaign=c&user_id=a", 200, []string{"You got number 1 of", "stood in line: ticket 1"}, asks)
	b.finds("campaign=c&user_id=a&proof=nonsense", 200, []string{"You got number 1 of"}, asks)
	stage.Must(t, stage.Err(h.config.Operator.Switch(t.Context(), "a test", "c", 0, ledger.Close)))
	b.finds("campaign=c&user_id=late", 200, []string{"It is closed."}, asks)
	h.campaign("gate", 2)
	b.finds("campaign=gate&user_id=b", 200, []string{"Coupons left now: 2."}, asks, can)
}

// TestThoseWhoWaitInATopicAreCounted on the pages, where neither ledger nor gate counts them. If nobody can tell, they are unknown.
func TestThoseWhoWaitInATopicAreCounted(t *testing.T) {
	h, topic := openTopic(t)
	h.paced("c", 9)
	h.claim("c", "a", "b", "d")
	waiting := func() (one, listed *int64) {
		t.Helper()
		s, err := h.config.Watcher.Now(t.Context(), "c")
		stage.Must(t, err)
		return s.Waiting, h.config.Watcher.Of(t.Context(), []ledger.Status{h.status("c")})[0].Waiting
	}
	if one, listed := waiting(); one == nil || listed == nil || *one != 3 || *listed != 3 {
		t.Errorf("%v and %v wait", one, listed)
	}
	topic.Break(firstcome.ErrFeedAway)
	if one, listed := waiting(); one != nil || listed != nil {
		t.Errorf("while the topic is away %v and %v wait", one, listed)
	}
	b := h.browser()
	for _, path := range []string{"", "/campaigns/c", "/campaigns/c/steer"} { // nobody can join now
		if found := badge.FindStringSubmatch(b.get("/console" + path).body); found == nil || found[2] != "unknown" {
			t.Errorf("%q says %q of a campaign whose topic is away", path, found)
		}
	}
	b.finds("campaign=c&user_id=b", 200, []string{"You have no coupon of", "The line does not answer now"}, "may join", "What decides")
	alone := figures.NewWatcher(h.ledger, nil, nil)
	if s, err := alone.Now(t.Context(), "c"); err != nil || s.Waiting != nil {
		t.Errorf("a node without the topic says that %v wait, %v", s.Waiting, err)
	}
}

// TestThePagesSayWhereALineIs, and what is the matter with it.
func TestThePagesSayWhereALineIs(t *testing.T) {
	h, topic := openTopic(t)
	h.paced("c", 9)
	h.config.Operator.Lines = nil
	h.paced("gate", 9)
	h.config.Operator.Lines = topic
	h.campaign("none", 9)
	b := h.browser()
	for path, want := range map[string]string{
		"/campaigns/c": "The line is in the Kafka topic topic-0, partition 0.", "/campaigns/c/steer": "The line is in the Kafka topic topic-0, partition 0.",
		"/campaigns/gate": "The line is at the gate.", "/campaigns/gate/steer": "The line is at the gate.", "/campaigns/none": "", "/campaigns/none/steer": "",
	} {
		got := b.get("/console" + path).text()
		if says := strings.Contains(got, "The line is"); !strings.Contains(got, want) || says != (want != "") {
			t.Errorf("%s: %s", path, got)
		}
		if strings.HasSuffix(path, "steer") && strings.Contains(got, "If the topic was made again") != strings.Contains(want, "Kafka") {
			t.Errorf("%s: %s", path, got)
		}
	}
	set := func(id string) shown {
		return b.post("/console/campaigns/"+id+"/pace", url.Values{"version": {"1"}, "line": {"paced"}, "per_second": {"5"}})
	}
	topic.Break(firstcome.ErrFeedAway)
	if got := set("c"); got.status != http.StatusServiceUnavailable || !strings.Contains(got.text(), "Kafka, which keeps the lines, does not answer") {
		t.Errorf("while Kafka is away: %d %s", got.status, got.text())
	}
	topic.Break(nil)
	h.claim("c", "a")
	topic.Remake()
	if got := set("c"); got.status != http.StatusOK || !strings.Contains(got.text(), "The line is in the Kafka topic topic-1, partition 0.") {
		t.Errorf("the pace is set once more: %d %s", got.status, got.text())
	}
	h.paced("d", 9)
	form := url.Values{"id": {"e"}, "name": {"e"}, "quantity": {"1"}, "line": {"fast"}, "answer": {"recorded"}, "step": {"create"}}
	if got := b.post("/console/campaigns", form); got.status != http.StatusConflict || !strings.Contains(got.text(), "add some with kafka-topics.sh") {
		t.Errorf("a campaign without a partition: %d %s", got.status, got.text())
	}
	if got := b.get("/console/campaigns/new?clone=c"); got.status != http.StatusOK || strings.Contains(got.body, "topic-1") {
		t.Errorf("a campaign like another one: %d %s", got.status, got.text())
	}
}

func TestAPlaceInATopicIsFoundByTheProofThatSomebodyTypes(t *testing.T) {
	h, _ := openTopic(t)
	h.paced("drop", 500)
	h.claim("drop", "mina", "jun")
	for lang, said := range map[string]string{"ko": "지금 대기열에 있습니다", "en": "In line now"} {
		r := h.reader()
		r.lang = lang
		h.findsByProof(r, said)
	}
}

// findsByProof has support look for jun, and then type the proof.
func (h *house) findsByProof(p screen, said string) {
	p.Go(h.url + "/console/customer?campaign=drop&user_id=jun")
	p.Type("input[name=proof]", stage.ProofOf("jun", firstcome.Ticket{Generation: 1, Number: 2}))
	p.Press("form.row button")
	p.Await(said)
}
