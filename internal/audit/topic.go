package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// A TopicSource reads a topic with the facts of a ledger, and the ledger.
type TopicSource struct {
	// Noted returns the position up to which the ledger notes a campaign's facts as published. It is called before Events.
	Noted func(ctx context.Context, id firstcome.CampaignID) (int64, error)
	// Events calls each with every fact of the topic, in the order in which a reader gets them. Their coupons have number, user and the time of the
	// fact. complete means that the topic still has its first records.
	Events func(ctx context.Context, each func(firstcome.Fact) error) (complete bool, err error)
	// Facts calls each with the ledger's facts of a campaign with positions above after, in order, and with no more than limit.
	Facts func(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error
}

// A TopicReport is the result of an audit of a campaign's facts in a topic.
type TopicReport struct {
	Campaign firstcome.CampaignID `json:"campaign"`
	Events   int64                `json:"events"`  // facts of the campaign
	Repeats  int64                `json:"repeats"` // repeated facts among them
	First    int64                `json:"first"`   // the first position; above 1 if the topic no longer has its first records
	Through  int64                `json:"through"` // the highest position
	Breaches Breaches             `json:"breaches,omitzero"`

	gaps  [][2]int64 // the positions before and after missing facts
	again int64      // the position that a replay from 1 on has reached
}

// topicChunk is how many events are compared with the ledger at once.
const topicChunk = 10_000

// A topicAudit reads a topic.
type topicAudit struct {
	source  TopicSource
	only    map[firstcome.CampaignID]bool // the campaigns to audit
	all     bool                          // a fact of any other campaign is a breach
	reports map[firstcome.CampaignID]*TopicReport
	chunk   map[firstcome.CampaignID][]firstcome.Fact
	size    int
}

// Topic reads a whole topic and compares it with the ledger: each fact of a campaign that is noted as published is there, the first copies are in
// order, and each equals the ledger's. ids are the campaigns to audit; all means that the ledger has no others.
func Topic(ctx context.Context, source TopicSource, ids []firstcome.CampaignID, all bool) ([]TopicReport, error) {
	a := &topicAudit{source: source, all: all, only: map[firstcome.CampaignID]bool{}, reports: map[firstcome.CampaignID]*TopicReport{}, chunk: map[firstcome.CampaignID][]firstcome.Fact{}}
	noted := map[firstcome.CampaignID]int64{}
	for _, id := range ids {
		var err error
		if noted[id], err = source.Noted(ctx, id); err != nil {
			return nil, err
		}
		a.only[id], a.reports[id] = true, &TopicReport{Campaign: id}
	}
	complete, err := source.Events(ctx, func(f firstcome.Fact) error { return a.take(ctx, f) })
	if err == nil {
		err = a.compare(ctx)
	}
	if err != nil {
		return nil, err
	}
	var reports []TopicReport
	for _, id := range slices.Sorted(maps.Keys(a.reports)) {
		r := a.reports[id]
		for _, gap := range r.gaps {
			r.Breaches.add("facts", "in the topic position %d follows position %d", gap[1], gap[0])
		}
		if r.First > 1 && complete {
			r.Breaches.add("facts", "the topic's first fact of it has position %d", r.First)
		}
		if r.Through < noted[id] && (r.Events > 0 || complete) {
			r.Breaches.add("facts", "the facts of positions %d to %d are noted as published, but the topic does not have them", r.Through+1, noted[id])
		}
		reports = append(reports, *r)
	}
	return reports, nil
}

// take counts a fact.
func (a *topicAudit) take(ctx context.Context, f firstcome.Fact) error {
	id := f.Coupon.Campaign
	if !a.only[id] {
		if a.all && a.reports[id] == nil {
			a.reports[id] = &TopicReport{Campaign: id}
			a.reports[id].Breaches.add("facts", "the topic has facts of it, but the ledger does not have the campaign")
		}
		return nil
	}
	r := a.reports[id]
	r.Events++
	switch {
	case r.First == 0:
		r.First, r.Through = f.Position, f.Position
	case f.Position <= r.Through:
		r.Repeats++
		if f.Position == 1 || f.Position == r.again+1 {
			r.again = f.Position
		}
		if r.again == r.Through { // a replay of all facts has filled the gaps
			r.First, r.gaps = 1, nil
		}
	default:
		if f.Position > r.Through+1 {
			r.gaps = append(r.gaps, [2]int64{r.Through, f.Position})
		}
		r.Through = f.Position
	}
	a.chunk[id] = append(a.chunk[id], f)
	if a.size++; a.size < topicChunk {
		return nil
	}
	return a.compare(ctx)
}

// compare compares the facts of a chunk with the ledger's.
func (a *topicAudit) compare(ctx context.Context) error {
	for id, facts := range a.chunk {
		slices.SortStableFunc(facts, func(one, other firstcome.Fact) int { return int(one.Position - other.Position) })
		for len(facts) > 0 {
			end := 1 // facts[:end] has no gap
			for end < len(facts) && facts[end].Position <= facts[end-1].Position+1 {
				end++
			}
			if err := a.comparePart(ctx, id, facts[:end]); err != nil {
				return err
			}
			facts = facts[end:]
		}
	}
	clear(a.chunk)
	a.size = 0
	return nil
}

// comparePart compares facts whose positions have no gap.
func (a *topicAudit) comparePart(ctx context.Context, id firstcome.CampaignID, facts []firstcome.Fact) error {
	r := a.reports[id]
	from, to := facts[0].Position, facts[len(facts)-1].Position
	has := map[int64]firstcome.Fact{}
	err := a.source.Facts(ctx, id, from-1, int(to-from)+1, func(f firstcome.Fact) error {
		has[f.Position] = f
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range facts {
		switch is, ok := has[f.Position]; {
		case !ok:
			r.Breaches.add("facts", "the topic has %s, but the ledger has no fact at that position", said(&f))
		case is.Kind != f.Kind || is.Coupon.Number != f.Coupon.Number || is.Coupon.User != f.Coupon.User || !is.At().Equal(f.At()):
			r.Breaches.add("facts", "the topic has %s, but the ledger has %s", said(&f), said(&is))
		}
	}
	return nil
}

// said returns a fact in words.
func said(f *firstcome.Fact) string {
	return fmt.Sprintf("at position %d: %s of number %d to %q at %s", f.Position, f.Kind, f.Coupon.Number, f.Coupon.User, f.At().UTC().Format(time.RFC3339Nano))
}
