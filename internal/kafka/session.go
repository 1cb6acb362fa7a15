package kafka

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/follow"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/internal/wait"
)

// A session is a Publisher with the lease.
type session struct {
	*Publisher
	client    *kgo.Client
	following follow.Following // its Ends cover the cursors in moved
	moved     map[firstcome.CampaignID]follow.Cursor
	noted     time.Time
	looked    time.Time // when the topic was last checked
}

// publish finds the end of the topic, and publishes from there.
func (s *session) publish(ctx context.Context) error {
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	s.leads.Store(true)
	for {
		began := time.Now()
		all, err := s.publishOnce(ctx)
		if err == nil {
			err = s.stillThere(ctx)
		}
		if err == nil {
			err = s.note(ctx)
		}
		if err != nil {
			return err
		}
		if all {
			_ = wait.Sleep(ctx, lookEvery-time.Since(began))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// cursors returns the cursors that are not noted yet.
func (s *session) cursors() []follow.Cursor {
	cursors := make([]follow.Cursor, 0, len(s.moved))
	for _, c := range s.moved {
		cursors = append(cursors, c)
	}
	return cursors
}

// note notes the cursors every noteEvery, and renews the lease at least every renewEvery.
func (s *session) note(ctx context.Context) error {
	since := time.Since(s.noted)
	if since < noteEvery || len(s.moved) == 0 && since < renewEvery {
		return nil
	}
	if err := s.Publisher.cursors.Followed(ctx, s.following, leaseTime, s.cursors()); err != nil {
		return err
	}
	s.noted = time.Now()
	clear(s.moved)
	return nil
}

// A part has the facts of a campaign that are published in one pass.
type part struct {
	cursor  follow.Cursor
	records []*kgo.Record
}

// publishOnce publishes new facts, within bounds. all means that it has published all of them.
func (s *session) publishOnce(ctx context.Context) (all bool, err error) {
	behind, err := s.Publisher.cursors.Behind(ctx, s.Follower(), campaigns)
	if err != nil {
		return false, err
	}
	var parts []part
	room, waits := atOnce, false
	all = len(behind) < campaigns
	for _, c := range behind {
		if moved, ok := s.moved[c.Campaign]; ok {
			c.Position, c.State = moved.Position, moved.State
		}
		switch {
		case c.State == follow.Ahead, c.Position == c.Top:
			continue
		case s.waits(c.Campaign):
			waits = true
			continue
		case c.Position > c.Top:
			s.ahead(c, fmt.Errorf("the ledger has facts up to %d, and %d were published", c.Top, c.Position))
			continue
		}
		one, err := s.read(ctx, c, min(room, perCampaign))
		if err != nil {
			return false, err
		}
		if room -= len(one.records); room == 0 || len(one.records) == perCampaign {
			all = false
		}
		if parts = append(parts, one); room == 0 {
			break
		}
	}
	if len(parts) == 0 && !all {
		s.noted = time.Time{} // the list has only campaigns whose cursors are published but not noted: note them now
		all = waits           // or whose next fact is too large
	}
	return all, s.send(ctx, parts)
}

// read reads the next facts of a campaign.
func (s *session) read(ctx context.Context, c follow.Cursor, limit int) (part, error) {
	one := part{cursor: c}
	err := s.facts(ctx, c.Campaign, c.Position, limit, func(f firstcome.Fact) error {
		t, err := s.termsOf(ctx, &f)
		if err != nil {
			return err
		}
		r, err := recordOf(s.ledger, &f, &t)
		one.records = append(one.records, r)
		return err
	})
	return one, err
}

// termsOf returns the terms of a fact's coupon. They are zero if the ledger has lost the coupon.
func (p *Publisher) termsOf(ctx context.Context, f *firstcome.Fact) (firstcome.Terms, error) {
	if f.Coupon.User == "" {
		return firstcome.Terms{}, nil
	}
	return p.terms(ctx, f.Coupon.Campaign, f.Coupon.TermsVersion)
}

// send appends the records of all parts, and moves the cursor of each to before the first record that the brokers did not take.
func (s *session) send(ctx context.Context, parts []part) error {
	var all []*kgo.Record
	for _, one := range parts {
		all = append(all, one.records...)
	}
	if len(all) == 0 {
		return nil
	}
	failed := s.topic.produce(ctx, s.client, all)
	var first, cut error
	for _, one := range parts {
		taken := slices.IndexFunc(one.records, func(r *kgo.Record) bool { return failed[r] != nil })
		var why error
		if taken < 0 {
			taken = len(one.records)
		} else if why = failed[one.records[taken]]; first == nil && !isTooLarge(why) {
			first = why
		}
		s.holds(one.cursor.Campaign, one.cursor.Position+int64(taken)+1, why)
		for _, r := range one.records[:taken] {
			if err := s.noteEnd(r); cut == nil {
				cut = err
			}
		}
		if taken > 0 {
			s.moved[one.cursor.Campaign] = follow.Cursor{Campaign: one.cursor.Campaign, Position: one.cursor.Position + int64(taken)}
			s.published.Add(int64(taken))
		}
	}
	if cut != nil {
		return cut
	}
	if first != nil {
		return s.topic.explain(fmt.Errorf("publish facts: %w", first))
	}
	point.Reach(point.Published)
	return nil
}

// holds notes whether the topic takes the next fact of a campaign, by its size. If it does not, the campaign's facts wait from there on.
func (s *session) holds(id firstcome.CampaignID, position int64, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.tooLarge, id); isTooLarge(why) {
		s.tooLarge[id] = largeFact{position, time.Now().Add(largeEvery)}
		s.fail(s.topic.explain(fmt.Errorf("the fact %d of %s is too large for the topic %s, and later facts of %s wait for it: %w", position, id, s.topic.name, id, why)))
	}
}

// waits reports whether the facts of a campaign wait because of a large one.
func (s *session) waits(id firstcome.CampaignID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.tooLarge[id].again)
}

// noteEnd notes that the cursors cover a partition up to a record. It is an error if the record's offset is below the noted end, because the
// partition has then lost records. The noted end still grows by one with each such record. So the next session finds the partition too short, however
// many records are appended until then.
func (s *session) noteEnd(r *kgo.Record) error {
	for int(r.Partition) >= len(s.following.Ends) {
		s.following.Ends = append(s.following.Ends, 0)
	}
	end := &s.following.Ends[r.Partition]
	if r.Offset < *end {
		err := s.topic.cut(int(r.Partition), r.Offset, *end)
		*end++
		return err
	}
	*end = r.Offset + 1
	return nil
}

// ahead stops the publishing of a campaign whose facts in the topic are ahead of the ledger.
func (s *session) ahead(c follow.Cursor, why error) {
	s.moved[c.Campaign] = follow.Cursor{Campaign: c.Campaign, Position: c.Position, State: follow.Ahead}
	s.fail(fmt.Errorf("the facts of %s are no longer published: %w. The ledger is older than it was: see docs/runbooks/FirstcomeFactsAhead.md, "+
		"and once the ledger is right, have them published again with firstcome facts replay %s --from POSITION", c.Campaign, why, c.Campaign))
}
