//go:build !check

package kafka_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestHowLongCouponsWaitInATopicIsToldWhetherAnybodyRecords has three campaigns in one partition, and no recorder.
func TestHowLongCouponsWaitInATopicIsToldWhetherAnybodyRecords(t *testing.T) {
	t.Parallel()
	at, err := services.MakeTopic(t.Context(), services.Kafka.Database(t), services.Unique("waits-of-one-partition"), 1, nil)
	stage.Must(t, err)
	g := newRelayed()
	j := stream{open(t, at, g), t, at, g}
	put := func(id firstcome.CampaignID, of string, number int64, ago time.Duration) {
		c := stage.Coupon(id, number)
		c.IssuedAt = time.Now().Add(-ago)
		stage.Must(t, stage.Err(j.Record(t.Context(), record.Batch{Campaign: id, Epoch: 1, CampaignUID: of, Coupons: []firstcome.Coupon{c}})))
	}
	put("old", "theirs.1.secret", 9, 9*time.Hour) // of another ledger
	put("old", uid, 1, 5*time.Hour)               // recorded already
	put("beside", uid, 1, 30*time.Minute)
	for n := range int64(40) {
		put("old", uid, 2+n, 4*time.Hour-time.Duration(n)*time.Minute)
	}
	put("behind", uid, 1, time.Minute)
	stage.Must(t, j.Journal.Litter(t.Context(), "old", "litter"))
	active := []gate.Revision{{Campaign: "old", CampaignUID: uid, Drained: 1}, {Campaign: "beside", CampaignUID: uid}, {Campaign: "behind", CampaignUID: uid}, {Campaign: "stream", CampaignUID: uid}}
	g.lags = []record.Lag{{Campaign: "old", Numbers: 40}, {Campaign: "beside", Numbers: 1, Oldest: time.Hour}, {Campaign: "behind", Numbers: 1, Oldest: time.Second}}
	lags, err := j.Lag(t.Context(), active)
	stage.Must(t, err)
	for n, want := range []struct{ least, most time.Duration }{
		{4 * time.Hour, 4*time.Hour + time.Minute},
		{time.Hour, time.Hour}, // what is in the gate's journal is older
		{time.Minute, 4 * time.Hour},
	} {
		if got := lags[n]; got.Oldest < want.least || got.Oldest > want.most {
			t.Errorf("%s has waited for %v, want %v to %v", got.Campaign, got.Oldest, want.least, want.most)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := j.Lag(ended, active); !errors.Is(err, record.ErrUnaged) {
		t.Errorf("without an answer of Kafka: %v", err)
	}
	l := stage.NewLedger("old", "beside", "behind")
	g.issued["old"], g.issued["beside"], g.issued["behind"] = stage.Coupons("old", 1, 41), stage.Coupons("beside", 1, 1), stage.Coupons("behind", 1, 1)
	g.record(t, j, l)
	stage.Await(t, "a topic of which all is recorded", time.Second, func() time.Duration {
		g.lags = []record.Lag{{Campaign: "old", Numbers: 1, Oldest: time.Second}}
		lags, err := j.Lag(t.Context(), active)
		stage.Must(t, err)
		return lags[0].Oldest
	})
	stage.Await(t, "what is in hand", 0, func() int { return j.Stats().InHand })
}
