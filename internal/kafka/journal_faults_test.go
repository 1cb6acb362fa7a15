//go:build !check

package kafka_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF46WhileTheGroupIsRebalancedAgainAndAgainEachCouponIsRecordedOnce starts and stops recorders while coupons are appended, some of them twice,
// and by relays of which one is late.
func TestF46WhileTheGroupIsRebalancedAgainAndAgainEachCouponIsRecordedOnce(t *testing.T) {
	t.Parallel()
	at, err := services.MakeTopic(t.Context(), services.Kafka.Database(t), services.Unique("rebalanced"), 4, nil)
	stage.Must(t, err)
	g, p := newRelayed(), stage.NewLedger("a", "b", "c", "d")
	relay := stream{open(t, at, g), t, at, g}
	g.record(t, open(t, at, g, patient), p)
	total := map[firstcome.CampaignID]int{}
	for round := range stage.Rounds(4, 8) {
		come := g.record(t, open(t, at, g, patient), p)
		for _, id := range []firstcome.CampaignID{"a", "b", "c", "d"} {
			early, late := g.issue(id, 40), g.issue(id, 30)
			for _, coupons := range [][]firstcome.Coupon{late, early, late[:10]} {
				stage.Must(t, relay.append(t.Context(), record.Batch{Campaign: id, Coupons: coupons}))
			}
			total[id] += 70
		}
		if round%2 == 0 { // in mid-batch
			come()
		} else {
			stage.Await(t, "what is recorded of a", total["a"], func() int { return len(p.Coupons("a")) })
		}
	}
	for id, count := range total {
		stage.Await(t, "what is recorded of "+string(id), count, func() int { return len(p.Coupons(id)) })
		stage.Await(t, "what the gate heard of "+string(id), int64(count), g.heardThrough(id))
	}
	if p.Refused != nil {
		t.Error(p.Refused)
	}
}

// TestF45AnyOrderOfTheRecordsGivesTheSameLedger appends batches as relays do that fail and stall: some twice, and none in its place. The ledger fails
// too, and two recorders share the work.
func TestF45AnyOrderOfTheRecordsGivesTheSameLedger(t *testing.T) {
	t.Parallel()
	at, g, p, random := services.Kafka.Database(t), newRelayed(), stage.NewLedger("c"), seed.Rand(t)
	few := func(o *kafka.JournalOptions) { o.Coupons = 7 }
	relay := stream{open(t, at, g, patient, few), t, at, g}
	var batches [][]firstcome.Coupon
	issued := 0
	for range 40 {
		n := 1 + random.IntN(30)
		batches = append(batches, g.issue("c", n))
		issued += n
	}
	for range 20 {
		batches = append(batches, batches[random.IntN(len(batches))])
	}
	random.Shuffle(len(batches), func(a, b int) { batches[a], batches[b] = batches[b], batches[a] })
	p.Before = func(record.Batch) error {
		if random.IntN(4) == 0 {
			return errors.New("lost")
		}
		return nil
	}
	g.record(t, open(t, at, g, patient, few), p)
	for n, coupons := range batches {
		if n == len(batches)/2 {
			g.record(t, relay, p)
		}
		stage.Must(t, relay.append(t.Context(), record.Batch{Campaign: "c", Coupons: coupons}))
	}
	stage.Await(t, "what is recorded", issued, func() int { return len(p.Coupons("c")) })
	stage.Await(t, "what the gate heard", int64(issued), g.heardThrough("c"))
	if p.Refused != nil || len(p.Letters()) > 0 {
		t.Errorf("the ledger refused %v, and has the dead letters %v", p.Refused, p.Letters())
	}
}

// TestAGateThatDoesNotAnswerHoldsUpNoRecording fails reports to the gate, which gets them later.
func TestAGateThatDoesNotAnswerHoldsUpNoRecording(t *testing.T) {
	t.Parallel()
	at, g, p := services.Kafka.Database(t), newRelayed(), stage.NewLedger("c")
	edit, alarms := alarmed()
	j := stream{open(t, at, g, edit), t, at, g}
	g.deaf = errAway
	g.record(t, j, p)
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 100)))
	p.WaitFor(t, 100)
	wantAlarm(t, alarms, "the gate could not be told which coupons are recorded: away")
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 100)))
	p.WaitFor(t, 200)
	g.mu.Lock()
	g.deaf = nil
	g.mu.Unlock()
	stage.Await(t, "what the gate heard", 200, g.heardThrough("c"))
}

// TestADeadLetterIsToldBeforeItIsDrainedWhoeverDied ends a recorder after the ledger has buried a coupon and before the gate is told.
func TestADeadLetterIsToldBeforeItIsDrainedWhoeverDied(t *testing.T) {
	t.Parallel()
	at, g, p := services.Kafka.Database(t), newRelayed(), stage.NewLedger("c")
	p.Refuses = func(c firstcome.Coupon) bool { return c.Number == 33 }
	j := stream{open(t, at, g), t, at, g}
	g.deaf = errAway
	dies := g.record(t, j, p)
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 100)))
	stage.Await(t, "what is recorded or buried", 100, func() int { return len(p.Coupons("c")) + len(p.Letters()) })
	dies()
	g.mu.Lock()
	g.deaf = nil
	g.mu.Unlock()
	g.record(t, open(t, at, g), p)
	stage.Await(t, "what the gate heard", 100, g.heardThrough("c"))
	g.mu.Lock()
	defer g.mu.Unlock()
	if letters := g.told["c"].Letters; len(letters) == 0 || letters[0].Number != 33 || letters[0].User != "user-33" {
		t.Errorf("the gate heard of %+v", letters)
	}
}

// TestF43WhatNeitherGateNorTopicHasIsRecordedFromTheHolders loses records: the last ones, or some before others.
func TestF43WhatNeitherGateNorTopicHasIsRecordedFromTheHolders(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string]bool{"nothing is behind them": false, "others are behind them": true} {
		t.Run(name, func(t *testing.T) {
			at, g, p := services.Kafka.Database(t), newRelayed(), stage.NewLedger("c")
			edit, alarms := alarmed()
			j := stream{open(t, at, g, edit), t, at, g}
			g.record(t, j, p)
			stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 10)))
			g.issue("c", 5) // these are nowhere
			want := int64(15)
			if behind { // a crowd that keeps coming
				stage.Await(t, "whether the alarm says what is missing", true, func() bool {
					stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 1)))
					want++
					return strings.Contains(alarms(), "numbers are missing")
				})
			}
			stage.Await(t, "what the gate heard", want, g.heardThrough("c"))
			if !strings.Contains(alarms(), "c: ") || !strings.Contains(alarms(), "from number 11 on are recorded from the gate's holders") {
				t.Errorf("the alarms are %s", alarms())
			}
		})
	}
}

// TestF43NothingIsRecordedFromTheHoldersOfAGateThatIsUnverified misses numbers of a gate that may be in an earlier state. Coupons in the topic are
// recorded all the same.
func TestF43NothingIsRecordedFromTheHoldersOfAGateThatIsUnverified(t *testing.T) {
	t.Parallel()
	at, g, p := services.Kafka.Database(t), newRelayed(), stage.NewLedger("c")
	edit, alarms := alarmed()
	j := stream{open(t, at, g, edit), t, at, g}
	g.older = gate.ErrUnverified
	g.record(t, j, p)
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 10)))
	g.issue("c", 5) // these are nowhere
	wantAlarm(t, alarms, gate.ErrUnverified.Error())
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 3)))
	p.WaitFor(t, 13)
	if strings.Contains(alarms(), "are recorded from the gate's holders") {
		t.Errorf("the alarms are %s", alarms())
	}
	g.mu.Lock()
	g.older = nil
	g.mu.Unlock()
	stage.Await(t, "what the gate heard", 18, g.heardThrough("c"))
}

// remake recreates a topic under the same name.
func remake(t *testing.T, at string) {
	t.Helper()
	stage.Must(t, services.DropTopic(t.Context(), at))
	stage.Must(t, stage.Err(services.MakeTopic(t.Context(), at, at[strings.LastIndexByte(at, '/')+1:], 1, nil)))
}

// insist issues coupons and appends them, until the topic takes some.
func (s stream) insist(id firstcome.CampaignID, users int) {
	s.t.Helper()
	coupons := s.issue(id, users)
	stage.Await(s.t, "an append", true, func() bool {
		return s.append(s.t.Context(), record.Batch{Campaign: id, Coupons: coupons}) == nil
	})
}

// TestF48ATopicThatIsMadeAgainLosesNothing recreates a topic with unrecorded coupons after its recorder has stopped.
func TestF48ATopicThatIsMadeAgainLosesNothing(t *testing.T) {
	t.Parallel()
	at, g, p := services.Kafka.Database(t), newRelayed(), stage.NewLedger("c")
	edit, alarms := alarmed()
	j := stream{open(t, at, g, edit), t, at, g}
	stop := g.record(t, j, p)
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 10)))
	p.WaitFor(t, 10)
	stop()
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 10)))
	remake(t, at)
	g.record(t, j, p)
	j.insist("c", 10)
	stage.Await(t, "what the gate heard", 30, g.heardThrough("c"))
	wantAlarm(t, alarms, "was recreated")
}

// TestF48WhatIsCommittedLateOfATopicThatIsGoneSkipsNothing recreates a topic, and then commits offsets of the deleted one. A recorder's commit may be
// that late with a Kafka before version 4, which identifies topics by name alone. Nothing is recorded from the holders here.
func TestF48WhatIsCommittedLateOfATopicThatIsGoneSkipsNothing(t *testing.T) {
	t.Parallel()
	at, g, p := services.Kafka.Database(t), newRelayed(), stage.NewLedger("c")
	edit, alarms := alarmed()
	j := stream{open(t, at, g, edit, patient), t, at, g}
	stop := g.record(t, j, p)
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 20)))
	p.WaitFor(t, 20)
	stop()
	name, id := j.Topic()
	remake(t, at)
	for range 10 { // each is a record
		j.insist("c", 1)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Brokers(at)...), kgo.MaxVersions(kversion.V3_7_0()))
	stage.Must(t, err)
	defer client.Close()
	var done kadm.Offsets
	done.AddOffset(name, 0, 5, -1) // the new one has one partition
	stage.Must(t, kadm.NewClient(client).CommitAllOffsets(t.Context(), kafka.GroupOf("ours", id), done))
	g.record(t, j, p)
	stage.Await(t, "what the gate heard", 30, g.heardThrough("c"))
	wantAlarm(t, alarms, "was recreated")
}

// TestF48WhatKafkaHasLostOfTheJournalIsToldAndRecordedFromTheHolders covers a topic that loses its end, so that the committed offset is above it, and
// one that loses its beginning, with coupons that were not recorded.
func TestF48WhatKafkaHasLostOfTheJournalIsToldAndRecordedFromTheHolders(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lose func(admin *kadm.Client, topic, id string) error
		told string
	}{
		"its end": {func(admin *kadm.Client, topic, id string) error {
			var done kadm.Offsets
			for number := range int32(3) {
				done.AddOffset(topic, number, 100, -1)
			}
			return admin.CommitAllOffsets(t.Context(), kafka.GroupOf("ours", id), done)
		}, "although records up to 100 were recorded; it is read again from its start"},
		"its beginning": {func(admin *kadm.Client, topic, _ string) error {
			ends, err := admin.ListEndOffsets(t.Context(), topic)
			if err == nil {
				_, err = admin.DeleteRecords(t.Context(), ends.Offsets())
			}
			return err
		}, "although only records below 1 are recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			at, g, p := services.Kafka.Database(t), newRelayed(), stage.NewLedger("c")
			edit, alarms := alarmed()
			j := stream{open(t, at, g, edit), t, at, g}
			stop := g.record(t, j, p)
			stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 10)))
			p.WaitFor(t, 10)
			stop()
			for range 5 {
				stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 2)))
			}
			client, err := kgo.NewClient(kgo.SeedBrokers(services.Brokers(at)...))
			stage.Must(t, err)
			defer client.Close()
			topic, id := j.Topic()
			stage.Must(t, test.lose(kadm.NewClient(client), topic, id))
			g.record(t, j, p)
			stage.Await(t, "what the gate heard", 20, g.heardThrough("c"))
			wantAlarm(t, alarms, "Kafka has lost records of the journal")
			wantAlarm(t, alarms, test.told)
		})
	}
}

// TestF47ABrokerThatHangsIsGivenUp makes a broker hang with a batch and a fact on their way. The caller of the batch gets an error at its time-out,
// and a node stops.
func TestF47ABrokerThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	broker, g, b := services.Kafka.Server(t), newRelayed(), newBook()
	at, err := broker.Database(t.Context())
	stage.Must(t, err)
	j := stream{open(t, at, g), t, at, g}
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 1)))
	b.issue("c", 1, "u")
	p := publish(t, at, b)
	stage.Await(t, "a fact", 1, func() int64 { return p.Stats().Published })
	l := stage.NewLedger("c")
	stop := g.record(t, open(t, at, g), l)
	l.WaitFor(t, 1)
	stage.Must(t, broker.Freeze())
	b.issue("c", 1, "u")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- stage.Err(j.Issue(ctx, "c", 1)) }()
	if err := stage.Next(t, "the end of a batch", ended); err == nil {
		t.Error("a broker that hangs has taken a batch")
	}
	go func() { p.stop(); ended <- nil }()
	stage.Next(t, "the end of a publisher", ended)
	go func() { stop(); ended <- nil }()
	stage.Next(t, "the end of a recorder", ended)
	stage.Must(t, broker.Continue())
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 1)))
}

// TestF47ARecorderKeepsItsClientWhileTheBrokerRestarts also checks that the client joins again when the group has lost its member. A new client would
// have to wait until the old member times out.
func TestF47ARecorderKeepsItsClientWhileTheBrokerRestarts(t *testing.T) {
	t.Parallel()
	broker, g, l := services.Kafka.Server(t), newRelayed(), stage.NewLedger("c")
	at, err := broker.Database(t.Context())
	stage.Must(t, err)
	edit, alarms := alarmed()
	j := stream{open(t, at, g, edit, patient), t, at, g}
	w := &watched{Source: j}
	stage.Drain(t, w, l.Take)
	j.insist("c", 1)
	l.WaitFor(t, 1)
	times := w.times.Load() // a broker that has just started may be slow
	stage.Must(t, broker.Kill())
	wantAlarm(t, alarms, "unable to join group session")
	stage.Must(t, broker.Restart(t.Context()))
	j.insist("c", 1)
	l.WaitFor(t, 2)
	_, id := j.Topic()
	dismiss(t, at, kafka.GroupOf("ours", id))
	wantAlarm(t, alarms, "UNKNOWN_MEMBER_ID")
	j.insist("c", 1)
	l.WaitFor(t, 3)
	stage.Same(t, "clients of the recorder", times, w.times.Load())
}

// A watched source counts calls of Watch.
type watched struct {
	record.Source
	times atomic.Int64
}

func (w *watched) Watch(ctx context.Context, ready func(firstcome.CampaignID)) error {
	w.times.Add(1)
	return w.Source.Watch(ctx, ready)
}

// dismiss removes the members of a group at the brokers.
func dismiss(t *testing.T, at, group string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Brokers(at)...))
	stage.Must(t, err)
	defer client.Close()
	described, err := kadm.NewClient(client).DescribeGroups(t.Context(), group)
	stage.Must(t, err)
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = group
	for _, m := range described[group].Members {
		member := kmsg.NewLeaveGroupRequestMember()
		member.MemberID = m.MemberID
		leave.Members = append(leave.Members, member)
	}
	stage.Must(t, stage.Err(leave.RequestWith(t.Context(), client)))
}

// TestWhatIsNotOursIsPassedOver lets two ledgers share a topic, which also has a record of a campaign that this ledger no longer has.
func TestWhatIsNotOursIsPassedOver(t *testing.T) {
	t.Parallel()
	at, g, p := services.Kafka.Database(t), newRelayed(), stage.NewLedger("c")
	edit, alarms := alarmed()
	j := stream{open(t, at, g, edit), t, at, g}
	for id, of := range map[firstcome.CampaignID]string{"c": "theirs.1.secret", "d": "theirs.2.secret", "gone": "ours.7.secret", "other": "ours.7.secret"} {
		stage.Must(t, stage.Err(j.Record(t.Context(), record.Batch{Campaign: id, Epoch: 1, CampaignUID: of, Coupons: stage.Coupons(id, 1, 3)})))
	}
	for of, want := range map[string]int{uid: 0, "theirs.1.secret": 3} {
		count := 0
		stage.Must(t, j.Unrecorded(t.Context(), "c", of, func(firstcome.Coupon) error { count++; return nil }))
		if count != want {
			t.Errorf("of the campaign with the UID %s the topic has %d coupons, want %d", of, count, want)
		}
	}
	stage.Must(t, j.Journal.Litter(t.Context(), "c", `{"format": 2, "campaign_uid": "theirs.1.secret", "epoch": 1}`)) // also one of a newer release
	g.absent["d"], g.absent["gone"] = true, true
	stage.Must(t, j.Journal.Litter(t.Context(), "NO CAMPAIGN", "x"))
	g.record(t, j, p)
	coupons := stage.Coupons("c", 1, 2)
	g.issue("c", 2)
	stage.Must(t, j.append(t.Context(), record.Batch{Campaign: "c", Coupons: coupons}))
	stage.Await(t, "what is recorded of c", true, func() bool { return len(p.Coupons("c")) >= 2 })
	if got := len(p.Coupons("c")); got != 2 {
		t.Fatalf("the ledger has %d coupons of c, and 2 are ours", got)
	}
	stage.Await(t, "dead letters", 2, func() int { return len(p.Letters()) })
	for source, cause := range p.Letters() {
		if !strings.Contains(cause, `does not know the campaign with the UID "ours.7.secret"`) {
			t.Errorf("%s: %s", source, cause)
		}
	}
	wantAlarm(t, alarms, "gone: the ledger does not know")
	stage.Await(t, "what is left", false, func() bool {
		left, err := j.Left(t.Context(), "c")
		return left || err != nil
	})
}

// TestRecordsOfANewerReleaseAreLeftToIt checks that they hold up only their own campaign.
func TestRecordsOfANewerReleaseAreLeftToIt(t *testing.T) {
	t.Parallel()
	at, g, p := services.Kafka.Database(t), newRelayed(), stage.NewLedger("c", "d")
	edit, alarms := alarmed()
	j := stream{open(t, at, g, edit), t, at, g}
	g.record(t, j, p)
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 3)))
	stage.Must(t, j.Journal.Litter(t.Context(), "c", `{"format": 2, "campaign_uid": "ours.1.secret", "epoch": 1, "parcels": []}`))
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 3)))
	stage.Must(t, stage.Err(j.Issue(t.Context(), "d", 3)))
	p.WaitFor(t, 3)
	stage.Await(t, "what is recorded of d", 3, func() int { return len(p.Coupons("d")) })
	wantAlarm(t, alarms, "c: ")
	if left, err := j.Left(t.Context(), "c"); !left || err != nil || !strings.Contains(alarms(), "records of a newer firstcome") || len(p.Letters()) > 0 {
		t.Errorf("left: %v, %v; the alarms are %s; dead letters %v", left, err, alarms(), p.Letters())
	}
}

// TestF47AJournalThatIsOpenedWhileKafkaIsAwayFindsTheTopicLater checks that callers who need the topic get an error, and never an empty answer.
func TestF47AJournalThatIsOpenedWhileKafkaIsAwayFindsTheTopicLater(t *testing.T) {
	broker := services.Kafka.Server(t)
	at, err := services.MakeTopic(t.Context(), broker.URL(), "waits", 1, map[string]string{"retention.ms": "-1"})
	stage.Must(t, err)
	g, l := newRelayed(), stage.NewLedger("c")
	before := stream{open(t, at, g), t, at, g}
	stage.Must(t, stage.Err(before.Issue(t.Context(), "c", 3)))
	stage.Must(t, broker.Stop())

	told, found := make(stage.Alarms, 1), make(chan []string, 1)
	j := stream{open(t, at, g, func(o *kafka.JournalOptions) {
		o.OnAlarm, o.OnFound = told.Raise, func(warnings []string) { found <- warnings }
	}), t, at, g}
	if err := stage.Next(t, "an alarm", told); !strings.Contains(err.Error(), "check hosts and ports") {
		t.Errorf("the alarm says %v", err)
	}
	read := func() error {
		return j.Unrecorded(t.Context(), "c", "ours.c", func(firstcome.Coupon) error { return errors.New("a coupon of a topic that is away") })
	}
	for what, err := range map[string]error{
		"to append": stage.Err(j.Record(t.Context(), record.Batch{Campaign: "c", CampaignUID: "ours.c"})), "to read what is not recorded": read(), "how it is": j.Ping(t.Context()), "to find it": j.Find(t.Context()),
		"to drain": j.Watch(t.Context(), nil),
	} {
		if err == nil || !strings.Contains(err.Error(), "check hosts and ports") {
			t.Errorf("while Kafka is away, asked %s: %v", what, err)
		}
	}
	if _, id := j.Topic(); id != "" {
		t.Errorf("the id of a topic that is not found is %q", id)
	}

	stage.Must(t, broker.Restart(t.Context()))
	stage.Await(t, "the topic", true, func() bool { return j.Find(t.Context()) == nil })
	if warnings := stage.Next(t, "what the topic warns of", found); len(warnings) == 0 {
		t.Error("a topic of one replica warns of nothing")
	}
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 2)))
	g.record(t, j, l)
	l.WaitFor(t, 5)
}
