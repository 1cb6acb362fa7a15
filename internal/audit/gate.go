package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/firstcome/firstcome"
)

// A GateSource is a remote gate to compare with the ledger.
type GateSource struct {
	// State is firstcome.ErrNoCampaign if the gate does not have it, firstcome.ErrGateMismatch
	// if this firstcome is too old for what it has. Each may be ErrUnreadable.
	State func(context.Context, firstcome.CampaignID) (GateState, error)
	// Holders calls each with every coupon in force as the gate has it: its user, its number and its ticket.
	Holders func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error
	// Journal calls each with every coupon that is on its way to the ledger. It may name
	// some that the ledger has already.
	Journal func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error
	Line    GateLine
	// Secret is the fingerprint of the code secret that the nodes are believed to have; empty: nobody says.
	Secret string
}

// A GateState is a campaign's counters at a remote gate.
type GateState struct {
	Version    int64
	Epoch      int64
	InForce    int64
	LastNumber int64
	Drained    int64 // the number up to which the gate was told that every number has left the journal
	firstcome.Instants
}

// A GateReport is what the comparison of a campaign's gate with the ledger found.
type GateReport struct {
	Campaign   firstcome.CampaignID `json:"campaign_id"`
	Holders    int64                `json:"holders"`    // at the gate
	Unrecorded int64                `json:"unrecorded"` // of them, in the journal only
	Waiting    int64                `json:"waiting"`    // in line at the gate
	// Moving tells that the campaign was in use, so that its counters were not compared.
	Moving bool `json:"moving"`
	// Elsewhere names another gate, which decided the campaign, so that nothing was compared; empty: this one does.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Failed says why the gate could not be asked, so that nothing was compared. It is empty otherwise.
	Failed   string   `json:"failed,omitempty"`
	Breaches Breaches `json:"breaches"`
}

// NotCompared returns the report of a campaign whose gate is not the one at hand, and why.
func NotCompared(id firstcome.CampaignID, format string, args ...any) GateReport {
	r := GateReport{Campaign: id}
	r.Breaches.add("gate", format, args...)
	return r
}

// Gate compares a campaign's gate with the ledger: who holds a coupon at the gate
// is who holds one in force in the ledger, is an open dead letter, or is in the
// journal; and each ticket there is in line, has a coupon, or was left. It reads at different instants, so what differs
// is read once more, and only what still differs is a breach. It keeps the set of users in memory, three times, and who
// is in line, twice.
func Gate(ctx context.Context, ledger Source, gate GateSource, id firstcome.CampaignID) (GateReport, error) {
	last, lasting, err := compareTwice(ctx, ledger, gate, id)
	switch {
	case errors.Is(err, firstcome.ErrNoCampaign):
		return NotCompared(id, "the gate has lost the campaign, and decides nothing of it: bring its data back, or, if this is the Redis that is to decide, type firstcome gate rebuild %s; see docs/runbooks/FirstcomeGateLost.md", id), nil
	case errors.Is(err, firstcome.ErrGateMismatch) || errors.Is(err, ErrUnreadable):
		return NotCompared(id, "%v", err), nil
	case err != nil:
		return GateReport{}, fmt.Errorf("compare the gate of %s with the ledger: %w", id, err)
	}
	return last.report(id, lasting), nil
}

// compareTwice returns the last comparison, and what differs in each: it compares again if anything does.
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

// A difference is between gate and ledger, without the counters that may move.
type difference struct {
	promise string
	text    string
}

// A grant is what both say of a coupon.
type grant struct{ number, generation, ticket int64 }

func grantOf(c firstcome.Coupon) grant { return grant{c.Number, c.Generation, c.Ticket} }

// A comparison is one reading of both.
type comparison struct {
	before, after GateState
	campaign      Campaign
	holders       map[firstcome.UserID]grant
	line          lineComparison
	highest       int64 // number that ledger, dead letters or journal know
	unrecorded    int64
	first, last   firstcome.Coupon     // of the lowest number that was not issued directly, and of the highest, of ledger and journal
	differ        map[difference]int64 // by the order in which they were found
}

func compareGate(ctx context.Context, ledger Source, gate GateSource, id firstcome.CampaignID) (*comparison, error) {
	c := &comparison{holders: map[firstcome.UserID]grant{}, differ: map[difference]int64{}}
	if err := c.read(ctx, ledger, gate, id); err != nil {
		return nil, err
	}
	return c, nil
}

// read reads both, and compares. What the gate decides first is read first: a coupon is in the journal before it is in the
// ledger, and counters only grow.
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
	c.compareSecret(gate.Secret)
	c.compareAge(id)
	c.compareHolders(expected)
	c.compareLine()
	if !c.moving() {
		c.compareCounters()
	}
	return nil
}

// expected returns which coupon each user must hold at the gate. The journal is read
// before the ledger, into which its coupons go.
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
		err = ledger.Lost(ctx, id, func(r Range) { c.highest = max(c.highest, r.last()) })
	}
	c.unrecorded = int64(len(journal))
	for _, coupon := range journal {
		known(grantOf(coupon))
		expected[coupon.User] = grantOf(coupon)
	}
	return expected, err
}

// pending tells whether a change is on its way to the gate.
func (c *comparison) pending() bool { return c.campaign.Applied != c.campaign.Version }

// moving tells whether somebody claimed or changed the campaign in between.
func (c *comparison) moving() bool {
	before, after := c.before, c.after
	before.Drained, after.Drained = 0, 0 // recording moves nothing that is compared
	return before != after || c.pending()
}

func (c *comparison) differs(promise, format string, args ...any) {
	d := difference{promise, fmt.Sprintf(format, args...)}
	if _, known := c.differ[d]; !known {
		c.differ[d] = int64(len(c.differ))
	}
}

// compareSecret compares the ledger's with the one that was given. The gate's is in the names of its keys.
func (c *comparison) compareSecret(given string) {
	if kept := c.campaign.Secret; given != "" && given != kept {
		c.differs("identity", "the codes are made with the secret of fingerprint %s, and the one given has %s: a node with it decides nothing of the campaign; give the right one with FIRSTCOME_SECRET or --secret-file", kept, given)
	}
}

// compareAge finds a ledger that was restored from a backup: it numbers everything before the gate hears of it, and was read after the gate. It
// finds a gate in whose place another one came, too: the ledger ends an epoch only for that.
func (c *comparison) compareAge(id firstcome.CampaignID) {
	if g := c.before; g.Version > c.campaign.Version || g.Epoch > c.campaign.Epoch || g.Drained > c.campaign.Drained {
		c.differs("gate", "the ledger is older than the gate, which is at version %d of epoch %d and was told of the numbers up to %d; the ledger is at version %d of epoch %d, with those up to %d: firstcome gate reconcile %s",
			g.Version, g.Epoch, g.Drained, c.campaign.Version, c.campaign.Epoch, c.campaign.Drained, id)
	}
	if g := c.after; g.Epoch < c.campaign.Epoch {
		c.differs("gate", "the gate is older than the ledger: it is in epoch %d, and the ledger in %d, so another gate came in its place, and what this one gave since is lost; if it is to decide all the same: firstcome gate rebuild %s",
			g.Epoch, c.campaign.Epoch, id)
	}
}

// compareHolders names users in their order, so that two readings name the same ones first.
func (c *comparison) compareHolders(expected map[firstcome.UserID]grant) {
	for _, user := range slices.Sorted(maps.Keys(c.holders)) {
		has := c.holders[user]
		switch wanted, ok := expected[user]; {
		case !ok && c.pending(): // a void may be what is on its way
		case !ok:
			c.differs("P5", "the user %q holds number %d at the gate, which is neither in the ledger nor on its way", user, has.number)
		case has.number != wanted.number:
			c.differs("P4", "the user %q holds number %d at the gate, and number %d in the ledger or on its way", user, has.number, wanted.number)
		case has != wanted:
			c.differs("P9", "number %d was issued to the ticket %d.%d at the gate, and to the ticket %d.%d in the ledger or on its way; 0.0 is none",
				has.number, has.generation, has.ticket, wanted.generation, wanted.ticket)
		}
	}
	for _, user := range slices.Sorted(maps.Keys(expected)) {
		if _, ok := c.holders[user]; !ok {
			c.differs("P3", "the user %q holds number %d, and may claim another one at the gate", user, expected[user].number)
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
		c.differs("P4", "the gate's last number is %d, and it would give those up to %d again", g.LastNumber, c.highest)
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
