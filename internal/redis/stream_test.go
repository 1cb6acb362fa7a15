//go:build !check

package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A stream is a gate with its journal, as conform.Journal needs them.
type stream struct {
	*shop
	*redis.Consumer
	issued int
	made   []gate.Revision
}

func (s *stream) Make(ctx context.Context, id firstcome.CampaignID) error {
	change := firstcome.Change{Campaign: id, Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: firstcome.Terms{Quantity: firstcome.Unlimited}}
	_, err := s.gate.Apply(ctx, change)
	s.made = append(s.made, revisions(id)...)
	return err
}

func (s *stream) Issue(ctx context.Context, id firstcome.CampaignID, users int) (coupons []firstcome.Coupon, err error) {
	decisions, err := s.gate.Claim(ctx, id, crowd(s.issued, users))
	s.issued += users
	for _, d := range decisions {
		coupons = append(coupons, d.Coupon)
	}
	return coupons, err
}

// recorder returns a new consumer of the journal.
func (s *stream) recorder() *redis.Consumer {
	return s.journal(func(o *redis.ConsumerOptions) {
		o.Idle = time.Hour
		o.Active = func(context.Context) ([]gate.Revision, error) { return s.made, nil }
	})
}

func (s *stream) Another() record.Source { return s.recorder() }

func (s *stream) Litter(_ context.Context, id firstcome.CampaignID) error {
	s.do("XADD", redis.Keys(id, "")[2], "*", "\xff", "\x00")
	return nil
}

// Report writes an entry as a script does that ends a generation.
func (s *stream) Report(_ context.Context, id firstcome.CampaignID, r gate.LineReport) error {
	l, p := r.Line, r.Past[0]
	return s.do("XADD", redis.Keys(id, "")[2], "*", "format", "1", "epoch", "1",
		"line", fmt.Sprint(l.Generation, " ", l.LastTicket, " ", l.ServedThrough, " ", l.Served, " ", l.Waiting),
		"ended", fmt.Sprint(p.Generation, " ", p.Reason, " ", p.EndedAt.UnixMicro(), " ", p.LastTicket, " ", p.ServedThrough, " ", p.Served, " ", p.Waiting)).Error()
}

func (s *stream) Left(_ context.Context, id firstcome.CampaignID) (bool, error) {
	entries, err := s.do("XLEN", redis.Keys(id, "")[2]).AsInt64()
	return entries > 0, err
}

func TestF42F44TheJournalConforms(t *testing.T) {
	conform.Journal(t, func(t *testing.T) conform.Stream {
		s := &stream{shop: &shop{t: t, alarms: make(stage.Alarms, 100)}}
		url := services.Redis.Database(t)
		s.gate, s.client = open(t, url), connect(t, url)
		s.Consumer = s.recorder()
		return s
	})
}
