package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/firstcome/firstcome"
)

// A GateSource reads a remote gate that is compared with the ledger.
type GateSource struct {
	// State returns a campaign's counters, firstcome.ErrNoCampaign if the gate does not have the campaign, or firstcome.ErrGateMismatch if this
	// firstcome is too old to read it. Each function may return ErrUnreadable.
	State func(context.Context, firstcome.CampaignID) (GateState, error)
	// Holders calls each with every coupon in force at the gate: its user, number and ticket.
	Holders func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error
	// Journal calls each with every coupon on its way to the ledger, and perhaps with some that the ledger already has.
	Journal func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error
	Line    GateLine
	// Terms returns the text of the terms that the gate keeps for the ledger.
	Terms func(context.Context, firstcome.CampaignID) (string, error)
	// Secret is the code secret that the nodes should have; nil if unknown.
	Secret *firstcome.Secret
}

// A GateState is a campaign's counters at a remote gate.
type GateState struct {
	Version    int64
	Epoch      int64
	InForce    int64
	LastNumber int64
	Drained    int64 // the number up to which the campaign is drained, as the gate was told
	firstcome.Instants
}

// A GateReport is the result of comparing a campaign's gate with the ledger.
type GateReport struct {
	Campaign   firstcome.CampaignID `json:"campaign_id"`
	Holders    int64                `json:"holders"`    // at the gate
	Unrecorded int64                `json:"unrecorded"` // those of them that are only in the journal
	Waiting    int64                `json:"waiting"`    // in line at the gate
	// Moving means that the campaign was in use, so its counters were not compared.
	Moving bool `json:"moving"`
	// Elsewhere names the other gate that decides the campaign, so nothing was compared. It is empty if this gate does.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Failed is why the gate could not be read, so nothing was compared. It is empty otherwise.
	Failed   string   `json:"failed,omitempty"`
	Breaches Breaches `json:"breaches"`
}

// NotCompared returns the report of a campaign whose gate is not the one at hand, and why.
func NotCompared(id firstcome.CampaignID, format string, args ...any) GateReport {
	r := GateReport{Campaign: id}
	r.Breaches.add("gate", format, args...)
	return r
}

// Gate compares a campaign's gate with the ledger. A user must hold a coupon at the gate exactly if the user has a coupon in force or an open dead
// letter in the ledger, or a coupon in the journal. Each ticket at the gate must be in line, have a coupon, or have been left. The two are read at
// different times. So differences are checked by a second comparison, and only those that both find are breaches. Gate keeps the set of users in
// memory three times, and the users in line twice.
func Gate(ctx context.Context, ledger Source, gate GateSource, id firstcome.CampaignID) (GateReport, error) {
	last, lasting, err := compareTwice(ctx, ledger, gate, id)
	switch {
	case errors.Is(err, firstcome.ErrNoCampaign):
		return NotCompared(id, "the gate has lost the campaign, and decides nothing of it: bring its data back, or, if this Redis should decide, type firstcome gate rebuild %s; see docs/runbooks/FirstcomeGateLost.md", id), nil
	case errors.Is(err, firstcome.ErrGateMismatch) || errors.Is(err, ErrUnreadable):
		return NotCompared(id, "%v", err), nil
	case err != nil:
		return GateReport{}, fmt.Errorf("compare the gate of %s with the ledger: %w", id, err)
	}
	return last.report(id, lasting), nil
}

// compareTwice returns the last comparison, and the differences that both comparisons found. It compares only once if the first finds none.
func compareTwice(ctx context.Context, ledger Source, gate GateSource, id firstcome.CampaignID) (*comparison, map[difference]int64, error) {
	first, err := compareGate(ctx, ledger, gate, id)
	if err != nil || len(first.differ) == 0 {
		return first, nil, err
	}
	second, err := compareGate(ctx, ledger, gate, id)
	if err != nil {
		return nil, nil, err
	}
	lasting := maps.Clone(second.differ)
	maps.DeleteFunc(lasting, func(d difference, _ int64) bool {
		_, before := first.differ[d]
		return !before
	})
	return second, lasting, nil
}

// A difference is one difference between gate and ledger.
type difference struct {
	promise string
	text    string
}

// A grant is the part of a coupon that both gate and ledger have.
type grant struct{ number, generation, ticket int64 }

func grantOf(c firstcome.Coupon) grant { return grant{c.Number, c.Generation, c.Ticket} }

// A comparison is one reading of gate and ledger.
type comparison struct {
	before, after GateState
	campaign      Campaign
	holders       map[firstcome.UserID]grant
	line          lineComparison
	highest       int64 // the highest number in the ledger, its dead letters or the journal
	unrecorded    int64
	first, last   firstcome.Coupon     // in ledger and journal: with the lowest number not issued directly, and with the highest number
	differ        map[difference]int64 // with the order in which they were found
}

func compareGate(ctx context.Context, ledger Source, gate GateSource, id firstcome.CampaignID) (*comparison, error) {
	c := &comparison{holders: map[firstcome.UserID]grant{}, differ: map[difference]int64{}}
	if err := c.read(ctx, ledger, gate, id); err != nil {
		return nil, err
	}
	return c, nil
}

// read reads gate and ledger, and compares them. It reads first what changes first: a coupon is in the journal before it is in the ledger, and
// counters only grow.
func (c *comparison) read(ctx context.Context, ledger Source, gate GateSource, id firstcome.CampaignID) (err error) {
	if c.before, err = gate.State(ctx, id); err != nil {
		return err
	}
	if err = c.line.begin(ctx, gate.Line, id); err != nil {
		return err
	}
	err = gate.Holders(ctx, id, func(coupon firstcome.Coupon) error {
		c.holders[coupon.User] = grantOf(coupon)
		return nil
	})
	if err != nil {
		return err
	}
	expected, err := c.expected(ctx, ledger, gate, id)
	if err != nil {
		return err
	}
	if c.campaign, err = ledger.Campaign(ctx, id); err != nil {
		return err
	}
	if err = c.line.end(ctx, ledger, gate.Line, id); err != nil {
		return err
	}
	if c.after, err = gate.State(ctx, id); err != nil {
		return err
	}
	if gate.Secret != nil { // the gate's is part of the names of its keys
		if wrong := compareSecret(c.campaign.Secret, *gate.Secret); wrong != "" {
			c.differs("identity", "%s", wrong)
		}
	}
	c.compareAge(id)
	c.compareHolders(expected)
	c.compareLine()
	if c.moving() {
		return nil
	}
	c.compareCounters()
	return c.compareTerms(ctx, ledger, gate, id)
}

// expected returns the coupon that each user must hold at the gate. It reads the journal before the ledger, because coupons move from the journal to
// the ledger.
func (c *comparison) expected(ctx context.Context, ledger Source, gate GateSource, id firstcome.CampaignID) (map[firstcome.UserID]grant, error) {
	journal := map[int64]firstcome.Coupon{}
	err := gate.Journal(ctx, id, func(coupon firstcome.Coupon) error {
		journal[coupon.Number] = coupon
		c.saw(coupon)
		return nil
	})
	if err != nil {
		return nil, err
	}
	expected := map[firstcome.UserID]grant{}
	known := func(g grant) {
		c.highest = max(c.highest, g.number)
		c.line.known(g)
		delete(journal, g.number)
	}
	err = ledger.Coupons(ctx, id, func(coupon firstcome.Coupon) {
		known(grantOf(coupon))
		c.saw(coupon)
		if coupon.VoidedAt.IsZero() {
			expected[coupon.User] = grantOf(coupon)
		}
	})
	if err == nil {
		err = ledger.Letters(ctx, id, func(l Letter) {
			g := grant{l.Number, l.Generation, l.Ticket}
			if !l.Open && !l.Voided { // it is a coupon
				g.ticket = 0
			}
			known(g)
			if _, holds := expected[l.User]; l.Number != 0 && l.Open && !holds {
				expected[l.User] = g
			}
		})
	}
	if err == nil {
		err = ledger.Lost(ctx, id, func(r firstcome.Range) { c.highest = max(c.highest, r.Last()) })
	}
	c.unrecorded = int64(len(journal))
	for _, coupon := range journal {
		known(grantOf(coupon))
		expected[coupon.User] = grantOf(coupon)
	}
	return expected, err
}

// pending reports whether a change is on its way to the gate.
func (c *comparison) pending() bool { return c.campaign.Applied != c.campaign.Version }

// moving reports whether the campaign was claimed or changed during the comparison.
func (c *comparison) moving() bool {
	before, after := c.before, c.after
	before.Drained, after.Drained = 0, 0 // recording changes nothing that is compared
	return before != after || c.pending()
}

func (c *comparison) differs(promise, format string, args ...any) {
	d := difference{promise, fmt.Sprintf(format, args...)}
	if _, known := c.differ[d]; !known {
		c.differ[d] = int64(len(c.differ))
	}
}

// compareAge finds a ledger that was restored from a backup: a ledger numbers everything before it tells the gate, and was read after the gate. It
// also finds a gate that was replaced by another one: the ledger ends an epoch only for that.
func (c *comparison) compareAge(id firstcome.CampaignID) {
	if g := c.before; g.Version > c.campaign.Version || g.Epoch > c.campaign.Epoch || g.Drained > c.campaign.Drained {
		c.differs("gate", "the ledger is older than the gate, which is at version %d of epoch %d and is drained through number %d; the ledger is at version %d of epoch %d, drained through %d: firstcome gate reconcile %s",
			g.Version, g.Epoch, g.Drained, c.campaign.Version, c.campaign.Epoch, c.campaign.Drained, id)
	}
	if g := c.after; g.Epoch < c.campaign.Epoch {
		c.differs("gate", "the gate is older than the ledger: it is in epoch %d, and the ledger in %d, so another gate has replaced it, and numbers that it has issued since are lost; if it should decide all the same: firstcome gate rebuild %s",
			g.Epoch, c.campaign.Epoch, id)
	}
}

// compareHolders reports users in sorted order, so that two comparisons report the same users first.
func (c *comparison) compareHolders(expected map[firstcome.UserID]grant) {
	for _, user := range slices.Sorted(maps.Keys(c.holders)) {
		has := c.holders[user]
		switch wanted, ok := expected[user]; {
		case !ok && c.pending(): // the pending change may be a void
		case !ok:
			c.differs("P5", "the user %q holds number %d at the gate, which is neither in the ledger nor on its way", user, has.number)
		case has.number != wanted.number:
			c.differs("P4", "the user %q holds number %d at the gate, but number %d in the ledger or on its way", user, has.number, wanted.number)
		case has != wanted:
			c.differs("P9", "number %d was issued to the ticket %d.%d at the gate, and to the ticket %d.%d in the ledger or on its way; 0.0 means none",
				has.number, has.generation, has.ticket, wanted.generation, wanted.ticket)
		}
	}
	for _, user := range slices.Sorted(maps.Keys(expected)) {
		if _, ok := c.holders[user]; !ok {
			c.differs("P3", "the user %q has number %d, but is not a holder at the gate, and could claim another coupon", user, expected[user].number)
		}
	}
}

func (c *comparison) compareCounters() {
	g := c.after
	if g.InForce > c.campaign.Quantity {
		c.differs("P1", "%d coupons are in force at the gate, the quantity is %d", g.InForce, c.campaign.Quantity)
	}
	if holders := int64(len(c.holders)); g.InForce != holders {
		c.differs("counters", "the gate counts %d coupons in force, and has %d holders", g.InForce, holders)
	}
	switch {
	case g.LastNumber < c.highest:
		c.differs("P4", "the gate's last number is %d, so it would issue the numbers up to %d again", g.LastNumber, c.highest)
	case g.LastNumber > c.highest:
		c.differs("P5", "the gate issued the numbers %d to %d, which are neither in the ledger nor on their way", c.highest+1, g.LastNumber)
	}
	if g.Version != c.campaign.Applied {
		c.differs("counters", "the gate is at change %d, the ledger has noted %d", g.Version, c.campaign.Applied)
	}
	if g.Epoch > c.campaign.Epoch {
		c.differs("counters", "the gate is in epoch %d, the ledger in %d", g.Epoch, c.campaign.Epoch)
	}
	c.compareCourse()
}

func (c *comparison) report(id firstcome.CampaignID, differ map[difference]int64) GateReport {
	r := GateReport{Campaign: id, Holders: int64(len(c.holders)), Unrecorded: c.unrecorded, Waiting: c.line.after.Line.Waiting, Moving: c.moving() || c.line.moved()}
	found := slices.SortedFunc(maps.Keys(differ), func(a, b difference) int { return int(differ[a] - differ[b]) })
	for _, d := range found {
		r.Breaches.add(d.promise, "%s", d.text)
	}
	return r
}
