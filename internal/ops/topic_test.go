//go:build !check

package ops_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestTheMetricsSayWhatARelayDoesAndHowItsTopicIs relays coupons into a topic, and then deletes the topic.
func TestTheMetricsSayWhatARelayDoesAndHowItsTopicIs(t *testing.T) {
	w := watch(t, "redis:x")
	at := services.Kafka.Database(t)
	topic, err := kafka.OpenJournal(t.Context(), at, kafka.JournalOptions{Name: "ours", Secret: stage.Secret()})
	stage.Must(t, err)
	t.Cleanup(topic.Close)
	journal, done := &stage.Journal{}, make(chan record.Result, 1)
	journal.Took = func(drained record.Result) error {
		select {
		case done <- drained:
		default: // nobody waits for it
		}
		return nil
	}
	g := w.gate()
	g.Topic, g.Relay = topic, record.NewRecorder(journal, topic, record.Options{OnCall: w.Relayed, Failures: 1, Probe: time.Hour})
	unaged := false
	g.Lag = func(context.Context, []gate.Revision) ([]record.Lag, error) {
		lags := []record.Lag{{Campaign: "c", Numbers: 3, Oldest: 2 * time.Second}}
		if unaged {
			return lags, record.ErrUnaged
		}
		return lags, nil
	}
	w.WatchGate(g)
	stop := stage.Run(t, g.Relay.Run)
	journal.Add(record.Batch{Campaign: "c", Epoch: 1, CampaignUID: "ours.1.secret", Coupons: stage.Coupons("c", 1, 3)})
	stage.Next(t, "a batch", done)
	labels := `{gate="redis:x",ledger="` + w.ledger.Identity() + `"} `
	w.want(`firstcome_relayed_coupons_total 3`, `firstcome_relay_retries_total 0`, `firstcome_relay_breaker_state`+labels+`0`, `firstcome_topic_up`+labels+`1`,
		`firstcome_topic_records 0`, `firstcome_topic_record_age_seconds 0`, `firstcome_backlog_coupons`+labels+`3`, `firstcome_backlog_age_seconds`+labels+`2`)
	w.wantNone(`firstcome_breaker_state`, `firstcome_recorded_coupons_total`)

	stage.Must(t, services.DropTopic(t.Context(), at))
	number := int64(4)
	stage.Await(t, "the relay's breaker", "open", func() string { // the broker may take some more before the topic is gone
		if g.Relay.Stats().Breaker != "open" {
			journal.Add(record.Batch{Campaign: "c", Epoch: 1, CampaignUID: "ours.1.secret", Coupons: stage.Coupons("c", number, number)})
			number++
		}
		return g.Relay.Stats().Breaker
	})
	unaged = true
	w.want(`firstcome_relay_breaker_state`+labels+`2`, `firstcome_topic_up`+labels+`0`, `firstcome_gate_up 1`, `firstcome_backlog_coupons`+labels+`3`)
	w.wantNone(`firstcome_backlog_age_seconds`)
	stop()
	if want := "the topic did not take what is issued, which waits in Redis"; !strings.Contains(w.log.String(), want) {
		t.Errorf("the log has no %q: %s", want, &w.log)
	}
}
