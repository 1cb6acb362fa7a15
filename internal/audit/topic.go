package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// A TopicSource is a topic with the facts of a ledger, and the ledger, as an audit of the topic reads them.
type TopicSource struct {
	// Noted returns the position up to which the ledger notes a campaign's facts as published. It is asked before the topic is read.
	Noted func(ctx context.Context, id firstcome.CampaignID) (int64, error)
	// Events calls each with every fact of the topic, in the order in which a reader gets them. Of a coupon it has number, user and the
	// instant of the fact. whole tells that the topic still has its beginning.
	Events func(ctx context.Context, each func(firstcome.Fact) error) (whole bool, err error)
	// Facts calls each for the ledger's facts of a campaign with positions above after, in order, at most limit.
	Facts func(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error
}

// A TopicReport is what an audit found of a campaign in a topic.
type TopicReport struct {
	Campaign firstcome.CampaignID `json:"campaign"`
	Events   int64                `json:"events"`  // of the campaign
	Repeats  int64                `json:"repeats"` // those of them that had come before
	First    int64                `json:"first"`   // the first position; above 1 where the topic has forgotten its beginning
	Through  int64                `json:"through"` // the position up to which the topic has all
	Breaches Breaches             `json:"breaches,omitzero"`

	gaps  [][2]int64 // the positions before and behind what the topic lacks
	again int64      // the position up to which a replay from 1 on has come
}

// topicChunk is how many events are held against the ledger at once.
const topicChunk = 10_000

// A topicAudit reads a topic.
type topicAudit struct {
	source  TopicSource
	only    map[firstcome.CampaignID]bool // those that the ledger has and that are audited
	all     bool                          // others are a breach
	reports map[firstcome.CampaignID]*TopicReport
	chunk   map[firstcome.CampaignID][]firstcome.Fact
	size    int
}

// Topic reads a topic whole and holds it against the ledger: each fact of a campaign that is noted as published is there, the first time in
// order, and says what the ledger says. ids are the campaigns to audit; all tells that the ledger has no others.
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
	whole, err := source.Events(ctx, func(f firstcome.Fact) error { return a.take(ctx, f) })
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
			r.Breaches.add("facts", "in the topic position %d comes behind position %d", gap[1], gap[0])
		}
		if r.First > 1 && whole {
			r.Breaches.add("facts", "the topic's first fact of it is that of position %d", r.First)
		}
		if r.Through < noted[id] && (r.Events > 0 || whole) {
			r.Breaches.add("facts", "the facts of positions %d to %d are noted as published, and the topic does not have them", r.Through+1, noted[id])
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
			a.reports[id].Breaches.add("facts", "the topic has facts of it, and the ledger does not know it")
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
		if r.again == r.Through { // a replay of all has brought what was missing
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

// compare holds the facts of a chunk against those of the ledger.
func (a *topicAudit) compare(ctx context.Context) error {
	for id, facts := range a.chunk {
		slices.SortStableFunc(facts, func(one, other firstcome.Fact) int { return int(one.Position - other.Position) })
		for len(facts) > 0 {
			end := 1 // of positions without a gap
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

// comparePart is compare for facts of positions without a gap.
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
			r.Breaches.add("facts", "the topic says %s, and the ledger has no fact of that position", said(&f))
		case is.Kind != f.Kind || is.Coupon.Number != f.Coupon.Number || is.Coupon.User != f.Coupon.User || !is.At().Equal(f.At()):
			r.Breaches.add("facts", "the topic says %s, and the ledger says %s", said(&f), said(&is))
		}
	}
	return nil
}

// said returns a fact in words.
func said(f *firstcome.Fact) string {
	return fmt.Sprintf("at position %d: %s of number %d to %q at %s", f.Position, f.Kind, f.Coupon.Number, f.Coupon.User, f.At().UTC().Format(time.RFC3339Nano))
}
