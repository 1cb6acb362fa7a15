//go:build !check

package main

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A publisher appends facts to a topic at a real Kafka.
type publisher struct {
	group
	client    *kgo.Client
	admin     *kadm.Client
	published []*kgo.Record
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	u, err := url.Parse(services.Kafka.Database(t))
	stage.Must(t, err)
	g := group{brokers: u.Host, topic: u.Path[1:], name: u.Path[1:], instance: "shop-0"}
	client, err := kgo.NewClient(kgo.SeedBrokers(g.brokers), kgo.DefaultProduceTopic(g.topic), kgo.MetadataMinAge(100*time.Millisecond))
	stage.Must(t, err)
	t.Cleanup(client.Close)
	return &publisher{group: g, client: client, admin: kadm.NewClient(client)}
}

func (p *publisher) publish(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	for _, r := range records {
		r.Topic = "" // it is appended again
	}
	stage.Must(t, p.client.ProduceSync(t.Context(), records...).FirstErr())
	p.published = append(p.published, records...)
}

// follow runs the program's parts on a database until stop is called, or the test ends.
func (p *publisher) follow(t *testing.T, instance, file string) (s *shop, stop func()) {
	t.Helper()
	g := p.group
	g.instance = instance
	s = opened(t, file)
	ctx, cancel := context.WithCancel(context.Background())
	client, err := g.join(ctx, s)
	stage.Must(t, err)
	var done sync.WaitGroup
	done.Go(func() {
		if err := consume(ctx, client, s.take); err != nil {
			t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		done.Wait()
		client.CloseAllowingRebalance()
		s.close()
	})
	t.Cleanup(stop)
	return s, stop
}

// comes waits until a condition holds.
func comes(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !so(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("it never came to be that %s", what)
		}
	}
}

func TestTheTableFollowsTheTopicAlsoFromABackupAndFromNothing(t *testing.T) {
	said(t)
	p, l, random := newPublisher(t), newLedger(t), seed.Rand(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "shop.db")
	more := func() {
		for _, campaign := range []string{"spring", "summer", "autumn"} {
			from := len(l.changes[campaign]) + 1
			for range 200 {
				l.happens(random, campaign)
			}
			p.publish(t, l.records(campaign, from, from+199)...)
			p.publish(t, l.records(campaign, from-min(from-1, 20), from+random.IntN(100))...) // a replay
		}
	}
	isThere := func(s *shop) {
		t.Helper()
		comes(t, "all facts are in the table", func() bool { return l.holds(t, s) == 0 })
	}
	more()
	s, stop := p.follow(t, "shop-0", file)
	isThere(s)
	stop()
	backup, err := os.ReadFile(file)
	stage.Must(t, err)
	more()
	s, stop = p.follow(t, "shop-0", file)
	isThere(s)
	p.isBehindTheTable(t, s, true)
	stop()
	stage.Must(t, os.WriteFile(file, backup, 0o600))
	s, stop = p.follow(t, "shop-0", file)
	isThere(s)
	stop()
	s, stop = p.follow(t, "shop-0", filepath.Join(dir, "another.db"))
	isThere(s)
	stop()
}

// next returns the offset from which a shop reads on.
func (p *publisher) next(t *testing.T, s *shop, partition int32) int64 {
	t.Helper()
	all, err := s.offsets(t.Context(), map[string]map[int32]kgo.Offset{p.topic: {partition: kgo.NewOffset()}})
	stage.Must(t, err)
	return max(0, all[p.topic][partition].EpochOffset().Offset) // which is negative at the beginning
}

// nothingIsPassedOver fails the test if a shop reads on behind a fact that it does not have.
func (p *publisher) nothingIsPassedOver(t *testing.T, s *shop) {
	t.Helper()
	next := map[int32]int64{}
	for partition := range int32(3) {
		next[partition] = p.next(t, s, partition)
	}
	has := cursors(t, s)
	for _, r := range p.published {
		var f fact
		stage.Must(t, json.Unmarshal(r.Value, &f))
		if r.Offset < next[r.Partition] && f.Position > has[f.Campaign] {
			t.Fatalf("it reads on from offset %d, and has not kept the fact %d of %s at %d", next[r.Partition], f.Position, f.Campaign, r.Offset)
		}
	}
}

// cursors returns how far a shop has come, by campaign.
func cursors(t *testing.T, s *shop) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	rows, err := s.db.QueryContext(t.Context(), `SELECT campaign, position FROM cursors`)
	stage.Must(t, err)
	defer rows.Close()
	for rows.Next() {
		var campaign string
		var position int64
		stage.Must(t, rows.Scan(&campaign, &position))
		all[campaign] = position
	}
	stage.Must(t, rows.Err())
	return all
}

// isBehindTheTable fails the test if Kafka was told of a record that the database does not have. Where no more records come, Kafka has to
// hear of all of them.
func (p *publisher) isBehindTheTable(t *testing.T, s *shop, still bool) {
	t.Helper()
	committed := func(far func(told, kept int64) bool) bool {
		told, err := p.admin.FetchOffsets(t.Context(), p.name)
		stage.Must(t, err)
		so := true
		told.Each(func(o kadm.OffsetResponse) { so = so && far(o.At, p.next(t, s, o.Partition)) })
		return so
	}
	if still {
		comes(t, "Kafka hears how far this has come", func() bool { return committed(func(told, kept int64) bool { return told == kept }) })
	} else if !committed(func(told, kept int64) bool { return told <= kept }) {
		t.Error("Kafka was told of a record before the database had it")
	}
}

// TestATopicThatHasLostWhatWasNotReadIsReadFromWhereItBegins deletes facts while nobody reads, as a retention that is too short does.
func TestATopicThatHasLostWhatWasNotReadIsReadFromWhereItBegins(t *testing.T) {
	text := said(t)
	p, l, random := newPublisher(t), newLedger(t), seed.Rand(t)
	file := filepath.Join(t.TempDir(), "shop.db")
	for range 20 {
		l.happens(random, "spring")
	}
	p.publish(t, l.records("spring", 1, 20)...)
	s, stop := p.follow(t, "shop-0", file)
	comes(t, "all facts are in the table", func() bool { return l.holds(t, s) == 0 })
	stop()
	for range 80 {
		l.happens(random, "spring")
	}
	p.publish(t, l.records("spring", 21, 50)...)
	ends, err := p.admin.ListEndOffsets(t.Context(), p.topic)
	stage.Must(t, err)
	_, err = p.admin.DeleteRecords(t.Context(), ends.Offsets())
	stage.Must(t, err)
	p.publish(t, l.records("spring", 51, 100)...)
	s, stop = p.follow(t, "shop-0", file)
	comes(t, "the gap is met", func() (met bool) {
		row := s.db.QueryRowContext(t.Context(), `SELECT count(*) > 0 FROM cursors WHERE met = 100 AND position = 20`)
		stage.Must(t, row.Scan(&met))
		return met
	})
	p.publish(t, l.records("spring", 21, 100)...) // a replay
	comes(t, "all facts are in the table", func() bool { return l.holds(t, s) == 0 })
	stop()
	if want := "after the fact 20 came 51"; !strings.Contains(text.String(), want) {
		t.Errorf("it says %q, want %q", text.String(), want)
	}
}

// TestTwoProcessesShareADatabase has processes of a group come and go, so that partitions wander between them, while facts are published.
func TestTwoProcessesShareADatabase(t *testing.T) {
	said(t)
	p, l, random := newPublisher(t), newLedger(t), seed.Rand(t)
	file := filepath.Join(t.TempDir(), "shop.db")
	s, _ := p.follow(t, "shop-0", file)
	for range 4 {
		_, stop := p.follow(t, "shop-1", file)
		for range 10 {
			for _, campaign := range []string{"spring", "summer", "autumn", "winter"} {
				from := len(l.changes[campaign]) + 1
				for range 20 {
					l.happens(random, campaign)
				}
				p.publish(t, l.records(campaign, from, from+19)...)
			}
			p.isBehindTheTable(t, s, false)
			l.holds(t, s)
		}
		stop()
	}
	p.follow(t, "shop-1", file)
	comes(t, "all facts are in the table", func() bool { return l.holds(t, s) == 0 })
}

func TestATopicThatIsNotThereIsTold(t *testing.T) {
	said(t)
	p := newPublisher(t)
	p.topic = "none"
	_, err := p.join(t.Context(), opened(t, filepath.Join(t.TempDir(), "shop.db")))
	if err == nil || !strings.Contains(err.Error(), "look for the topic none at "+p.brokers+": UNKNOWN_TOPIC_OR_PARTITION") {
		t.Errorf("it says %v", err)
	}
}
