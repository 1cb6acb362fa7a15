package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/follow"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/test/services"
)

func TestMain(m *testing.M) { services.Main(m) }

// A book is a ledger with one follower, in memory.
type book struct {
	mu        sync.Mutex
	facts     map[firstcome.CampaignID][]firstcome.Fact
	cursors   map[firstcome.CampaignID]follow.Cursor
	following follow.Following
	owner     string
	until     time.Time
	behind    func() // if set, is called once, before Behind lists the campaigns
	unnoted   bool   // if true, cursors are not noted: the node that publishes dies before that
}

func newBook() *book {
	return &book{facts: map[firstcome.CampaignID][]firstcome.Fact{}, cursors: map[firstcome.CampaignID]follow.Cursor{}}
}

// issue adds coupons to a campaign, with the mark in the user ids.
func (b *book) issue(id firstcome.CampaignID, count int, mark string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range count {
		n := int64(len(b.facts[id]) + 1)
		b.facts[id] = append(b.facts[id], firstcome.Fact{Position: n, Kind: firstcome.CouponIssued, Coupon: firstcome.Coupon{
			Campaign: id, Number: n, User: firstcome.UserID(fmt.Sprintf("%s%d", mark, n)), Code: "0123456789ABCDEF", TermsVersion: 1,
			IssuedAt: time.Date(2026, 12, 24, 10, 0, 0, int(n)*1000, time.UTC),
		}})
	}
}

// restore removes all but the first facts of a campaign from the ledger.
func (b *book) restore(id firstcome.CampaignID, first int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.facts[id] = b.facts[id][:first]
	if c := b.cursors[id]; c.Position > int64(first) {
		c.Position = int64(first)
		b.cursors[id] = c
	}
}

func (b *book) Identity() string { return "test" }

// Terms returns terms whose only prize has the version in its name.
func (b *book) Terms(_ context.Context, _ firstcome.CampaignID, version int64) (firstcome.Terms, error) {
	if version < 1 {
		return firstcome.Terms{}, fmt.Errorf("no terms have the version %d", version)
	}
	return firstcome.Terms{Prizes: []firstcome.Prize{{ID: "p", Name: fmt.Sprint("prize of version ", version)}}}, nil
}

func (b *book) Facts(_ context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error {
	b.mu.Lock()
	all := b.facts[id]
	b.mu.Unlock()
	for _, f := range all[min(int(after), len(all)):min(int(after)+limit, len(all))] {
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

func (b *book) Follow(_ context.Context, follower, owner string, lease time.Duration) (follow.Following, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owner != owner && time.Now().Before(b.until) {
		return follow.Following{}, follow.ErrFollowed
	}
	b.following.Follower, b.owner, b.until = follower, owner, time.Now().Add(lease)
	b.following.Attempt++
	f := b.following
	f.Ends = slices.Clone(f.Ends)
	return f, nil
}

var errDied = errors.New("the node died")

func (b *book) Followed(_ context.Context, f follow.Following, lease time.Duration, cursors []follow.Cursor) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.Attempt != b.following.Attempt {
		return follow.ErrFollowed
	}
	if b.unnoted && len(cursors) > 0 {
		b.until = time.Time{}
		return errDied
	}
	b.following, b.until = f, time.Now().Add(lease)
	b.following.Ends = slices.Clone(f.Ends)
	for _, c := range cursors {
		b.cursors[c.Campaign] = c
	}
	return nil
}

func (b *book) Behind(context.Context, string, int) (behind []follow.Cursor, err error) {
	b.mu.Lock()
	act := b.behind
	b.behind = nil
	b.mu.Unlock()
	if act != nil {
		act()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.facts {
		if c := b.cursor(id); c.Position != c.Top && c.State != follow.Ahead {
			behind = append(behind, c)
		}
	}
	return behind, nil
}

func (b *book) CursorOf(_ context.Context, _ string, id firstcome.CampaignID) (follow.Cursor, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.facts[id] == nil {
		return follow.Cursor{}, firstcome.ErrNoCampaign
	}
	return b.cursor(id), nil
}

func (b *book) cursor(id firstcome.CampaignID) follow.Cursor {
	c := b.cursors[id]
	c.Campaign, c.Top = id, int64(len(b.facts[id]))
	return c
}

// before calls act before the next list of campaigns with newer facts, and waits until it has returned.
func (b *book) before(act func()) {
	done := make(chan struct{})
	b.mu.Lock()
	b.behind = func() { defer close(done); act() }
	b.mu.Unlock()
	<-done
}

// die makes the Publisher's notes fail until the test ends that.
func (b *book) die(now bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unnoted = now
}

// replay orders facts to be published again, as an operator does.
func (b *book) replay(id firstcome.CampaignID, from int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.following.Attempt++
	b.until = time.Time{}
	if id != "" {
		b.cursors[id] = follow.Cursor{Campaign: id, Position: from - 1, State: follow.Again}
		return
	}
	b.following.Target, b.following.Ends = "", nil
	for id := range b.cursors {
		b.cursors[id] = follow.Cursor{Campaign: id, State: follow.Again}
	}
}

// A publishing is a Publisher that runs.
type publishing struct {
	*kafka.Publisher
	stop func()
	mu   sync.Mutex
	said []string // the failures that it reported
}

// publish runs a Publisher until stop is called or the test ends.
func publish(t *testing.T, at string, b *book) *publishing {
	t.Helper()
	run := &publishing{}
	var err error
	run.Publisher, err = kafka.NewPublisher(at, kafka.Options{Cursors: b, Facts: b.Facts, Terms: b.Terms, Ledger: b.Identity(), OnFail: func(err error) {
		run.mu.Lock()
		defer run.mu.Unlock()
		run.said = append(run.said, err.Error())
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = run.Run(ctx)
	}()
	run.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(run.stop)
	return run
}

// last returns its last failure.
func (p *publishing) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.said) == 0 {
		return ""
	}
	return p.said[len(p.said)-1]
}
