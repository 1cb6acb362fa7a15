package stage

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// An Operator is a remote gate's nodes with a ledger of changes in memory: enough of one
// to number the changes and to know the campaigns. conform.Gate takes it for a subject.
type Operator struct {
	Gates []gate.Gate
	clock atomic.Int64

	mu        sync.Mutex // guards campaigns and what is in them
	campaigns map[firstcome.CampaignID]*campaign
}

// A campaign is what the ledger knows of one.
type campaign struct {
	firstcome.Campaign
	refused int64                      // versions that the gate has used up for nothing
	terms   map[int64]int64            // the versions of terms, without the versions that were used up before, by version
	users   map[int64]firstcome.UserID // by number
	voided  map[int64]bool
}

// NewOperator returns an operator without gates.
func NewOperator() *Operator { return &Operator{campaigns: map[firstcome.CampaignID]*campaign{}} }

// Telling returns the gates, each of which tells the operator what it issues.
func (o *Operator) Telling() (nodes []gate.Decider) {
	for _, g := range o.Gates {
		nodes = append(nodes, &node{g, o})
	}
	return nodes
}

// A node is a gate whose coupons the ledger gets to know.
type node struct {
	gate.Gate
	s *Operator
}

func (n *node) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := n.Gate.Claim(ctx, id, users)
	n.s.record(id, decisions)
	return decisions, err
}

// Now is the clock of gates that stand still until SetClock is called.
func (o *Operator) Now() time.Time { return time.Unix(0, o.clock.Load()) }

// SetClock sets the clock.
func (o *Operator) SetClock(at time.Time) { o.clock.Store(at.UnixNano()) }

// Claim counts versions as a gate does that refuses nothing after it took it.
func (o *Operator) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := (&node{o.Gates[0], o}).Claim(ctx, id, users)
	return o.counted(id, decisions), err
}

// Issue is gate.Decider's.
func (o *Operator) Issue(ctx context.Context, order gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := o.Gates[0].Issue(ctx, order, id, users)
	o.record(id, decisions)
	return o.counted(id, decisions), err
}

// counted counts versions as a gate does that refuses nothing after it took it.
func (o *Operator) counted(id firstcome.CampaignID, decisions []firstcome.Decision) []firstcome.Decision {
	for n := range decisions {
		decisions[n].Version -= o.usedUp(id)
		decisions[n].TermsVersion = o.termsVersion(id, decisions[n].TermsVersion)
		decisions[n].Coupon.TermsVersion = o.termsVersion(id, decisions[n].Coupon.TermsVersion)
	}
	return decisions
}

// Serve is gate.Line's.
func (o *Operator) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	served, err := o.Gates[0].Serve(ctx, id, limit)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range served.Coupons {
		o.campaigns[id].users[c.Number] = c.User
	}
	for n := range served.Coupons {
		served.Coupons[n].TermsVersion = o.campaigns[id].terms[served.Coupons[n].TermsVersion]
	}
	return served, err
}

// Lines is gate.Line's.
func (o *Operator) Lines(ctx context.Context, each func(firstcome.CampaignID)) error {
	return o.Gates[0].Lines(ctx, each)
}

// Lined returns all campaigns: any may have people in line.
func (o *Operator) Lined(context.Context) (all []gate.Revision, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(o.campaigns)) {
		all = append(all, gate.Revision{Campaign: id, Version: o.campaigns[id].Version, Epoch: 1})
	}
	return all, nil
}

// Place is gate.Places'.
func (o *Operator) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	return o.Gates[0].Place(ctx, id, user)
}

// Stays is gate.Places'.
func (o *Operator) Stays(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) ([]gate.Stay, error) {
	return o.Gates[0].Stays(ctx, id, user)
}

// Leave is gate.Places'.
func (o *Operator) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, error) {
	return o.Gates[0].Leave(ctx, id, user)
}

// LineOf is gate.Places'.
func (o *Operator) LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	return o.Gates[0].LineOf(ctx, id)
}

// record keeps what was issued.
func (o *Operator) record(id firstcome.CampaignID, decisions []firstcome.Decision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range decisions {
		if d.Outcome == firstcome.Issued {
			o.campaigns[id].users[d.Coupon.Number] = d.Coupon.User
		}
	}
}

// Holders is gate.Decider's.
func (o *Operator) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (int64, error) {
	version, err := o.Gates[0].Holders(ctx, id, each)
	return version - o.usedUp(id), err
}

// Instants returns what the gate keeps of a campaign's course.
func (o *Operator) Instants(ctx context.Context, id firstcome.CampaignID) (firstcome.Instants, error) {
	state, err := o.Gates[0].State(ctx, id)
	return state.Instants, err
}

func (o *Operator) usedUp(id firstcome.CampaignID) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c, ok := o.campaigns[id]; ok {
		return c.refused
	}
	return 0
}

// termsVersion returns a version of terms as a gate counts it that refuses nothing after it took it.
func (o *Operator) termsVersion(id firstcome.CampaignID, version int64) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c, ok := o.campaigns[id]; ok {
		return c.terms[version]
	}
	return version
}

// Create makes a campaign.
func (o *Operator) Create(ctx context.Context, id firstcome.CampaignID, terms firstcome.Terms) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.campaigns[id] != nil {
		return firstcome.ErrCampaignExists
	}
	change := firstcome.Change{Campaign: id, Version: 1, Kind: firstcome.ChangeTerms, Terms: terms, Epoch: 1}
	if _, err := o.Gates[0].Apply(ctx, change); err != nil {
		return err
	}
	o.campaigns[id] = &campaign{Campaign: firstcome.Campaign{ID: id, Terms: terms, Version: 1}, terms: map[int64]int64{1: 1}, users: map[int64]firstcome.UserID{}, voided: map[int64]bool{}}
	return nil
}

// change numbers a change, has the gate apply it, and tells whether it was refused.
func (o *Operator) change(ctx context.Context, c *campaign, change firstcome.Change) (refused bool, err error) {
	change.Campaign, change.Version = c.ID, c.Version+1
	refused, err = o.Gates[0].Apply(ctx, change)
	if err == nil {
		c.Version++
	}
	if refused {
		c.refused++
	}
	return refused, err
}

// SetTerms changes a campaign's terms.
func (o *Operator) SetTerms(ctx context.Context, id firstcome.CampaignID, edit func(*firstcome.Terms)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.campaigns[id]
	terms := c.Terms
	edit(&terms)
	if c.Closed {
		return firstcome.ErrClosed
	}
	if reflect.DeepEqual(terms, c.Terms) {
		return nil
	}
	change, refusal := firstcome.Change{Kind: firstcome.ChangeTerms, Terms: terms}, firstcome.ErrBelowInForce
	if terms.MovesPrizes(c.Terms) {
		change.Before, refusal = terms.NumberOf(1), firstcome.ErrPrizesFixed
	}
	refused, err := o.change(ctx, c, change)
	if refused {
		return refusal
	}
	if err == nil {
		c.Terms, c.terms[c.Version] = terms, c.Version-c.refused
	}
	return err
}

// Change pauses, resumes or closes a campaign.
func (o *Operator) Change(ctx context.Context, id firstcome.CampaignID, to string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.campaigns[id]
	if c.Closed && to != "close" {
		return firstcome.ErrClosed
	}
	paused, closed := to == "pause" || to == "close" && c.Paused, c.Closed || to == "close"
	if paused == c.Paused && closed == c.Closed {
		return nil
	}
	c.Paused, c.Closed = paused, closed
	_, err := o.change(ctx, c, firstcome.Change{Kind: firstcome.ChangeKind(to)})
	return err
}

// Void voids a number. It finds the number's user among the coupons that the ledger knows, or, if their answer
// is still on its way, among the gate's.
func (o *Operator) Void(ctx context.Context, id firstcome.CampaignID, number int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.campaigns[id]
	if c.voided[number] {
		return firstcome.ErrAlreadyVoided
	}
	user, known := c.users[number]
	if !known {
		var err error
		if user, err = o.holderOf(ctx, id, number); err != nil {
			return err
		}
	}
	c.voided[number] = true
	_, err := o.change(ctx, c, firstcome.Change{Kind: firstcome.ChangeVoid, Number: number, User: user})
	return err
}

func (o *Operator) holderOf(ctx context.Context, id firstcome.CampaignID, number int64) (firstcome.UserID, error) {
	state, err := o.Gates[0].State(ctx, id)
	if err != nil || number < 1 || number > state.LastNumber {
		return "", errors.Join(err, firstcome.ErrNoCoupon)
	}
	var users []firstcome.UserID
	if _, err := o.Gates[0].Holders(ctx, id, func(user firstcome.UserID) { users = append(users, user) }); err != nil {
		return "", err
	}
	for _, user := range users {
		if c, err := o.Gates[0].CouponOf(ctx, id, user); err != nil || c.Number == number {
			return user, err
		}
	}
	return "", firstcome.ErrNoCoupon
}
