package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A Holding is what became of the number that a code has.
type Holding struct {
	Campaign firstcome.CampaignID
	Number   int64
	Coupon   firstcome.Coupon // zero if there is none
	Why      NoCoupon         // empty if there is a coupon
	Epoch    int64            // of the campaign, if there is no coupon
	// Unread is how many campaigns have another secret and were not searched. It is known if all campaigns were searched and none has the code.
	Unread int
}

// NoCoupon is why a number has no coupon.
type NoCoupon string

// The reasons.
const (
	NumberLost   NoCoupon = "lost"               // the gate may have given the number, and lost it
	LetterOpen   NoCoupon = "dead_letter"        // the ledger refused the coupon, and the dead letter is open
	LetterVoided NoCoupon = "dead_letter_voided" // the ledger refused the coupon, and an operator voided it
	NotThere     NoCoupon = "not_recorded"       // the ledger does not have the number yet: see Awaited
)

// Awaited reports whether the coupon of a number that is NotThere may be on its way to the ledger: the campaign's gate has given the number, or does
// not say whether it has. counters is nil if this node has no remote gate.
func (h *Holding) Awaited(ctx context.Context, counters gate.Counters) bool {
	if counters == nil {
		return true // the gate is another node's
	}
	g, err := counters.State(ctx, h.Campaign)
	return err != nil || g.Gone || g.Unverified || g.Frozen || g.Epoch != h.Epoch || g.LastNumber >= h.Number
}

// ErrOtherSecret means that the codes of a campaign were made with another secret than this node has, or by an earlier firstcome, so the node
// cannot read them.
var ErrOtherSecret = errors.New("the campaign's codes were made with another secret than this node has, or by an earlier firstcome")

// ErrSearching means that the caller's context ended while it waited for another search in many campaigns.
var ErrSearching = fmt.Errorf("%w: another search for a code is running, and only one runs at a time", firstcome.ErrBusy)

// A codeIndex finds coupons by their codes. It remembers the campaigns whose codes this node can read. A code has a number in at most a few of them,
// so coupons need no index of codes.
type codeIndex struct {
	store *campaign.Store
	turn  chan struct{} // held during a search in many campaigns
	mu    sync.Mutex    // guards ids
	ids   []firstcome.CampaignID
}

func newCodeIndex(store *campaign.Store) *codeIndex {
	return &codeIndex{store: store, turn: make(chan struct{}, 1)}
}

// manyCampaigns is the most campaigns that a search tries beside other searches. This takes some 0.5 ms of a processor, and a few more if no campaign
// has the code, because the list of campaigns is then read again.
const manyCampaigns = 1000

// ByCode returns what became of the number that a code has: in one campaign or, if id is empty, in any campaign of this node's secret. ErrNoCoupon
// means that no coupon has the code, as far as the ledger knows. In one campaign, ErrOtherSecret and ErrNoCampaign are possible. Only one
// search in more than 1,000 campaigns runs at a time, and so does the first one of all: see ErrSearching.
func (rd *Reads) ByCode(ctx context.Context, id firstcome.CampaignID, code string) (found Holding, err error) {
	if id == "" {
		found, err = rd.codes.anywhere(ctx, code)
	} else {
		var number int64
		if number, err = rd.codes.numberWith(ctx, id, code); err == nil {
			found, err = rd.codes.holding(ctx, id, number, code)
		}
	}
	return found, sqldb.Wrap(err, "look for a code")
}

// numberWith returns the number that a code of a campaign has, or ErrNoCoupon.
func (x *codeIndex) numberWith(ctx context.Context, id firstcome.CampaignID, code string) (int64, error) {
	status, err := x.store.Status(ctx, id)
	switch {
	case err != nil:
		return 0, err
	case status.Secret != x.store.Fingerprint:
		return 0, ErrOtherSecret
	}
	number := x.store.Secret.NumberOf(id, code)
	if _, entry := status.Terms.Entry(number); number == 0 || entry > 0 { // of an imported code, our own finds nothing
		return 0, firstcome.ErrNoCoupon
	}
	return number, nil
}

// anywhere looks for a code in the campaigns that this node remembers, and then in those that were created since.
func (x *codeIndex) anywhere(ctx context.Context, code string) (Holding, error) {
	known := x.remembered()
	if known == nil || len(known) > manyCampaigns { // none is remembered: there may be many
		select {
		case x.turn <- struct{}{}:
			defer func() { <-x.turn }()
		case <-ctx.Done():
			return Holding{}, ErrSearching
		}
		known = x.remembered()
	}
	found, err := x.among(ctx, known, code)
	if !errors.Is(err, firstcome.ErrNoCoupon) {
		return found, err
	}
	all, unread, err := x.readable(ctx)
	if err != nil {
		return Holding{}, err
	}
	found, err = x.among(ctx, slices.DeleteFunc(all, func(id firstcome.CampaignID) bool {
		_, tried := slices.BinarySearch(known, id)
		return tried
	}), code)
	found.Unread = unread
	return found, err
}

// remembered returns the campaigns that this node remembers, in the order of their bytes.
func (x *codeIndex) remembered() []firstcome.CampaignID {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ids
}

// readable reads and remembers the campaigns whose codes this node can read, in the order of their bytes. unread is how many others there are.
func (x *codeIndex) readable(ctx context.Context) (ids []firstcome.CampaignID, unread int, err error) {
	rows, err := x.store.DB.Conclude.QueryContext(ctx, `SELECT id, secret FROM campaigns`)
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		var id firstcome.CampaignID
		var secret string
		err := take(&id, &secret)
		if secret == x.store.Fingerprint {
			ids = append(ids, id)
		} else {
			unread++
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	slices.Sort(ids)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ids = slices.Clone(ids)
	return ids, unread, nil
}

// among looks for a code in campaigns. A code may have a number in a campaign to which it does not belong, so a search goes on after a number that has
// no coupon.
func (x *codeIndex) among(ctx context.Context, ids []firstcome.CampaignID, code string) (Holding, error) {
	var without Holding // the first number that has no coupon, for a reason
	for _, id := range ids {
		if x.store.Secret.NumberOf(id, code) == 0 {
			continue
		}
		number, err := x.numberWith(ctx, id, code)
		if errors.Is(err, firstcome.ErrNoCoupon) || errors.Is(err, firstcome.ErrNoCampaign) { // a restored backup may not have a campaign that was remembered
			continue
		}
		if err != nil {
			return Holding{}, err
		}
		found, err := x.holding(ctx, id, number, code)
		switch {
		case errors.Is(err, firstcome.ErrNoCoupon):
		case err != nil || found.Why == "":
			return found, err
		case without.Number == 0:
			without = found
		}
	}
	if without.Number == 0 {
		return Holding{}, firstcome.ErrNoCoupon
	}
	return without, nil
}

// holding returns what became of a number, from one snapshot. ErrNoCoupon means that no coupon with it has the code.
func (x *codeIndex) holding(ctx context.Context, id firstcome.CampaignID, number int64, code string) (Holding, error) {
	found := Holding{Campaign: id, Number: number}
	err := x.store.DB.Conclude.AtOnce(ctx, func(s *sqldb.Snapshot) error {
		rows, err := s.QueryContext(ctx, `SELECT `+campaign.CouponColumns+` FROM coupons WHERE campaign_id = ? AND number = ?`, string(id), number)
		coupon, err := campaign.OnlyCoupon(rows, err)
		switch {
		case errors.Is(err, firstcome.ErrNoCoupon):
			return found.explain(ctx, s)
		case err == nil && coupon.Code != code:
			return firstcome.ErrNoCoupon
		}
		found.Coupon = coupon
		return err
	})
	return found, err
}

// explain sets why the number has no coupon. ErrNoCoupon means that it was never given.
func (h *Holding) explain(ctx context.Context, s *sqldb.Snapshot) error {
	var lost, open, voided, remote bool
	err := s.QueryRowContext(ctx, `SELECT
		EXISTS (SELECT 1 FROM lost l WHERE l.campaign_id = c.id AND l.number <= ? AND l.number + l.count > ?),
		EXISTS (SELECT 1 FROM dead_letters d WHERE d.campaign_id = c.id AND d.number = ? AND d.resolved_at IS NULL),
		EXISTS (SELECT 1 FROM dead_letters d WHERE d.campaign_id = c.id AND d.number = ? AND d.resolved_by = ?),
		c.gate <> ? AND c.drained_through < ?, c.epoch FROM campaigns c WHERE c.id = ?`,
		h.Number, h.Number, h.Number, h.Number, string(Voided), campaign.OwnGate, h.Number, string(h.Campaign)).Scan(&lost, &open, &voided, &remote, &h.Epoch)
	switch {
	case errors.Is(err, sql.ErrNoRows): // the campaign was remembered, and a restored backup does not have it
		return firstcome.ErrNoCoupon
	case err != nil:
		return err
	case open:
		h.Why = LetterOpen
	case voided:
		h.Why = LetterVoided
	case lost:
		h.Why = NumberLost
	case remote:
		h.Why = NotThere
	default:
		return firstcome.ErrNoCoupon
	}
	return nil
}
