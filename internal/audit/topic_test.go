package audit_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

// topicFact returns the fact of an issue in the campaign c, whose number is its position.
func topicFact(position int64, user string) firstcome.Fact {
	return firstcome.Fact{Position: position, Kind: firstcome.CouponIssued, Coupon: firstcome.Coupon{
		Campaign: "c", Number: position, User: firstcome.UserID(user), IssuedAt: time.Date(2026, 12, 24, 10, 0, 0, int(position)*1000, time.UTC),
	}}
}

func topicFacts(positions ...int64) (facts []firstcome.Fact) {
	for _, n := range positions {
		facts = append(facts, topicFact(n, fmt.Sprint("u", n)))
	}
	return facts
}

// TestEveryBreachOfATopicIsFound audits topics of a ledger whose campaign c has 6 facts, 4 of which are noted as published.
func TestEveryBreachOfATopicIsFound(t *testing.T) {
	other := topicFacts(1)
	other[0].Coupon.Campaign = "of nobody"
	void := topicFacts(3)
	void[0].Kind, void[0].Coupon.VoidedAt = firstcome.CouponVoided, void[0].Coupon.IssuedAt
	for _, test := range []struct {
		what      string
		events    []firstcome.Fact
		forgotten bool   // the topic has lost its beginning
		want      string // events repeats first through
		breaches  []string
	}{
		{what: "as published", events: topicFacts(1, 2, 3, 4), want: "4 0 1 4"},
		{what: "and not noted", events: topicFacts(1, 2, 3, 4, 5, 6), want: "6 0 1 6"},
		{what: "with repeats", events: topicFacts(1, 2, 1, 2, 3, 2, 3, 4), want: "8 4 1 4"},
		{what: "its beginning is gone", events: topicFacts(3, 4), forgotten: true, want: "2 0 3 4"},
		{what: "all of it is gone", forgotten: true, want: "0 0 0 0"},
		{what: "empty", want: "0 0 0 0", breaches: []string{"positions 1 to 4 are noted as published"}},
		{what: "the first are missing", events: topicFacts(3, 4), want: "2 0 3 4", breaches: []string{"first fact of it has position 3"}},
		{what: "the last are missing", events: topicFacts(1, 2), want: "2 0 1 2", breaches: []string{"positions 3 to 4 are noted as published"}},
		{what: "one is missing", events: topicFacts(1, 3, 4), want: "3 0 1 4", breaches: []string{"position 3 follows position 1"}},
		{what: "one was missing, and all was replayed", events: topicFacts(1, 3, 4, 1, 2, 3, 4), want: "7 4 1 4"},
		{what: "the first were missing, and all was replayed", events: topicFacts(3, 4, 1, 2, 3, 4), want: "6 4 1 4"},
		{what: "one was missing, and a replay ended too soon", events: topicFacts(1, 3, 4, 1, 2), want: "5 2 1 4", breaches: []string{"position 3 follows position 1"}},
		{what: "out of order", events: topicFacts(1, 2, 4, 3), want: "4 1 1 4", breaches: []string{"position 4 follows position 2"}},
		{what: "one that the ledger does not have", events: topicFacts(1, 2, 3, 4, 5, 6, 7), want: "7 0 1 7", breaches: []string{"the ledger has no fact at that position"}},
		{what: "another user", events: append(topicFacts(1, 2, 3), topicFact(4, "mallory")), want: "4 0 1 4", breaches: []string{`number 4 to "mallory"`}},
		{what: "another kind", events: slices.Concat(topicFacts(1, 2), void, topicFacts(4)), want: "4 0 1 4", breaches: []string{"coupon.voided of number 3"}},
		{what: "a repeat that says something else", events: append(topicFacts(1, 2, 3, 4), topicFact(2, "mallory")), want: "5 1 1 4", breaches: []string{"mallory"}},
		{what: "a campaign that nobody knows", events: append(topicFacts(1, 2, 3, 4), other...), want: "4 0 1 4", breaches: []string{"the ledger does not have the campaign"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			reports, err := audit.Topic(t.Context(), audit.TopicSource{
				Noted: func(context.Context, firstcome.CampaignID) (int64, error) { return 4, nil },
				Events: func(_ context.Context, each func(firstcome.Fact) error) (bool, error) {
					for _, f := range test.events {
						if err := each(f); err != nil {
							return false, err
						}
					}
					return !test.forgotten, nil
				},
				Facts: func(_ context.Context, _ firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error {
					for _, f := range topicFacts(1, 2, 3, 4, 5, 6) {
						if f.Position > after && f.Position <= after+int64(limit) {
							if err := each(f); err != nil {
								return err
							}
						}
					}
					return nil
				},
			}, []firstcome.CampaignID{"c"}, true)
			if err != nil {
				t.Fatal(err)
			}
			r := reports[0]
			if got := fmt.Sprint(r.Events, r.Repeats, r.First, r.Through); got != test.want {
				t.Errorf("it reports %s, and not %s", got, test.want)
			}
			var texts []string
			for _, r := range reports {
				for _, b := range r.Breaches.Shown {
					texts = append(texts, b.Text)
				}
			}
			if len(texts) != len(test.breaches) {
				t.Fatalf("it finds %q", texts)
			}
			for n, part := range test.breaches {
				if !strings.Contains(texts[n], part) {
					t.Errorf("it finds %q, and not %q", texts[n], part)
				}
			}
		})
	}
}
