//go:build !check

package kafka_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A frozenGate is a gate during whose reading of its own journal the test acts.
type frozenGate struct {
	recovery.Gate
	reading func(to func(record.Batch) error) error
}

func (g frozenGate) Empty(ctx context.Context, r recovery.Rebuild, to record.Sink) error {
	return g.reading(func(b record.Batch) error {
		b.Attempt = r.Attempt
		return stage.Err(to(ctx, b))
	})
}

func (g frozenGate) Unrecorded(_ context.Context, _ firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	return g.reading(func(b record.Batch) error {
		for _, c := range b.Coupons {
			if err := each(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestF02TheOwnerOfARebuildGetsWhatWaitsInTheTopic has some coupons recorded and committed, others only in the topic, some that a relay moves there
// during the reading of the gate's journal, and one that is in both. A recorder has taken some of them and cannot record.
func TestF02TheOwnerOfARebuildGetsWhatWaitsInTheTopic(t *testing.T) {
	t.Parallel()
	at, g, p := services.Kafka.Database(t), newRelayed(), stage.NewLedger("c")
	j := stream{open(t, at, g, patient), t, at, g}
	stop := g.record(t, open(t, at, g, patient), p)
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 10)))
	p.WaitFor(t, 10)
	stop()
	taken := make(chan bool, 100)
	p.Before = func(record.Batch) error { taken <- true; return errAway }
	g.record(t, open(t, at, g, patient), p)
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 10)))
	stage.Next(t, "a batch that is not recorded", taken)
	stage.Must(t, stage.Err(j.Record(t.Context(), record.Batch{Campaign: "d", Epoch: 1, CampaignUID: uid, Coupons: stage.Coupons("d", 1, 3)})))
	stage.Must(t, stage.Err(j.Record(t.Context(), record.Batch{Campaign: "c", Epoch: 1, CampaignUID: "theirs.1.secret", Coupons: stage.Coupons("c", 50, 53)})))
	for _, litter := range []string{"litter", `{"format": 2, "campaign_uid": "theirs.1.secret", "epoch": 1}`} {
		stage.Must(t, j.Journal.Litter(t.Context(), "c", litter))
	}
	gate := kafka.Relayed{Gate: frozenGate{reading: func(to func(record.Batch) error) error {
		moved := g.issue("c", 5)
		for range 2 { // its relay was frozen, and another one took over
			if err := j.append(t.Context(), record.Batch{Campaign: "c", Coupons: moved}); err != nil {
				return err
			}
		}
		return to(record.Batch{Campaign: "c", Epoch: 1, CampaignUID: uid, Coupons: append(stage.Coupons("c", 20, 20), g.issue("c", 2)...)})
	}}, Journal: open(t, at, g)}
	got := map[int64]bool{}
	stage.Must(t, gate.Empty(t.Context(), recovery.Rebuild{Campaign: "c", CampaignUID: uid, Attempt: 7}, func(_ context.Context, b record.Batch) (record.Result, error) {
		if b.Campaign != "c" || b.CampaignUID != uid || b.Attempt != 7 || b.Epoch != 1 {
			t.Errorf("the sink got %+v", b)
		}
		for _, c := range b.Coupons {
			got[c.Number] = true
		}
		return record.Result{}, nil
	}))
	want := map[int64]bool{}
	for _, n := range stage.Numbers(11, 27) {
		want[n] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the owner got other numbers (-want +got):\n%s", diff)
	}
	refused := errors.New("refused")
	err := gate.Empty(t.Context(), recovery.Rebuild{Campaign: "c", CampaignUID: uid}, func(context.Context, record.Batch) (record.Result, error) {
		return record.Result{}, refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("a sink that refuses: %v", err)
	}
}

// TestWhatIsInTheTopicIsInTheJournalOfAGateThatIsVerified moves coupons to the topic during the reading of the gate's own journal.
func TestWhatIsInTheTopicIsInTheJournalOfAGateThatIsVerified(t *testing.T) {
	t.Parallel()
	at, g := services.Kafka.Database(t), newRelayed()
	j := stream{open(t, at, g), t, at, g}
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 3)))
	stage.Must(t, stage.Err(j.Record(t.Context(), record.Batch{Campaign: "c", Epoch: 1, CampaignUID: "theirs.1.secret", Coupons: stage.Coupons("c", 50, 53)})))
	gate := kafka.Relayed{Gate: frozenGate{reading: func(to func(record.Batch) error) error {
		return errors.Join(to(record.Batch{Coupons: stage.Coupons("c", 9, 9)}), stage.Err(j.Issue(t.Context(), "c", 2)))
	}}, Journal: j.Journal}
	got := map[int64]bool{}
	stage.Must(t, gate.Unrecorded(t.Context(), "c", func(c firstcome.Coupon) error { got[c.Number] = true; return nil }))
	if diff := cmp.Diff(map[int64]bool{1: true, 2: true, 3: true, 4: true, 5: true, 9: true}, got); diff != "" {
		t.Errorf("other numbers are not recorded (-want +got):\n%s", diff)
	}
	stage.Must(t, j.Journal.Litter(t.Context(), "c", `{"format": 2, "campaign_uid": "ours.1.secret", "epoch": 1}`))
	if err := gate.Unrecorded(t.Context(), "c", func(firstcome.Coupon) error { return nil }); !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("of a newer release's record it says %v", err)
	}
}

// TestF41WhatARecorderHasReadAndNotRecordedIsLeftToTheNext fails one campaign whose records are before and between those of another campaign, which
// are recorded. Its recorder stops properly, and commits.
func TestF41WhatARecorderHasReadAndNotRecordedIsLeftToTheNext(t *testing.T) {
	t.Parallel()
	at, err := services.MakeTopic(t.Context(), services.Kafka.Database(t), services.Unique("left-to-the-next"), 1, nil)
	stage.Must(t, err)
	g, p := newRelayed(), stage.NewLedger("a", "b")
	j := stream{open(t, at, g, patient), t, at, g}
	p.Before = func(b record.Batch) error {
		if b.Campaign == "a" {
			return errAway
		}
		return nil
	}
	for _, id := range []firstcome.CampaignID{"a", "b", "a", "b"} {
		stage.Must(t, stage.Err(j.Issue(t.Context(), id, 3)))
	}
	stop := g.record(t, open(t, at, g, patient), p)
	stage.Await(t, "what is recorded of b", 6, func() int { return len(p.Coupons("b")) })
	stop()
	if left, err := j.Left(t.Context(), "a"); !left || err != nil {
		t.Fatalf("what is not recorded is left: %v, %v", left, err)
	}
	p.Before = nil
	g.record(t, j, p)
	stage.Await(t, "what is recorded of a", 6, func() int { return len(p.Coupons("a")) })
}

// TestF44WhatCannotBeReadInATopicIsADeadLetterAndTheRestFlows appends an unreadable record before a coupon.
func TestF44WhatCannotBeReadInATopicIsADeadLetterAndTheRestFlows(t *testing.T) {
	t.Parallel()
	at, g, p := services.Kafka.Database(t), newRelayed(), stage.NewLedger("c")
	j := stream{open(t, at, g, patient), t, at, g}
	for _, litter := range []string{"litter", `{"format": 1}`, `{"format": 1, "campaign_uid": "ours.1.secret", "epoch": 1, "runs": [{"first": 0, "users": ["u"]}]}`} {
		stage.Must(t, j.Journal.Litter(t.Context(), "c", litter))
	}
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 1)))
	g.record(t, j, p)
	p.WaitFor(t, 1)
	if letters := p.Letters(); len(letters) != 3 {
		t.Errorf("the dead letters are %v", letters)
	}
}
