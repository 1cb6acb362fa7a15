package flow_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A memory is a gate in memory whose calls a test can hold up and see.
type memory struct {
	mu        sync.Mutex
	campaigns map[firstcome.CampaignID]*firstcome.Campaign
	holds     map[firstcome.CampaignID]map[firstcome.UserID]int64
	calls     [][]firstcome.UserID
	lease     time.Duration

	// before, if set, is called at the beginning of each call.
	before func(ctx context.Context, id firstcome.CampaignID) error
}

func newMemory(quantity int64, ids ...firstcome.CampaignID) *memory {
	m := &memory{campaigns: map[firstcome.CampaignID]*firstcome.Campaign{}, holds: map[firstcome.CampaignID]map[firstcome.UserID]int64{}, lease: 200 * time.Millisecond}
	for _, id := range ids {
		m.campaigns[id] = &firstcome.Campaign{ID: id, Version: 1, Terms: firstcome.Terms{Quantity: quantity}}
		m.holds[id] = map[firstcome.UserID]int64{}
	}
	return m
}

func (m *memory) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	if m.before != nil {
		if err := m.before(ctx, id); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, users)
	c, ok := m.campaigns[id]
	if !ok {
		return nil, firstcome.ErrNoCampaign
	}
	decisions := make([]firstcome.Decision, len(users))
	for n, user := range users {
		decisions[n] = m.decide(c, user)
	}
	return decisions, nil
}

func (m *memory) decide(c *firstcome.Campaign, user firstcome.UserID) firstcome.Decision {
	holds := m.holds[c.ID]
	number, held := holds[user]
	d := firstcome.Decision{Outcome: firstcome.Decide(*c, time.Now(), int64(len(holds)), held), Version: c.Version, Lease: m.lease}
	if d.Outcome == firstcome.Issued {
		number = int64(len(holds)) + 1
		holds[user] = number
	}
	d.InForce, d.Since = int64(len(holds)), c.Since(d.Outcome)
	if d.Outcome.HasCoupon() {
		d.Coupon = firstcome.Coupon{Campaign: c.ID, Number: number, User: user, Code: "0123456789ABCDEF", Recorded: true}
	}
	return d
}

func (m *memory) Holders(_ context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for user := range m.holds[id] {
		each(user)
	}
	return m.campaigns[id].Version, nil
}

// change changes a campaign as an operator would.
func (m *memory) change(id firstcome.CampaignID, edit func(c *firstcome.Campaign, holds map[firstcome.UserID]int64)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	edit(m.campaigns[id], m.holds[id])
	m.campaigns[id].Version++
}

// seen returns the batches that the gate got.
func (m *memory) seen() [][]firstcome.UserID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// issuer returns an Issuer that is stopped when the test ends.
func issuer(t testing.TB, g flow.Gate, limits flow.Limits) *flow.Issuer {
	i := flow.NewIssuer(g, limits)
	t.Cleanup(func() {
		if err := i.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return i
}

// want claims and checks the outcome.
func want(t testing.TB, i *flow.Issuer, id firstcome.CampaignID, user firstcome.UserID, outcome firstcome.Outcome) firstcome.Decision {
	t.Helper()
	d, err := i.Claim(context.Background(), id, user)
	if err != nil || d.Outcome != outcome {
		t.Errorf("%s's claim of %s: got %v, %v; want %v", user, id, d.Outcome, err, outcome)
	}
	return d
}

// An opening gate grants leases that end when the campaign opens.
type opening struct {
	*memory
	opens time.Time
}

func (o *opening) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := o.memory.Claim(ctx, id, users)
	for n := range decisions {
		decisions[n].Lease = min(decisions[n].Lease, max(0, time.Until(o.opens)))
	}
	return decisions, err
}
