//go:build linux && !check

package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// lines makes a topic that has logs of lines, at the broker of a URL.
func lines(t *testing.T, at, name string) string {
	t.Helper()
	at, err := services.MakeTopic(t.Context(), at, name, 3, map[string]string{"retention.ms": "-1"})
	stage.Must(t, err)
	return at
}

// logged are the setups whose lines may have a log.
func logged() (all []setup) {
	for _, s := range setups {
		if s.synced = s.redis; s.redis {
			all = append(all, s)
		}
	}
	return all
}

// TestF46F71P9ALineInATopicKeepsEveryPlaceWhileProcessesAreKilledInTurn is TestF71P9 of a line that has a log in a topic. Nodes die also between
// the gate's ticket, the log's record and the answer, and stand still there while Redis, or the broker, is killed and started again.
func TestF46F71P9ALineInATopicKeepsEveryPlaceWhileProcessesAreKilledInTurn(t *testing.T) {
	for _, s := range logged() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel() // it waits for what starts again
			var topic string
			var d *deployment
			var blows []blow
			if s.ledger == services.MariaDB {
				topic = lines(t, services.Kafka.Database(t), services.Unique("lines-of-the-killed"))
				d = s.deploy(t, withPoints(t), "--line", topic)
				blows = []blow{{point.Joined, nil}, {point.Appended, d.gate}, {point.Served, nil}, {point.Served, d.gate}, {point.Committed, nil}}
			} else {
				broker := services.Kafka.Server(t)
				topic = lines(t, broker.URL(), "lines")
				d = s.deploy(t, withPoints(t), "--line", topic)
				blows = []blow{{point.Joined, broker}, {point.Appended, nil}, {point.Joined, d.gate}, {point.Served, broker}, {point.Served, d.ledger}}
			}
			d.createLine("spring", 200, slowPace)
			d.foresee(blows[0])
			crowd := come(d.fleet, "spring", 400)
			d.bear(blows[0])
			for _, b := range blows[1:] {
				d.suffer(b)
			}
			d.setPace("spring", map[string]any{}) // what is left goes as fast as it can
			crowd.isLogged(topic)
			wantIssued(t, crowd.verdict(), 200)
			d.audit()
		})
	}
}

// isLogged wants that the topic has each place that somebody was told.
func (c *lineCrowd) isLogged(topic string) {
	c.t.Helper()
	c.awaitEnds()
	ctx, id := c.t.Context(), firstcome.CampaignID(c.campaign)
	l, err := kafka.OpenLineLog(ctx, topic, kafka.LineLogOptions{})
	stage.Must(c.t, err)
	defer l.Close()
	log, err := l.LogLocation(ctx, id)
	stage.Must(c.t, err)
	end := log.First
	log.First = 0
	has := map[string]bool{}
	stage.Must(c.t, l.Read(ctx, id, log, end, func(_ int64, r line.Record) error {
		if !r.Left {
			has[fmt.Sprint(r.User, " ", r.Number)] = true
		}
		return nil
	}))
	for n := range c.all {
		if v := &c.all[n]; v.ticket > 0 && !has[fmt.Sprint(v.user, " ", v.ticket)] {
			c.t.Errorf("%s was told ticket %d, which the topic does not have", v.user, v.ticket)
		}
	}
}

// TestF05F77ALoggedLineKeepsEveryPlaceThoughRedisIsEmptied empties the Redis of a fleet whose nodes rebuild it by themselves, with 400 people in
// line. A node stands still meanwhile, between the gate's ticket, the log's record and the answer, or when it has served somebody, and goes on
// once the other one has rebuilt the gate. In the end one dies while it rebuilds. There are coupons for all, so who does not leave gets one.
func TestF05F77ALoggedLineKeepsEveryPlaceThoughRedisIsEmptied(t *testing.T) {
	t.Parallel()
	topic := lines(t, services.Kafka.Database(t), services.Unique("lines-of-the-emptied"))
	d := newHollow(t, services.MariaDB, withPoints(t), "--rebuild", "auto", "--line", topic)
	d.createLine("spring", 1000, slowPace)
	d.plan("stop", point.Joined)
	crowd, epoch := comeToLose(d.fleet, "spring", 400), int64(1)
	emptied := func(next ...point.Point) {
		t.Helper()
		p := d.struck("stop")
		tellRedis(t, d.gate.URL(), "FLUSHALL")
		epoch++
		d.awaitEpoch(d.besides(p), "spring", epoch)
		for _, at := range next {
			d.plan("stop", at)
		}
		p.thaw()
	}
	emptied(point.Appended)
	emptied()
	crowd.awaitJoined(t, 400)
	d.plan("stop", point.Served)
	emptied()
	d.plan("kill", point.Folded)
	tellRedis(t, d.gate.URL(), "FLUSHALL")
	d.replace(d.struck("kill"))
	d.awaitEpoch(d.node(0), "spring", epoch+1)
	d.setPace("spring", map[string]any{}) // what is left goes as fast as it can
	crowd.isLogged(topic)
	crowd.verdict()
	d.audit()
}

// besides returns another node than one.
func (f *fleet) besides(one *process) *process {
	if p := f.node(0); p != one {
		return p
	}
	return f.node(1)
}

// awaitEpoch waits until a campaign is in an epoch, as a node has it.
func (f *fleet) awaitEpoch(p *process, id string, epoch int64) {
	f.t.Helper()
	waitFor(f.t, "the next epoch", func() bool {
		at, err := p.calls.Operator().LedgerState(f.t.Context(), id)
		return err == nil && at.Epoch == epoch
	})
}

// A soloist is the only node of a Redis gate, whose lines have logs.
type soloist struct {
	*fleet
	*process
	t *testing.T
}

func newSoloist(t *testing.T, topic string) *soloist {
	t.Helper()
	f := redisOfMariaDB.single(t, "--line", topic)
	return &soloist{f, f.node(0), t}
}

// post returns the answer to a request, of which a test knows what is to become.
func (s *soloist) post(path, body string) (status int, text string) {
	answer, out := s.ask(http.MethodPost, s.url+"/v1/campaigns"+path, body)
	return answer.StatusCode, string(out)
}

func (s *soloist) claim(id, user string) (status int, text string) {
	return s.post("/"+id+"/claims", fmt.Sprintf(`{"user_id":%q}`, user))
}

// insistOnClaim returns what a claim is answered that is not 503.
func (s *soloist) insistOnClaim(id, user string) (answer client.Answer) {
	s.t.Helper()
	stage.Must(s.t, s.insist(func() (err error) {
		answer, err = s.calls.Claim(s.t.Context(), id, user)
		return err
	}))
	return answer
}

// inLine wants that users have the tickets from one on.
func (s *soloist) inLine(id string, users []string, from int64) {
	s.t.Helper()
	for n, user := range users {
		if a := s.insistOnClaim(id, user); a.Place == nil || a.Ticket != from+int64(n) {
			s.t.Errorf("the claim of %s is answered %+v, want ticket %d", user, a, from+int64(n))
		}
	}
}

// TestF48ALineWhoseTopicIsMadeAgainIsTold deletes the topic while people are in line, and makes it again. Who would join hears that the log is lost,
// and those in line are served. Then an operator has the line logged anew: everybody keeps their place, also who was told none, and does so when
// Redis loses the line.
func TestF48ALineWhoseTopicIsMadeAgainIsTold(t *testing.T) {
	t.Parallel()
	broker := services.Kafka.Server(t)
	topic := lines(t, broker.URL(), "lines")
	s := newSoloist(t, topic)
	s.createLine("spring", 1000, slowPace)
	users := s.patientPeople("spring")
	stage.Must(t, services.DropTopic(t.Context(), topic))
	lines(t, broker.URL(), "lines")
	waitFor(t, "a claim that is refused", func() bool {
		status, text := s.claim("spring", "late")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "line_lost")
	})
	waitFor(t, "the log that says so", func() bool {
		return strings.Contains(s.text(), "the topic lines was recreated") && strings.Contains(s.text(), "firstcome gate rebuild spring --without-line-log")
	})
	served := *s.counted("spring").Issued
	waitFor(t, "the next one who is served", func() bool { return *s.counted("spring").Issued > served })
	s.pauses(true)
	served = *s.counted("spring").Issued
	left := users[served:]
	s.inLine("spring", left, served+1)
	if status, out := s.execute("gate", "rebuild", "spring", "--without-line-log", "--server", s.process.url); status != 0 {
		t.Fatalf("the rebuild ends with %d: %s", status, out)
	}
	left = append(left, "late")
	s.inLine("spring", left, served+1)
	keys, err := tellRedis(t, s.args[3], "KEYS", "firstcome:{spring:*}:*").AsStrSlice()
	stage.Must(t, err)
	stage.Must(t, tellRedis(t, s.args[3], append([]string{"DEL"}, keys...)...).Error())
	s.awaitEpoch(s.process, "spring", 3)
	s.inLine("spring", left, served+1)
	s.pauses(false)
	s.inLine("spring", []string{"later"}, int64(len(users)+2))
	s.setPace("spring", map[string]any{})
	for _, user := range append(left, "later") {
		waitFor(t, "the coupon of "+user, func() bool { return s.insistOnClaim("spring", user).Coupon != nil })
	}
	s.fleet.audit()
}

// patientPeople has so many people join a line that some are in it to the end of a test.
func (s *soloist) patientPeople(id string) (users []string) {
	s.t.Helper()
	for n := range 200 {
		users = append(users, fmt.Sprint("user-", n+1))
	}
	s.inLine(id, users, 1)
	return users
}

func (s *soloist) pauses(is bool) {
	s.t.Helper()
	change := s.calls.Resume
	if is {
		change = s.calls.Pause
	}
	stage.Must(s.t, s.insist(func() error { return stage.Err(change(s.t.Context(), "spring")) }))
}

// TestF47AServerStartsWhileKafkaIsAway has what needs no topic be served meanwhile. The log says so, and what needs the topic goes on when Kafka is
// there.
func TestF47AServerStartsWhileKafkaIsAway(t *testing.T) {
	t.Parallel()
	broker := services.Kafka.Server(t)
	topic := lines(t, broker.URL(), "lines")
	stage.Must(t, broker.Stop())
	s := newSoloist(t, topic)
	if status, text := s.post("", `{"id":"plain","name":"plain","quantity":1}`); status != http.StatusCreated {
		t.Errorf("a campaign without a pace is answered %d %s", status, text)
	}
	if status, text := s.claim("plain", "a"); status != http.StatusCreated {
		t.Errorf("its claim is answered %d %s", status, text)
	}
	paced := func() (int, string) { return s.post("", `{"id":"spring","name":"spring","quantity":1,"pace":{}}`) }
	if status, text := paced(); status != http.StatusServiceUnavailable || !strings.Contains(text, "line_unavailable") {
		t.Errorf("a campaign with a pace is answered %d %s", status, text)
	}
	if log := s.text(); !strings.Contains(log, "the log of a waiting line needs a look") || !strings.Contains(log, "check hosts and ports") {
		t.Errorf("the log does not say that Kafka is away: %s", log)
	}
	stage.Must(t, broker.Restart(t.Context()))
	waitFor(t, "a campaign with a pace", func() bool {
		status, _ := paced()
		return status == http.StatusCreated
	})
	waitFor(t, "the claim of a place to be answered", func() bool { // a broker that has just started may take nothing for two seconds
		status, _ := s.claim("spring", "a")
		return status == http.StatusAccepted
	})
	waitFor(t, "the coupon", func() bool { return s.insistOnClaim("spring", "a").Coupon != nil })
	s.fleet.audit()
}

// TestF47WhoWouldWaitHearsThatKafkaIsAway stops the broker of a line. Those in line are served, and who joins meanwhile has a place, which they are
// told when Kafka is back.
func TestF47WhoWouldWaitHearsThatKafkaIsAway(t *testing.T) {
	t.Parallel()
	broker := services.Kafka.Server(t)
	s := newSoloist(t, lines(t, broker.URL(), "lines"))
	s.createLine("spring", 1000, slowPace)
	users := s.patientPeople("spring")
	stage.Must(t, broker.Stop())
	if status, text := s.claim("spring", "late"); status != http.StatusServiceUnavailable || !strings.Contains(text, "line_unavailable") {
		t.Errorf("who would wait is answered %d %s", status, text)
	}
	s.inLine("spring", users[len(users)-1:], int64(len(users)))
	served := *s.counted("spring").Issued
	waitFor(t, "the next one who is served", func() bool { return *s.counted("spring").Issued > served })
	stage.Must(t, broker.Restart(t.Context()))
	s.inLine("spring", []string{"late", "later"}, int64(len(users)+1))
	s.setPace("spring", map[string]any{})
	for _, user := range []string{users[len(users)-1], "late", "later"} {
		waitFor(t, "the coupon of "+user, func() bool { return s.insistOnClaim("spring", user).Coupon != nil })
	}
	s.fleet.audit()
}
