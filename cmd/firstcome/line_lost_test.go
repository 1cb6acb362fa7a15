//go:build !check && (!race || soak)

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// noLeases is an issuer that nothing is repeated by.
type noLeases struct{}

func (noLeases) Change(_ firstcome.CampaignID, change func() error) error { return change() }

// update does what the errors of a lost feed say: firstcome campaign update ID --pace N.
func (s *fedStage) update(id firstcome.CampaignID) firstcome.Feed {
	s.t.Helper()
	operator := operate.New(s.ledger, noLeases{}, nil)
	operator.Lines = s.line
	status, err := operator.SetTerms(s.t.Context(), "test", id, 0, func(t *firstcome.Terms) { t.Pace = &firstcome.Pace{} })
	stage.Must(s.t, err)
	return *status.Feed
}

// isLost wants an error that says what is the matter, and the command against it.
func isLost(t *testing.T, what string, err error, why string) {
	t.Helper()
	if !errors.Is(err, firstcome.ErrFeedLost) || !strings.Contains(fmt.Sprint(err), why) || !strings.Contains(fmt.Sprint(err), "firstcome campaign update c --pace N") {
		t.Errorf("%s: %v", what, err)
	}
}

// ended returns why the generations of a campaign ended, the last one first.
func (s *fedStage) ended(id firstcome.CampaignID) (reasons []string) {
	s.t.Helper()
	state, err := s.line.LineOf(s.t.Context(), id)
	stage.Must(s.t, err)
	for _, p := range state.Past {
		reasons = append(reasons, p.Reason)
	}
	return reasons
}

// look has a node look which lines have people in them.
func look(t *testing.T, s interface {
	Lines(ctx context.Context, each func(firstcome.CampaignID)) error
},
) (found []firstcome.CampaignID) {
	t.Helper()
	stage.Must(t, s.Lines(t.Context(), func(id firstcome.CampaignID) { found = append(found, id) }))
	return found
}

// TestATopicThatWasMadeAgainIsToldUntilThePaceIsSet deletes the topic while people are in line, and makes it again. Nobody is served or
// joins the line until an operator does what the errors say.
func TestATopicThatWasMadeAgainIsToldUntilThePaceIsSet(t *testing.T) {
	at := services.Kafka.Database(t)
	s := newFedStage(t, at)
	s.create("c", 9)
	proof := s.claim("c", "a", "b")[1].Place.Proof
	issued, _ := s.serve("c")
	stage.Same(t, "served before", []string{"1 a 1", "2 b 2"}, issued)
	s.claim("c", "d")
	remade(t, at)
	if found := look(t, s.line); found != nil {
		t.Errorf("the lines of %v are to be served", found)
	}
	_, err := s.line.Claim(t.Context(), "c", []firstcome.UserID{"e"})
	isLost(t, "a claim", err, "was recreated, or is another one")
	isLost(t, "the alarm", stage.Next(t, "an alarm", s.told), "was recreated, or is another one")
	if d := s.claimOnce("c", "a", "e"); d[0].Outcome != firstcome.AlreadyIssued || d[1].Outcome != 0 {
		t.Errorf("a holder beside who would join: %v, %v", d[0].Outcome, d[1].Outcome)
	}
	_, err = s.line.Serve(t.Context(), "c", 9)
	isLost(t, "the line", err, "was recreated, or is another one")
	was, err := s.ledger.Campaign(t.Context(), "c")
	stage.Must(t, err)
	if feed := s.update("c"); feed.Topic == was.Feed.Topic {
		t.Errorf("the feed %+v is another one than %+v", feed, *was.Feed)
	}
	stage.Same(t, "ended", []string{"lost"}, s.ended("c"))
	if _, coupon, err := s.line.PlaceBy(t.Context(), "c", "b", proof); err != nil || coupon.Number != 2 {
		t.Errorf("who was served has the coupon %+v, %v", coupon, err)
	}
	if d := s.claim("c", "d", "a")[0]; d.Place.Generation != 2 || d.Place.Ticket != 1 {
		t.Errorf("who claims again is at %+v", d.Place)
	}
	issued, _ = s.serve("c")
	stage.Same(t, "served behind", []string{"3 d 1"}, issued)
}

// remade deletes the topic of a URL and makes it again, as soon as the broker does so.
func remade(t *testing.T, at string) {
	t.Helper()
	stage.Must(t, services.DropTopic(t.Context(), at))
	u, err := url.Parse(at)
	stage.Must(t, err)
	name := strings.TrimPrefix(u.Path, "/")
	_, err = services.MakeTopic(t.Context(), at, name, 3, nil)
	stage.Must(t, err)
}

// deleteRecords has Kafka delete the records of a partition before an offset.
func deleteRecords(t *testing.T, at string, partition int32, before int64) {
	t.Helper()
	u, err := url.Parse(at)
	stage.Must(t, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(u.Host))
	stage.Must(t, err)
	defer client.Close()
	name := strings.TrimPrefix(u.Path, "/")
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: name, Partition: partition, At: before})
	done, err := kadm.NewClient(client).DeleteRecords(t.Context(), offsets)
	stage.Must(t, err)
	one, _ := done.Lookup(name, partition)
	stage.Must(t, one.Err)
}

// TestRecordsThatKafkaDeletedAreToldUntilThePaceIsSet deletes records of people in line. Once the campaign has another partition, another
// node, which still knows the old one, passes nobody over: at the offsets of those in line the old partition has records, too.
func TestRecordsThatKafkaDeletedAreToldUntilThePaceIsSet(t *testing.T) {
	at := services.Kafka.Database(t)
	s := newFedStage(t, at)
	other := s.another(at)
	s.create("c", 99)
	s.claim("c", stage.Users("a", 0, 20)...)
	appendNothing(t, at, 1, 12)
	deleteRecords(t, at, 0, 5)
	for what, node := range map[string]*fedStage{"a node": s, "another": other} {
		look(t, node.line)
		_, err := node.line.Serve(t.Context(), "c", 9)
		isLost(t, what, err, "Kafka has deleted records of people in line")
		_, err = node.line.Claim(t.Context(), "c", []firstcome.UserID{"e"})
		isLost(t, "a claim at "+what, err, "Kafka has deleted records of people in line")
	}
	if feed := s.update("c"); feed.Partition != 1 {
		t.Errorf("it got the feed %+v", feed)
	}
	stage.Same(t, "ended", []string{"lost"}, s.ended("c"))
	s.claim("c", "f", "g")
	var all []string
	for range 3 {
		issued, _ := other.serve("c")
		all = append(all, issued...)
	}
	look(t, other.line)
	issued, _ := other.serve("c")
	stage.Same(t, "served behind", []string{"1 f 1", "2 g 2"}, append(all, issued...))
}

// appendNothing appends records that are nobody's.
func appendNothing(t *testing.T, at string, partition int32, records int) {
	t.Helper()
	u, err := url.Parse(at)
	stage.Must(t, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(u.Host), kgo.DefaultProduceTopic(strings.TrimPrefix(u.Path, "/")), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	stage.Must(t, err)
	defer client.Close()
	for range records {
		stage.Must(t, client.ProduceSync(t.Context(), &kgo.Record{Partition: partition, Value: []byte("nothing")}).FirstErr())
	}
}

// TestANodeThatIsBehindTakesServedRecordsForNoLoss: another node has served the records that Kafka deleted since.
func TestANodeThatIsBehindTakesServedRecordsForNoLoss(t *testing.T) {
	at := services.Kafka.Database(t)
	s := newFedStage(t, at)
	other := s.another(at)
	s.create("c", 99)
	s.claim("c", "a")
	s.serve("c")
	look(t, other.line)
	other.serve("c")
	s.claim("c", "b", "d", "e")
	s.serve("c")
	deleteRecords(t, at, 0, 4)
	look(t, other.line)
	other.serve("c")
	s.claim("c", "f")
	look(t, other.line)
	issued, _ := other.serve("c")
	stage.Same(t, "served behind", []string{"5 f 5"}, issued)
}

// TestAPartitionThatWasGivenUpIsAnotherCampaigns has campaigns take all partitions, and the window of one close while people are in its line.
// Its partition is the next campaign's, which passes over what is there. The other one goes on as soon as an operator moves its window.
func TestAPartitionThatWasGivenUpIsAnotherCampaigns(t *testing.T) {
	s := newFedStage(t, services.Kafka.Database(t))
	for _, id := range []firstcome.CampaignID{"c", "d", "e"} {
		s.create(id, 9)
	}
	left := s.claim("c", "a", "b")[0].Place.Proof
	if _, err := s.line.Feed(t.Context()); !errors.Is(err, firstcome.ErrNoPartition) || !strings.Contains(err.Error(), "kafka-topics.sh") {
		t.Errorf("where every partition is taken: %v", err)
	}
	s.closeAt("c", -30*time.Second)
	if _, err := s.line.Feed(t.Context()); !errors.Is(err, firstcome.ErrNoPartition) {
		t.Errorf("half a minute behind the closing: %v", err)
	}
	s.closeAt("c", -2*time.Minute)
	s.create("f", 9)
	if d := s.claim("c", "b")[0]; d.Outcome != firstcome.Closed {
		t.Errorf("a claim of a campaign that is over: %v", d.Outcome)
	}
	if d := s.claim("f", "b", "x")[0]; d.Place.Ticket != 1 {
		t.Errorf("the first one in line of the next campaign is at %+v", d.Place)
	}
	issued, _ := s.serve("f")
	stage.Same(t, "served", []string{"1 b 1", "2 x 2"}, issued)
	if _, _, err := s.line.PlaceBy(t.Context(), "c", "a", left); !errors.Is(err, firstcome.ErrNoTicket) {
		t.Errorf("the place in the line that closed: %v", err)
	}
	stage.Same(t, "ended", []string{"closed"}, s.ended("c"))
}

// TestALineWhoseTopicIsSilentSoonLetsOthersBeServed kills Kafka while people are in line. A node that waits for it keeps one of a few places in which
// lines are served, those at the gate too.
func TestALineWhoseTopicIsSilentSoonLetsOthersBeServed(t *testing.T) {
	server := services.Kafka.Server(t)
	at, err := services.MakeTopic(t.Context(), server.URL(), "lines", 1, nil)
	stage.Must(t, err)
	s := newFedStage(t, at)
	s.create("c", 9)
	s.claim("c", "a", "b", "d")
	other := s.another(at).line
	look(t, other)
	stage.Must(t, server.Kill())
	waits := func() time.Duration {
		began := time.Now()
		if _, err := other.Serve(t.Context(), "c", 9); !errors.Is(err, firstcome.ErrFeedAway) {
			t.Errorf("serving a line that cannot be read is answered %v", err)
		}
		return time.Since(began)
	}
	first := waits()
	inTime(t, "serving a line that cannot be read, twice after the first time", waits()+waits(), first)
	issued, err := other.Issue(t.Context(), gate.Order{Actor: "test"}, "c", []firstcome.UserID{"x"})
	if err != nil || issued[0].Outcome != firstcome.Issued {
		t.Errorf("a direct issue meanwhile is answered %+v, %v", issued, err)
	}
	stage.Must(t, server.Restart(t.Context()))
	stage.Await(t, "the line goes on", int64(3), func() int64 {
		if _, err := other.Serve(t.Context(), "c", 9); err != nil && !errors.Is(err, firstcome.ErrFeedAway) {
			t.Error(err)
		}
		state, err := s.ledger.LineOf(t.Context(), "c")
		stage.Must(t, err)
		return state.Line.ServedThrough
	})
}

// A slowNode is a gate whose node does not go on with the beginning of a line before something else happened.
type slowNode struct {
	*ledger.Ledger
	meanwhile func()
}

func (g *slowNode) Begin(ctx context.Context, id firstcome.CampaignID, feed firstcome.Feed, generation, first int64) (firstcome.Line, error) {
	g.meanwhile()
	return g.Ledger.Begin(ctx, id, feed, generation, first)
}

// TestASlowNodeBeginsNoLineInAnotherPartition has a node ask where a partition ends. The campaign has another one when it goes on.
func TestASlowNodeBeginsNoLineInAnotherPartition(t *testing.T) {
	at := services.Kafka.Database(t)
	s := newFedStage(t, at)
	s.create("c", 9)
	appendNothing(t, at, 0, 5)
	slow, err := kafka.OpenLine(t.Context(), at, kafka.LineOptions{Ledger: s.ledger, Secret: stage.Secret(), MaxLine: 1000, Gate: &slowNode{s.ledger, func() {
		_, err := s.ledger.SetTerms(t.Context(), "test", "c", 0, func(t *firstcome.Terms) { t.Feed = &firstcome.Feed{Topic: t.Feed.Topic, Partition: 1} })
		stage.Must(t, err)
	}}})
	stage.Must(t, err)
	defer slow.Close()
	if decisions, err := slow.Claim(t.Context(), "c", []firstcome.UserID{"a"}); !errors.Is(err, firstcome.ErrBusy) {
		t.Errorf("who claims at the slow node is answered %+v, %v", decisions, err)
	}
	s.claim("c", "b", "a")
	issued, _ := s.serve("c")
	stage.Same(t, "served", []string{"1 b 1", "2 a 2"}, issued)
}

// closeAt has a campaign's window close so long from now.
func (s *fedStage) closeAt(id firstcome.CampaignID, in time.Duration) {
	s.t.Helper()
	_, err := s.ledger.SetTerms(s.t.Context(), "test", id, 0, func(t *firstcome.Terms) { t.ClosesAt = time.Now().UTC().Truncate(time.Microsecond).Add(in) })
	stage.Must(s.t, err)
}

// TestALineGoesOnBehindAGenerationThatLostRecords deletes records of people in line, and sells what is left past them. So the generation has
// ended, and the next one begins where the partition ends.
func TestALineGoesOnBehindAGenerationThatLostRecords(t *testing.T) {
	at := services.Kafka.Database(t)
	s := newFedStage(t, at)
	s.create("c", 2)
	s.claim("c", "a", "b", "c")
	deleteRecords(t, at, 0, 2)
	look(t, s.line)
	_, err := s.line.Serve(t.Context(), "c", 9)
	isLost(t, "the line", err, "Kafka has deleted records of people in line")
	stage.Must(t, stage.Err(s.line.Issue(t.Context(), gate.Order{Actor: "test"}, "c", []firstcome.UserID{"x", "y"})))
	stage.Must(t, stage.Err(s.ledger.Void(t.Context(), "test", "c", 1, "test")))
	for _, id := range look(t, s.line) {
		s.serve(id)
	}
	if d := s.claim("c", "d")[0]; d.Place.Generation != 2 || d.Place.Ticket != 1 {
		t.Errorf("who claims behind it is at %+v", d.Place)
	}
	issued, _ := s.serve("c")
	stage.Same(t, "served behind", []string{"3 d 1"}, issued)
}
