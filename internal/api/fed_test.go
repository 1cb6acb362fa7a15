package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/test/stage"
)

// inTopic is a change of open: new lines are in a topic.
func inTopic(s *shop, c *api.Config) {
	s.topic = stage.NewTopic(s.ledger, 2)
	s.issuer = flow.NewIssuer(s.topic, flow.Limits{})
	c.Places, c.Proofs = s.topic, s.topic
}

// openTopic opens a shop whose clock stands still and whose lines are in a topic, with the campaign c.
func openTopic(t *testing.T, terms string, change ...func(*shop, *api.Config)) *shop {
	t.Helper()
	s := openAtNoon(t, append(change, inTopic)...)
	s.create(`{"id":"c","name":"n",` + terms + `}`)
	return s
}

// join has a user join the line of c, and returns their place by the proof: a path behind which more may stand.
func (s *shop) join(user string) (place, proof string) {
	s.t.Helper()
	proof = s.claim("c", user).want(s.t, 202, "waiting").text("proof")
	return "/v1/campaigns/c/claims/" + user + "?proof=" + url.QueryEscape(proof), proof
}

// serveTopic serves the line of c as a Dispatcher does.
func (s *shop) serveTopic() {
	s.t.Helper()
	stage.Must(s.t, stage.Err(s.topic.Serve(s.t.Context(), "c", 1000)))
}

// code wants a problem with a code, and that a 503 says when to ask again.
func (r reply) code(t testing.TB, status int, code string) reply {
	t.Helper()
	if r.status != status || r.text("code") != code || (status == 503) != (r.header.Get("Retry-After") != "") {
		t.Errorf("it answers %d %q, Retry-After %q, and should %d %q: %s", r.status, r.text("code"), r.header.Get("Retry-After"), status, code, r.body)
	}
	return r
}

func TestAPlaceInATopicIsFoundByItsProof(t *testing.T) {
	s := openTopic(t, `"quantity":3,"closes_at":"2026-11-20T18:00:00Z","pace":{"per_second":1}`)
	if r := s.call("GET", "/v1/campaigns/c", ""); r.text("feed", "topic") != "topic-0" || r.json("feed", "partition") != 0.0 {
		t.Errorf("the campaign is %s", r.body)
	}
	a, proof := s.join("a")
	if r := s.claim("c", "a"); r.number("ticket") != 2 || r.text("proof") == proof { // the earlier one is the user's place
		t.Errorf("a claim again is answered %s", r.body)
	}
	b, _ := s.join("b")
	r := s.call("GET", a, "")
	r.wantPlace(t, 200, "1 of 1, 0 ahead, 0 s, likely true, <nil> <nil>")
	if r.text("proof") != proof || r.text("closes_at") != "2026-11-20T18:00:00.000000Z" {
		t.Errorf("the place by the proof is %s", r.body)
	}
	s.call("GET", b, "").wantPlace(t, 200, "3 of 1, 2 ahead, 2 s, likely true, <nil> <nil>")
	if r := s.call("HEAD", b, ""); r.status != 200 || len(r.body) != 0 {
		t.Errorf("HEAD answers %d %s", r.status, r.body)
	}
	if one, all := s.call("GET", "/v1/campaigns/c", "").number("waiting"), s.call("GET", "/v1/campaigns", "").items()[0]["waiting"]; one != 3 || all != 3.0 {
		t.Errorf("%d wait, and in the list %v", one, all)
	}
	if r := s.line(); r.number("last_ticket") != 3 || r.number("waiting") != 3 {
		t.Errorf("the line is %s", r.body)
	}
	s.call("GET", "/v1/campaigns/c/claims/a", "").code(t, 404, "not_found")
	s.call("GET", "/v1/campaigns/c/claims/a?place=1.1", "").code(t, 404, "not_found").want(t, 404, "") // nobody says that they left
	s.call("DELETE", "/v1/campaigns/c/claims/a", "").code(t, 404, "not_found")
	for what, wrong := range map[string]string{
		"another user's": stage.ProofOf("b", firstcome.Ticket{Generation: 1, Number: 3}), "another ticket's": stage.ProofOf("a", firstcome.Ticket{Generation: 2, Number: 1}) + "x", "none": "x",
	} {
		for _, method := range []string{"GET", "DELETE"} {
			if r := s.call(method, "/v1/campaigns/c/claims/a?proof="+url.QueryEscape(wrong), ""); r.text("code") != "wrong_proof" || r.status != 400 {
				t.Errorf("%s with a proof that is %s: %d %s", method, what, r.status, r.body)
			}
		}
		if r := s.call("GET", "/v1/campaigns/c/claims/a/events?proof="+url.QueryEscape(wrong), ""); r.status != 400 {
			t.Errorf("a stream with a proof that is %s: %d %s", what, r.status, r.body)
		}
	}
	s.call("GET", a+"&proof=again", "").code(t, 422, "not_allowed")
	for _, method := range []string{"GET", "DELETE"} {
		for _, wrong := range []string{strings.Repeat("가", 129), "\x00"} {
			s.call(method, "/v1/campaigns/c/claims/a?proof="+url.QueryEscape(wrong), "").code(t, 422, "not_allowed")
		}
		s.call(method, "/v1/campaigns/c/claims/a?proof="+url.QueryEscape(strings.Repeat("가", 128)), "").code(t, 400, "wrong_proof")
	}
	s.serveTopic()
	for _, path := range []string{a, "/v1/campaigns/c/claims/a", "/v1/campaigns/c/claims/a?proof=x"} {
		s.call("GET", path, "").want(t, 200, "already_issued")
	}
	s.call("DELETE", a, "").code(t, 409, "already_served")
	for range 2 {
		s.call("DELETE", b, "").want(t, 200, "")
	}
	s.call("GET", b, "").code(t, 404, "not_found")
	s.call("GET", b+"&place=1.3", "").code(t, 404, "not_found").want(t, 404, "left")
	s.later(time.Second)
	s.serveTopic()
	s.call("GET", b, "").code(t, 404, "not_found")
}

// TestAProofOfALineAtTheGateIsRefused: nobody is told that they are not in line because they showed one. A node without the topic cannot
// say anything about a line that is in one.
func TestAProofOfALineAtTheGateIsRefused(t *testing.T) {
	at := openAtNoon(t)
	at.create(`{"id":"c","name":"n","quantity":3,"pace":{}}`)
	at.claim("c", "a").want(t, 202, "waiting")
	topic := openAtNoon(t, inTopic)
	topic.create(`{"id":"c","name":"n","quantity":3}`)
	for _, s := range []*shop{at, topic} {
		for _, method := range []string{"GET", "DELETE"} {
			if r := s.call(method, "/v1/campaigns/c/claims/a?proof=1.1.A", ""); r.status != 400 || r.text("code") != "wrong_proof" || !strings.Contains(r.text("detail"), "at the gate") {
				t.Errorf("%s: %d %s", method, r.status, r.body)
			}
		}
		s.call("GET", "/v1/campaigns/none/claims/a?proof=1.1.A", "").code(t, 404, "not_found")
	}
	at.call("DELETE", "/v1/campaigns/c/claims/a?proof=", "").want(t, 200, "")
}

// TestANodeWithoutTheTopicSaysNothingOfALineThere: other nodes may.
func TestANodeWithoutTheTopicSaysNothingOfALineThere(t *testing.T) {
	s := openTopic(t, `"quantity":3,"pace":{}`)
	place, _ := s.join("a")
	s.server.Proofs = nil
	s.call("GET", place, "").code(t, 503, "wrong_node")
	s.call("DELETE", place, "").code(t, 503, "wrong_node")
}

// TestNothingUntrueIsSaidWhileKafkaIsAway has the topic not answer, and then take no record.
func TestNothingUntrueIsSaidWhileKafkaIsAway(t *testing.T) {
	s := openTopic(t, `"quantity":3,"pace":{"per_second":1}`)
	a, _ := s.join("a")
	s.topic.Break(fmt.Errorf("%w: no route to host", firstcome.ErrFeedAway))
	s.claim("c", "b").code(t, 503, "line_away")
	s.call("GET", a, "").want(t, 200, "waiting")
	s.call("GET", "/v1/campaigns/c/line", "").code(t, 503, "line_away")
	s.call("GET", "/v1/campaigns/c", "").want(t, 200, "")
	s.call("POST", "/v1/campaigns", `{"id":"d","name":"n","quantity":1,"pace":{}}`).code(t, 503, "line_away")
	s.call("POST", "/v1/campaigns", `{"id":"e","name":"n","quantity":1}`).want(t, 201, "")
	s.call("PATCH", "/v1/campaigns/c", `{"pace":{"per_second":2}}`).code(t, 503, "line_away")
	s.call("PATCH", "/v1/campaigns/c", `{"quantity":4}`).want(t, 200, "")
	s.call("GET", "/v1/campaigns/d", "").code(t, 404, "not_found")
	s.topic.Break(nil)
	s.topic.Fill(errors.New("no answer in time"))
	s.claim("c", "b").code(t, 503, "unknown")
	s.topic.Fill(nil)
	s.claim("c", "b").want(t, 202, "waiting")
	s.serveTopic()
	s.topic.Break(firstcome.ErrFeedAway)
	s.claim("c", "a").want(t, 200, "already_issued")
	one, listed := s.call("GET", "/v1/campaigns/c", "").want(t, 200, ""), s.call("GET", "/v1/campaigns", "").items()[0]
	for what, says := range map[string][2]any{"the campaign": {one.json("state"), one.json("waiting")}, "the list": {listed["state"], listed["waiting"]}} {
		if says != [2]any{"unknown", nil} {
			t.Errorf("while the topic is away, %s says %v, and that %v wait", what, says[0], says[1])
		}
	}
	s.call("POST", "/v1/campaigns/c/pause", "").want(t, 200, "")
	if state := s.call("GET", "/v1/campaigns/c", "").json("state"); state != "paused" {
		t.Errorf("a paused campaign whose topic is away is %v", state)
	}
}

// TestALineThatTheTopicLostIsSaidToBeUntilItsPaceIsSet makes the topic again.
func TestALineThatTheTopicLostIsSaidToBeUntilItsPaceIsSet(t *testing.T) {
	s := openTopic(t, `"quantity":3,"pace":{"per_second":1}`)
	a, _ := s.join("a")
	s.topic.Remake()
	if r := s.claim("c", "b").code(t, 503, "line_lost"); !strings.Contains(r.text("detail"), "firstcome campaign update ID --pace N") {
		t.Errorf("it says %s", r.body)
	}
	s.call("PATCH", "/v1/campaigns/c", `{"name":"m"}`).want(t, 200, "")
	r := s.call("PATCH", "/v1/campaigns/c", `{"pace":{"per_second":1}}`).want(t, 200, "")
	if r.text("feed", "topic") != "topic-1" || r.number("version") != 3 {
		t.Errorf("the campaign is %s", r.body)
	}
	s.call("GET", a, "").code(t, 404, "not_found")
	if r := s.line(); r.number("generation") != 2 || !strings.Contains(string(r.body), `"reason":"lost"`) {
		t.Errorf("the line is %s", r.body)
	}
	s.claim("c", "b").wantPlace(t, 202, "1 of 2, 0 ahead, 0 s, likely true, <nil> <nil>")
	line := s.call("GET", "/v1/audit-log?campaign=c", "").items()[0]
	if fmt.Sprint(line["old"], line["new"]) != "map[feed:map[partition:0 topic:topic-0]] map[feed:map[partition:0 topic:topic-1]]" {
		t.Errorf("the audit log has %v", line)
	}
}

func TestACampaignNeedsAFreePartition(t *testing.T) {
	s := openTopic(t, `"quantity":3,"closes_at":"2026-11-20T12:10:00Z","pace":{}`)
	s.create(`{"id":"d","name":"n","quantity":1,"pace":{}}`)
	const another = `{"id":"e","name":"n","quantity":1,"pace":{}}`
	if r := s.call("POST", "/v1/campaigns", another).code(t, 409, "no_partition"); !strings.Contains(r.text("detail"), "kafka-topics.sh") {
		t.Errorf("it says %s", r.body)
	}
	s.call("POST", "/v1/campaigns", `{"id":"d","name":"n","quantity":1,"pace":{}}`).code(t, 409, "campaign_exists")
	s.create(`{"id":"f","name":"n","quantity":1}`)
	s.join("a")
	s.later(12 * time.Minute)
	if made := s.create(another); made.json("feed", "partition") != 0.0 {
		t.Errorf("the campaign is %s", made.body)
	}
	if r := s.call("GET", "/v1/campaigns/c", ""); r.text("feed", "topic") != "topic-0" || r.json("feed", "partition") != nil {
		t.Errorf("the campaign that is over is %s", r.body)
	}
	s.call("PATCH", "/v1/campaigns/c", `{"closes_at":null}`).code(t, 409, "no_partition")
	s.call("POST", "/v1/campaigns/d/close", "").want(t, 200, "")
	s.later(2 * time.Minute)
	if r := s.call("PATCH", "/v1/campaigns/c", `{"closes_at":null}`).want(t, 200, ""); r.json("feed", "partition") != 1.0 {
		t.Errorf("the campaign that goes on is %s", r.body)
	}
	for _, body := range []string{`{"id":"x","name":"n","quantity":1,"feed":null}`, `{"id":"x","name":"n","quantity":1,"feed":{"topic":"t","partition":1}}`} {
		if r := s.call("POST", "/v1/campaigns", body).code(t, 422, "not_allowed"); !strings.Contains(string(r.body), `{"field":"feed","reason":"there is no such field"}`) {
			t.Errorf("%s", r.body)
		}
	}
	s.call("PATCH", "/v1/campaigns/c", `{"feed":null}`).code(t, 422, "not_allowed")
}

// TestAStreamOfAPlaceInATopicTellsItsEnd has people follow by their proofs, also again, until they are served, leave, or are sent away.
func TestAStreamOfAPlaceInATopicTellsItsEnd(t *testing.T) {
	s := openTopic(t, `"quantity":2,"pace":{"per_second":1}`)
	_, a := s.join("a")
	left, leaver := s.join("leaver")
	_, late := s.join("late")
	s.call("GET", "/v1/campaigns/c/claims/a/events", "").code(t, 404, "not_found")
	first, second, third := s.followBy(a, "a"), s.followBy(leaver, "leaver"), s.followBy(late, "late")
	first.want("place", "1.1.0", `{"outcome":"waiting","ticket":1,"generation":1,"ahead":0,"eta_seconds":0,"likely":true,"serving":true,"why":null,"until":null,"closes_at":null,"proof":"1.1.proof-of-a","poll_after":`)
	second.want("place", "1.2.1", `{`)
	third.want("place", "1.3.2", `{`)
	s.call("DELETE", left, "").want(t, 200, "")
	s.serveTopic()
	first.want("outcome", "end", `{"outcome":"already_issued","coupon":{"campaign_id":"c","number":1,"user_id":"a",`)
	first.wantEnd()
	second.want("outcome", "end", `{"outcome":"left"}`)
	second.wantEnd()
	if e := third.next(); e.id != "1.3.0" || !strings.Contains(e.data, `"proof":"1.3.proof-of-late"`) {
		t.Errorf("the next place is told as %+v", e)
	}
	_ = third.response.Body.Close()
	again := s.followBy(late, "late", "Last-Event-ID", "1.3.2")
	again.want("place", "1.3.0", `{"outcome":"waiting","ticket":3,"generation":1,"ahead":0,`) // which is another one than it was told
	_ = again.response.Body.Close()
	s.claim("c", "b").want(t, 202, "waiting")
	s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["direct"]}`).want(t, 200, "")
	s.serveTopic()
	missed := s.followBy(late, "late", "Last-Event-ID", "1.3.0")
	missed.want("outcome", "end", `{"outcome":"sold_out"}`)
	if r := s.askStreamBy(late, "late", "Last-Event-ID", "end"); r.StatusCode != 204 {
		t.Errorf("who has heard all is answered %s", r.Status)
	}
	s.call("GET", "/v1/campaigns/c/claims/late/events?proof="+late, "").code(t, 404, "not_found")
	awaitNoStream(s)
}

// TestAStreamOfAPlaceInATopicTellsWhyItEnded has campaigns end while somebody follows: by their window, by an operator, and with their topic.
func TestAStreamOfAPlaceInATopicTellsWhyItEnded(t *testing.T) {
	for want, end := range map[string]func(*shop){
		"closed": func(s *shop) { s.later(time.Hour) },
		"lost": func(s *shop) {
			s.topic.Remake()
			s.call("PATCH", "/v1/campaigns/c", `{"pace":{"per_second":1}}`).want(t, 200, "")
		},
		"sold_out": func(s *shop) { s.call("PATCH", "/v1/campaigns/c", `{"quantity":0}`).want(t, 200, "") },
	} {
		t.Run(want, func(t *testing.T) {
			s := openTopic(t, `"quantity":2,"closes_at":"2026-11-20T13:00:00Z","pace":{"per_second":1}`)
			_, a := s.join("a")
			l := s.followBy(a, "a")
			l.want("place", "1.1.0", `{`)
			end(s.with(t))
			l.want("outcome", "end", `{"outcome":"`+want+`"}`)
			l.wantEnd()
		})
	}
}

// with returns the shop for a part of the test that moves its clock, too.
func (s *shop) with(t testing.TB) *shop {
	s.t = t
	return s
}

// TestTheClientNeedsNoProofOfItsOwn: the place that a claim was answered is all that a program keeps, whatever keeps the line.
func TestTheClientNeedsNoProofOfItsOwn(t *testing.T) {
	s := openTopic(t, `"quantity":1,"pace":{"per_second":1}`)
	c := client.New(s.url, "")
	t.Cleanup(c.CloseIdle)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	place := map[string]client.Place{}
	for _, user := range []string{"a", "leaver", "late"} {
		answer, err := c.Claim(ctx, "c", user)
		stage.Must(t, err)
		place[user] = *answer.Place
	}
	if _, err := c.ClaimOf(ctx, "c", "a"); status(err) != 404 {
		t.Errorf("without the place: %v", err)
	}
	if answer, err := c.ClaimOf(ctx, "c", "a", client.Place{Proof: place["a"].Proof}); err != nil || answer.Place == nil || answer.Ticket != 1 {
		t.Errorf("by the proof: %+v, %v", answer, err)
	}
	if err := c.Leave(ctx, "c", "leaver"); status(err) != 404 {
		t.Errorf("who leaves without the place: %v", err)
	}
	if err := c.Leave(ctx, "c", "leaver", place["a"]); status(err) != 400 {
		t.Errorf("who leaves with another's place: %v", err)
	}
	stage.Must(t, c.Leave(ctx, "c", "leaver", place["leaver"]))
	for user, want := range map[string]string{"a": client.AlreadyIssued, "late": client.SoldOut} {
		from := place[user]
		from.PollAfter = 0.05
		ended := make(chan string, 1)
		go func() {
			answer, err := c.Follow(ctx, "c", user, from, nil)
			ended <- fmt.Sprint(answer.Outcome, err)
		}()
		s.serveTopic()
		if got := <-ended; got != want+"<nil>" {
			t.Errorf("%s gets %s", user, got)
		}
	}
}

// TestTheClientsErrorsHaveNoProof: programs log them.
func TestTheClientsErrorsHaveNoProof(t *testing.T) {
	c := client.New("http://127.0.0.1:1", "")
	_, err := c.ClaimOf(t.Context(), "c", "u", client.Place{Proof: "1.1.SECRET"})
	if err == nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "/claims/u") {
		t.Errorf("%v", err)
	}
}

// TestNoLogHasAProof: the access log has the route, and a request that fails is told without its query.
func TestNoLogHasAProof(t *testing.T) {
	var text bytes.Buffer
	s := openTopic(t, `"quantity":3,"pace":{}`, func(_ *shop, c *api.Config) {
		c.Log = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	place, proof := s.join("a")
	s.call("GET", place, "").want(t, 200, "waiting")
	s.call("GET", place+"&x=1", "").want(t, 422, "")
	s.topic.Remake()
	s.call("DELETE", place, "")
	s.topic.Break(firstcome.ErrFeedAway)
	s.call("DELETE", place, "")
	s.finish()
	for len(s.heard.warned) > 0 {
		text.WriteString(<-s.heard.warned)
	}
	if secret := strings.SplitN(proof, ".", 3)[2]; strings.Contains(text.String(), secret) || !strings.Contains(text.String(), "/claims/{user_id}") {
		t.Errorf("the log has:\n%s", text.String())
	}
}
