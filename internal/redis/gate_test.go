package redis_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

func TestTheRedisGateConforms(t *testing.T) {
	conform.Gate(t, func(t *testing.T) conform.Subject {
		s := newSubject(t, services.Redis.Database(t), 1, true)
		s.SetClock(conform.Epoch)
		return s
	})
}

func TestF61ClaimsAndChangesThroughAnIssuerAreLinearizable(t *testing.T) {
	conform.Linearizable(t, func(t *testing.T) conform.Subject { return newSubject(t, services.Redis.Database(t), 1, false) })
}

func TestF61ClaimsAndChangesThroughThreeNodesAreLinearizable(t *testing.T) {
	conform.Linearizable(t, func(t *testing.T) conform.Subject {
		return cluster{newSubject(t, services.Redis.Database(t), 3, false)}
	})
}

// secret returns the secret of the tests.
func secret(t testing.TB) firstcome.Secret {
	t.Helper()
	return stage.Secret()
}

// open opens a gate that is closed when the test ends.
func open(t testing.TB, url string, edit ...func(*redis.Options)) *redis.Gate {
	t.Helper()
	options := redis.Options{URL: url, Secret: secret(t)}
	for _, e := range edit {
		e(&options)
	}
	g, err := redis.Open(t.Context(), options)
	stage.Must(t, err)
	t.Cleanup(g.Close)
	return g
}

// A subject is gates on one Redis with a ledger of changes in memory: enough of one
// to number the changes and to know the campaigns.
type subject struct {
	gates []*redis.Gate
	clock atomic.Int64

	mu        sync.Mutex // guards campaigns and what is in them
	campaigns map[firstcome.CampaignID]*campaign
}

// A campaign is what the ledger knows of one.
type campaign struct {
	firstcome.Campaign
	refused int64                      // versions that the gate has used up for nothing
	before  int64                      // those of them before the last change of terms
	users   map[int64]firstcome.UserID // by number
	voided  map[int64]bool
}

func newSubject(t testing.TB, url string, nodes int, still bool, edit ...func(*redis.Options)) *subject {
	s := &subject{campaigns: map[firstcome.CampaignID]*campaign{}}
	if still {
		edit = append(edit, func(o *redis.Options) { o.Clock = func() time.Time { return time.Unix(0, s.clock.Load()) } })
	}
	for range nodes {
		s.gates = append(s.gates, open(t, url, edit...))
	}
	return s
}

// A cluster has an Issuer for each node.
type cluster struct{ *subject }

func (c cluster) Nodes() (nodes []flow.Gate) {
	for _, g := range c.gates {
		nodes = append(nodes, &node{g, c.subject})
	}
	return nodes
}

// A node is a gate whose coupons the ledger gets to know.
type node struct {
	*redis.Gate
	s *subject
}

func (n *node) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := n.Gate.Claim(ctx, id, users)
	n.s.record(id, decisions)
	return decisions, err
}

func (s *subject) SetClock(at time.Time) { s.clock.Store(at.UnixNano()) }

func (s *subject) Cools() time.Duration { return 250 * time.Millisecond }

// Claim counts versions as a gate does that refuses nothing after it took it.
func (s *subject) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := (&node{s.gates[0], s}).Claim(ctx, id, users)
	for n := range decisions {
		decisions[n].Version -= s.usedUp(id)
		decisions[n].TermsVersion -= s.usedUpByTerms(id)
	}
	return decisions, err
}

// record keeps what was issued.
func (s *subject) record(id firstcome.CampaignID, decisions []firstcome.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range decisions {
		if d.Outcome == firstcome.Issued {
			s.campaigns[id].users[d.Coupon.Number] = d.Coupon.User
		}
	}
}

func (s *subject) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (int64, error) {
	version, err := s.gates[0].Holders(ctx, id, each)
	return version - s.usedUp(id), err
}

func (s *subject) Instants(ctx context.Context, id firstcome.CampaignID) (firstcome.Instants, error) {
	state, err := s.gates[0].State(ctx, id)
	return state.Instants, err
}

func (s *subject) usedUp(id firstcome.CampaignID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.campaigns[id]; ok {
		return c.refused
	}
	return 0
}

// usedUpByTerms is usedUp when the terms were last changed.
func (s *subject) usedUpByTerms(id firstcome.CampaignID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.campaigns[id]; ok {
		return c.before
	}
	return 0
}

func (s *subject) Create(ctx context.Context, id firstcome.CampaignID, terms firstcome.Terms) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.campaigns[id] != nil {
		return firstcome.ErrCampaignExists
	}
	change := firstcome.Change{Campaign: id, Version: 1, Kind: firstcome.ChangeTerms, Terms: terms, Epoch: 1}
	if _, err := s.gates[0].Apply(ctx, change); err != nil {
		return err
	}
	s.campaigns[id] = &campaign{Campaign: firstcome.Campaign{ID: id, Terms: terms, Version: 1}, users: map[int64]firstcome.UserID{}, voided: map[int64]bool{}}
	return nil
}

// change numbers a change, has the gate apply it, and tells whether it was refused.
func (s *subject) change(ctx context.Context, c *campaign, change firstcome.Change) (refused bool, err error) {
	change.Campaign, change.Version = c.ID, c.Version+1
	refused, err = s.gates[0].Apply(ctx, change)
	if err == nil {
		c.Version++
	}
	if refused {
		c.refused++
	}
	return refused, err
}

func (s *subject) SetTerms(ctx context.Context, id firstcome.CampaignID, edit func(*firstcome.Terms)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.campaigns[id]
	terms := c.Terms
	edit(&terms)
	if c.Closed {
		return firstcome.ErrClosed
	}
	if terms.Quantity == c.Quantity && terms.OpensAt.Equal(c.OpensAt) && terms.ClosesAt.Equal(c.ClosesAt) {
		return nil
	}
	refused, err := s.change(ctx, c, firstcome.Change{Kind: firstcome.ChangeTerms, Terms: terms})
	if refused {
		return firstcome.ErrBelowInForce
	}
	if err == nil {
		c.Terms, c.before = terms, c.refused
	}
	return err
}

func (s *subject) Switch(ctx context.Context, id firstcome.CampaignID, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.campaigns[id]
	if c.Closed && to != "close" {
		return firstcome.ErrClosed
	}
	paused, closed := to == "pause" || to == "close" && c.Paused, c.Closed || to == "close"
	if paused == c.Paused && closed == c.Closed {
		return nil
	}
	c.Paused, c.Closed = paused, closed
	_, err := s.change(ctx, c, firstcome.Change{Kind: firstcome.ChangeKind(to)})
	return err
}

// Void finds the number's user among the coupons that the ledger knows, or, if their answer
// is still on its way, among the gate's.
func (s *subject) Void(ctx context.Context, id firstcome.CampaignID, number int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.campaigns[id]
	if c.voided[number] {
		return firstcome.ErrAlreadyVoided
	}
	user, known := c.users[number]
	if !known {
		var err error
		if user, err = s.holderOf(ctx, id, number); err != nil {
			return err
		}
	}
	c.voided[number] = true
	_, err := s.change(ctx, c, firstcome.Change{Kind: firstcome.ChangeVoid, Number: number, User: user})
	return err
}

func (s *subject) holderOf(ctx context.Context, id firstcome.CampaignID, number int64) (firstcome.UserID, error) {
	state, err := s.gates[0].State(ctx, id)
	if err != nil || number < 1 || number > state.LastNumber {
		return "", errors.Join(err, firstcome.ErrNoCoupon)
	}
	var users []firstcome.UserID
	if _, err := s.gates[0].Holders(ctx, id, func(user firstcome.UserID) { users = append(users, user) }); err != nil {
		return "", err
	}
	for _, user := range users {
		if c, err := s.gates[0].CouponOf(ctx, id, user); err != nil || c.Number == number {
			return user, err
		}
	}
	return "", firstcome.ErrNoCoupon
}
