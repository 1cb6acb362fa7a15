package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A Holding is what became of the number that a code has.
type Holding struct {
	Campaign firstcome.CampaignID
	Number   int64
	Coupon   firstcome.Coupon // zero if there is none
	Why      NoCoupon         // empty if there is a coupon
}

// NoCoupon is why a number has no coupon.
type NoCoupon string

// The reasons.
const (
	NumberLost   NoCoupon = "lost"               // the gate may have given the number, and lost it
	LetterOpen   NoCoupon = "dead_letter"        // the ledger refused the coupon, and an operator has not looked at it yet
	LetterVoided NoCoupon = "dead_letter_voided" // the ledger refused the coupon, and an operator voided it
	NotThere     NoCoupon = "not_recorded"       // the ledger does not have the number yet; only the gate knows whether it was given
)

// A codeIndex has the campaigns whose codes this node can read. The codes of a campaign follow from its id, so their numbers need no index.
type codeIndex struct {
	mu   sync.Mutex // guards ids
	ids  []firstcome.CampaignID
	turn chan struct{} // held during a search in many campaigns
}

// manyCampaigns is how many campaigns a search tries beside other searches. It takes some 0.5 ms of a processor.
const manyCampaigns = 1000

// ErrSearching means that the caller's context ended while it waited for another search in many campaigns.
var ErrSearching = fmt.Errorf("%w: another search by code is running, and only one runs at a time", firstcome.ErrBusy)

// ByCode returns what became of the number that a code has: in one campaign or, if id is empty, in any campaign of this node's secret. ErrNoCoupon
// means that no coupon has the code. ErrGateMismatch means that the campaign has another secret than this node. In more than 1,000 campaigns only one
// search runs at a time: see ErrSearching.
func (rd *Reads) ByCode(ctx context.Context, id firstcome.CampaignID, code string) (Holding, error) {
	found, err := rd.byCode(ctx, id, code)
	if err != nil && !errors.Is(err, firstcome.ErrNoCoupon) && !errors.Is(err, firstcome.ErrNoCampaign) {
		err = fmt.Errorf("look for a code: %w", err)
	}
	return found, err
}

func (rd *Reads) byCode(ctx context.Context, id firstcome.CampaignID, code string) (Holding, error) {
	if id != "" {
		numbers, err := rd.numberWith(ctx, id, code)
		if err == nil && len(numbers) == 0 {
			err = firstcome.ErrNoCoupon
		}
		if err != nil {
			return Holding{}, err
		}
		return rd.holding(ctx, id, numbers[0], code)
	}
	rd.codes.mu.Lock()
	known := rd.codes.ids
	rd.codes.mu.Unlock()
	found, err := rd.among(ctx, known, code)
	if !errors.Is(err, firstcome.ErrNoCoupon) {
		return found, err
	}
	all, err := rd.readable(ctx)
	if err != nil {
		return Holding{}, err
	}
	return rd.among(ctx, slices.DeleteFunc(slices.Clone(all), func(id firstcome.CampaignID) bool {
		_, tried := slices.BinarySearch(known, id)
		return tried
	}), code)
}

// readable reads the campaigns whose codes this node can read, in the order of their bytes, and remembers them.
func (rd *Reads) readable(ctx context.Context) ([]firstcome.CampaignID, error) {
	rows, err := rd.db.Conclude.QueryContext(ctx, `SELECT id FROM campaigns WHERE secret = ?`, rd.store.Fingerprint)
	all, err := sqldb.AllRows(rows, err, sqldb.One[firstcome.CampaignID])
	if err != nil {
		return nil, err
	}
	slices.Sort(all)
	rd.codes.mu.Lock()
	defer rd.codes.mu.Unlock()
	rd.codes.ids = all
	return all, nil
}

// among looks for a code in campaigns. A code may have a number in a campaign to which it does not belong, so a search goes on behind one that has
// no coupon.
func (rd *Reads) among(ctx context.Context, ids []firstcome.CampaignID, code string) (Holding, error) {
	if len(ids) > manyCampaigns {
		select {
		case rd.codes.turn <- struct{}{}:
			defer func() { <-rd.codes.turn }()
		case <-ctx.Done():
			return Holding{}, ErrSearching
		}
	}
	var without Holding // the first number that has no coupon, for a reason
	for _, id := range ids {
		number := rd.store.Secret.NumberOf(id, code)
		if number == 0 {
			continue
		}
		found, err := rd.holding(ctx, id, number, code)
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
func (rd *Reads) holding(ctx context.Context, id firstcome.CampaignID, number int64, code string) (found Holding, err error) {
	found = Holding{Campaign: id, Number: number}
	err = rd.db.Conclude.AtOnce(ctx, func(s *sqldb.Snapshot) error {
		rows, err := s.QueryContext(ctx, `SELECT `+campaign.CouponColumns+` FROM coupons WHERE campaign_id = ? AND number = ?`, string(id), number)
		coupon, err := campaign.OnlyCoupon(rows, err)
		switch {
		case errors.Is(err, firstcome.ErrNoCoupon):
			found.Why, err = whyNone(ctx, s, id, number)
			return err
		case err == nil && coupon.Code != code:
			return firstcome.ErrNoCoupon
		}
		found.Coupon = coupon
		return err
	})
	return found, err
}

// whyNone returns why a number has no coupon. ErrNoCoupon means that it was never given.
func whyNone(ctx context.Context, s *sqldb.Snapshot, id firstcome.CampaignID, number int64) (NoCoupon, error) {
	var lost, open, voided, perhaps bool
	err := s.QueryRowContext(ctx, `SELECT
		EXISTS (SELECT 1 FROM lost l WHERE l.campaign_id = c.id AND l.number <= ? AND l.number + l.count > ?),
		EXISTS (SELECT 1 FROM dead_letters d WHERE d.campaign_id = c.id AND d.number = ? AND d.resolved_at IS NULL),
		EXISTS (SELECT 1 FROM dead_letters d WHERE d.campaign_id = c.id AND d.number = ? AND d.resolved_by = 'voided'),
		c.gate <> 'ledger' AND c.drained_through < ? AND c.ceiling >= ? FROM campaigns c WHERE c.id = ?`,
		number, number, number, number, number, number, string(id)).Scan(&lost, &open, &voided, &perhaps)
	switch {
	case err != nil:
		return "", err
	case open:
		return LetterOpen, nil
	case voided:
		return LetterVoided, nil
	case lost:
		return NumberLost, nil
	case perhaps:
		return NotThere, nil
	}
	return "", firstcome.ErrNoCoupon
}
