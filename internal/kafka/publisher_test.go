//go:build !check

package kafka_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A reader reads a topic from its beginning.
type reader struct {
	*testing.T
	client *kgo.Client
	events []kafka.Event
	keys   []string
}

func read(t *testing.T, at string) *reader {
	t.Helper()
	u, err := url.Parse(at)
	stage.Must(t, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Brokers(at)...), kgo.ConsumeTopics(u.Path[1:]), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMinAge(100*time.Millisecond))
	stage.Must(t, err)
	t.Cleanup(client.Close)
	return &reader{T: t, client: client}
}

// until reads until a condition holds.
func (r *reader) until(what string, so func() bool) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for !so() {
		one, stop := context.WithTimeout(ctx, 200*time.Millisecond)
		fetches := r.client.PollFetches(one)
		stop()
		if ctx.Err() != nil {
			r.Fatalf("it never came to be that %s: the topic has %d events", what, len(r.events))
		}
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			r.Log(err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			var e kafka.Event
			stage.Must(r.T, json.Unmarshal(record.Value, &e))
			r.events, r.keys = append(r.events, e), append(r.keys, string(record.Key))
		})
	}
}

// of returns the number of a campaign's events, and fails if the first event of each position is out of order.
func (r *reader) of(campaign string) (count int) {
	r.Helper()
	next := int64(1)
	for n, e := range r.events {
		if e.Campaign != campaign {
			continue
		}
		count++
		if r.keys[n] != campaign {
			r.Fatalf("an event of %s has the key %s", campaign, r.keys[n])
		}
		if e.Position > next {
			r.Fatalf("%s: position %d comes before %d", campaign, e.Position, next)
		}
		if e.Position == next {
			next++
		}
	}
	return count
}

// has reads until the topic has a number of events of a campaign.
func (r *reader) has(campaign string, count int) {
	r.Helper()
	r.until(fmt.Sprintf("the topic has %d events of %s", count, campaign), func() bool { return r.of(campaign) >= count })
}

// TestP10AnEventHasThePrizeOfItsCouponsOwnTerms, and none if the ledger has lost the coupon.
func TestP10AnEventHasThePrizeOfItsCouponsOwnTerms(t *testing.T) {
	t.Parallel()
	at, b := services.Kafka.Database(t), newBook()
	b.issue("c", 4, "u")
	b.facts["c"][1].Coupon.TermsVersion = 2
	b.facts["c"][3].Coupon = firstcome.Coupon{Campaign: "c", Number: 4}
	publish(t, at, b)
	r := read(t, at)
	r.has("c", 4)
	var got []string
	for _, e := range r.events[:4] {
		if e.Data.Rank == nil || e.Data.Prize == nil {
			got = append(got, fmt.Sprint(e.Data.Number, " is unknown"))
			continue
		}
		got = append(got, fmt.Sprint(*e.Data.Rank, " ", e.Data.Prize.Name))
	}
	stage.Same(t, "the events", []string{"1 prize of version 1", "2 prize of version 2", "3 prize of version 1", "4 is unknown"}, got)
}

func wantSaid(t *testing.T, p *publishing, parts ...string) {
	t.Helper()
	said := func() bool {
		for _, part := range parts {
			if !strings.Contains(p.last(), part) {
				return false
			}
		}
		return true
	}
	defer func() {
		if t.Failed() {
			t.Logf("it says %q", p.last())
		}
	}()
	stage.Await(t, fmt.Sprintf("what says %q", parts), true, said)
}

func campaign(n int) firstcome.CampaignID { return firstcome.CampaignID(fmt.Sprintf("c%d", n)) }

func TestFactsOfManyCampaignsArePublishedInTheirOrder(t *testing.T) {
	t.Parallel()
	at, b := services.Kafka.Database(t), newBook()
	for n := range 20 {
		b.issue(campaign(n), 300, "u")
	}
	b.issue("big", 7000, "u")
	publish(t, at, b)
	r := read(t, at)
	r.has("big", 7000)
	for n := range 20 {
		r.has(string(campaign(n)), 300)
	}
	b.issue("big", 1, "u")
	r.has("big", 7001)
	if len(r.events) != 20*300+7001 {
		t.Errorf("the topic has %d events", len(r.events))
	}
}

// TestWhoeverComesNextGoesOnBehindWhatTheTopicHas repeatedly lets a node publish and die before it notes its progress.
func TestWhoeverComesNextGoesOnBehindWhatTheTopicHas(t *testing.T) {
	t.Parallel()
	at, b := services.Kafka.Database(t), newBook()
	r := read(t, at)
	for round := range 5 {
		node := publish(t, at, b)
		stage.Await(t, "a node that publishes", true, func() bool { return node.Stats().Leads })
		b.die(true)
		b.issue("c", 10, "u")
		r.has("c", 10+10*round)
		node.stop()
		b.die(false)
	}
	b.issue("c", 10, "u")
	publish(t, at, b)
	r.until("the topic has the last fact", func() bool { // repeats are events too, and come before it
		return slices.ContainsFunc(r.events, func(e kafka.Event) bool { return e.Position == 60 })
	})
	if n := r.of("c"); n != 60 {
		t.Errorf("the topic has %d events: some came twice", n)
	}
}

func TestOfAnOlderLedgerNothingIsPublishedUntilItIsReplayed(t *testing.T) {
	t.Parallel()
	for what, restore := range map[string]func(b *book){
		"it has fewer facts": func(b *book) { b.restore("c", 5) },
		"it has other facts": func(b *book) { b.restore("c", 5); b.issue("c", 20, "another ") },
	} {
		t.Run(what, func(t *testing.T) {
			at, b := services.Kafka.Database(t), newBook()
			r := read(t, at)
			b.issue("c", 5, "u")
			node := publish(t, at, b)
			r.has("c", 5)
			node.stop() // this notes the ends
			backup := b.following
			b.issue("c", 10, "u")
			b.issue("d", 1, "u")
			node = publish(t, at, b)
			r.has("c", 15)
			r.has("d", 1)
			node.stop()
			restore(b)
			b.following.Ends = backup.Ends
			b.restore("d", 0)
			b.issue("d", 3, "u") // the same fact as before, and two more
			b.cursors["d"] = b.cursor("none")
			node = publish(t, at, b)
			wantSaid(t, node, "the facts of c are no longer published", "firstcome facts replay c --from")
			r.has("d", 3)
			b.issue("c", 20, "later ")
			b.replay("c", 6)
			r.until("facts are published again", func() bool {
				last := r.events[len(r.events)-1]
				return last.Campaign == "c" && last.Position == int64(len(b.facts["c"]))
			})
			if r.of("d") != 3 {
				t.Errorf("of d there are %d events", r.of("d"))
			}
		})
	}
}

// TestF48ATopicThatWasMadeAgainIsAnErrorUntilAllIsReplayed recreates the topic while a node publishes, and before a node starts.
func TestF48ATopicThatWasMadeAgainIsAnErrorUntilAllIsReplayed(t *testing.T) {
	t.Run("while a node publishes", func(t *testing.T) { madeAgain(t, true) })
	t.Run("while none does", func(t *testing.T) { madeAgain(t, false) })
}

func madeAgain(t *testing.T, publishes bool) {
	t.Parallel()
	at, b := services.Kafka.Database(t), newBook()
	r := read(t, at)
	b.issue("c", 5, "u")
	node := publish(t, at, b)
	r.has("c", 5)
	if !publishes {
		node.stop()
	}
	stage.Must(t, services.DropTopic(t.Context(), at))
	u, err := url.Parse(at)
	stage.Must(t, err)
	_, err = services.MakeTopic(t.Context(), at, u.Path[1:], 1, nil)
	stage.Must(t, err)
	if !publishes {
		node = publish(t, at, b)
	}
	wantSaid(t, node, "is not the one that it was", "firstcome facts replay --all")
	b.replay("", 1)
	r = read(t, at)
	r.has("c", 5)
}

// TestF48ATopicThatLostItsEndIsAnErrorUntilAllIsReplayed notes an end in the ledger that the topic no longer has, as after an unclean leader
// election.
func TestF48ATopicThatLostItsEndIsAnErrorUntilAllIsReplayed(t *testing.T) {
	t.Parallel()
	at, b := services.Kafka.Database(t), newBook()
	r := read(t, at)
	b.issue("c", 5, "u")
	node := publish(t, at, b)
	r.has("c", 5)
	node.stop()
	for p := range b.following.Ends {
		b.following.Ends[p] += 7
	}
	b.issue("c", 1, "u")
	node = publish(t, at, b)
	wantSaid(t, node, "Kafka has lost them", "firstcome facts replay --all")
	if r.of("c") != 5 {
		t.Errorf("the topic has %d events", r.of("c"))
	}
	b.replay("", 1)
	r.has("c", 11)
}

// TestF48ATopicThatIsCutWhileANodePublishesIsAnErrorUntilAllIsReplayed cuts the topic between two checks of it. The node's next events make it longer
// than it was, so only the offsets show the loss.
func TestF48ATopicThatIsCutWhileANodePublishesIsAnErrorUntilAllIsReplayed(t *testing.T) {
	t.Parallel()
	at, b := services.Kafka.Database(t), newBook()
	r := read(t, at)
	b.issue("c", 5, "u")
	node := publish(t, at, b)
	r.has("c", 5)
	node.stop()
	b.issue("c", 20, "u")
	p, err := kafka.NewPublisher(at, kafka.Options{Cursors: b, Facts: b.Facts, Terms: b.Terms, Ledger: b.Identity()})
	stage.Must(t, err)
	if err := p.PassCut(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "and facts were appended up to 7: Kafka has lost them") {
		t.Errorf("the pass: %v", err)
	}
	r.has("c", 25)
	wantSaid(t, publish(t, at, b), "ends at offset 25, and facts were appended up to 27: Kafka has lost them", "firstcome facts replay --all")
	b.replay("", 1)
	r.has("c", 50)
}

// TestF47WhereTheBrokerIsKilledFactsComeLaterAndAllOfThem kills the broker during publishing.
func TestF47WhereTheBrokerIsKilledFactsComeLaterAndAllOfThem(t *testing.T) {
	t.Parallel()
	server := services.Kafka.Server(t)
	at, err := server.Database(t.Context())
	stage.Must(t, err)
	b := newBook()
	node := publish(t, at, b)
	r := read(t, at)
	for kill := range stage.Rounds(1, 3) {
		b.issue("c", 3000, "u")
		r.has("c", 3000*kill+100)
		stage.Must(t, server.Kill())
		b.issue("c", 500, "u")
		stage.Must(t, server.Restart(t.Context()))
		b.issue("c", 500, "u")
		r.until("all are there", func() bool { return len(r.events) > 0 && r.first("c") == int64(len(b.facts["c"])) })
	}
	if node.Stats().Failures > 0 {
		t.Logf("it began anew %d times", node.Stats().Failures)
	}
}

// first returns the highest position of a campaign up to which the topic has all facts.
func (r *reader) first(campaign string) (through int64) {
	for _, e := range r.events {
		if e.Campaign == campaign && e.Position == through+1 {
			through++
		}
	}
	return through
}

func TestWhatIsWrongWithATopicIsSaidWithWhatToDo(t *testing.T) {
	t.Parallel()
	at := services.Kafka.Database(t)
	u, err := url.Parse(at)
	stage.Must(t, err)
	b := newBook()
	b.issue("c", 1, "u")
	for where, parts := range map[string][]string{
		"kafka://" + u.Host + "/none":          {"UNKNOWN_TOPIC_OR_PARTITION", "kafka-topics.sh --bootstrap-server " + u.Host + " --create --topic none"},
		"kafka://127.0.0.1:1/none":             {"reach Kafka", "connection refused", "hosts and ports"},
		"kafka://u:secret@" + u.Host + "/none": {"reach Kafka", "the brokers accept no log-in on this port"},
		"kafkas://" + u.Host + "/none":         {"reach Kafka"},
	} {
		t.Run(where, func(t *testing.T) {
			node := publish(t, where, b)
			wantSaid(t, node, parts...)
			if strings.Contains(node.last(), "secret") {
				t.Errorf("it shows the password: %s", node.last())
			}
		})
	}
}
