//go:build !check

package ops_test

import (
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF70TheMetricsSayWhichFactIsTooLarge publishes to a topic that takes no fact.
func TestF70TheMetricsSayWhichFactIsTooLarge(t *testing.T) {
	w := watch(t, "")
	w.create("c", 3)
	stage.Must(t, stage.Err(w.ledger.Gate.Claim(t.Context(), "c", []firstcome.UserID{"mina"})))
	at, err := services.MakeTopic(t.Context(), services.Kafka.Database(t), services.Unique("no-facts"), 1, map[string]string{"max.message.bytes": "100"})
	stage.Must(t, err)
	p, err := kafka.NewPublisher(at, kafka.Options{Cursors: w.ledger.Followers, Facts: w.ledger.Reads.Facts, Terms: w.ledger.Reads.Terms, Ledger: w.ledger.Identity(), OnFail: w.FactsFailed})
	stage.Must(t, err)
	w.WatchFacts(p)
	stop := stage.Run(t, p.Run)
	stage.Await(t, "campaigns with a fact that is too large", 1, func() int { return len(p.Stats().TooLarge) })
	w.want(`firstcome_facts_too_large_position{campaign="c",follower="`+p.Follower()+`",ledger="`+w.ledger.Identity()+`"} 1`, `firstcome_facts_leader 1`)
	stop()
	if want := "the fact 1 of c is too large for the topic"; !strings.Contains(w.log.String(), want) {
		t.Errorf("the log has no %q: %s", want, &w.log)
	}
}
