package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/firstcome/firstcome"
)

// A Source is a ledger to audit. Its functions may read at different instants
// while the ledger is in use: Ledger calls Campaign first and Facts last, and
// holds against the counters what the facts said by then.
type Source struct {
	Campaign func(context.Context, firstcome.CampaignID) (Campaign, error)
	// Terms returns the terms as of a version of the campaign.
	Terms func(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error)
	// Coupons calls each with every coupon in number order, voided ones too.
	Coupons func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error
	// Facts calls each with every fact in position order. The coupon of a fact has no
	// user if the ledger has lost it.
	Facts func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Fact) error) error
	// Letters calls each with every dead letter that has a number, settled ones too,
	// and Lost with every range of lost numbers. Nil: there are none.
	Letters func(ctx context.Context, id firstcome.CampaignID, each func(Letter) error) error
	Lost    func(ctx context.Context, id firstcome.CampaignID, each func(Range) error) error
}

// A Campaign is a campaign with the counters of its row.
type Campaign struct {
	firstcome.Campaign
	InForce  int64
	Issued   int64
	Position int64 // of the last fact
	// Remote tells that another gate than the ledger decides: coupons reach the ledger
	// later, and not always in number order.
	Remote  bool
	Settled int64 // of a remote gate: every number up to it is a coupon, a dead letter or lost
	// Of a remote gate, which the ledger's changes reach later:
	Applied int64 // the last change that it has
	Epoch   int64
	Secret  string // fingerprint of the code secret
}

// A Report is what the audit of a campaign found.
type Report struct {
	Campaign firstcome.CampaignID `json:"campaign_id"`
	Coupons  int64                `json:"coupons"` // in the ledger, voided ones too
	InForce  int64                `json:"in_force"`
	Voided   int64                `json:"voided"`
	Facts    int64                `json:"facts"`
	Letters  int64                `json:"dead_letters,omitempty"` // open ones
	Lost     int64                `json:"lost,omitempty"`         // numbers
	Missing  int64                `json:"missing,omitempty"`      // numbers above what is settled, on their way to the ledger
	Breaches Breaches             `json:"breaches"`
}

// Ledger audits a campaign by its rows: P1, P3, P4, the counters, the facts and
// the identities, and the codes too if there is a secret. An error means that it
// could not be read; breaches are in the report. It keeps 16 bytes a coupon and
// the set of users in memory.
func Ledger(ctx context.Context, source Source, id firstcome.CampaignID, secret *firstcome.Secret) (Report, error) {
	campaign, err := source.Campaign(ctx, id)
	if err != nil {
		return Report{}, fmt.Errorf("audit %s: %w", id, err)
	}
	breaches := &Breaches{}
	terms := versions{terms: map[int64]firstcome.Terms{}, read: func(version int64) (firstcome.Terms, error) {
		return source.Terms(ctx, id, version)
	}}
	coupons := couponAudit{
		Breaches: breaches, id: id, secret: secret, terms: terms, remote: campaign.Remote, again: map[int64]int64{},
		holders: make(map[firstcome.UserID]held, campaign.InForce),
	}
	if err := source.Coupons(ctx, id, coupons.coupon); err != nil {
		return Report{}, fmt.Errorf("audit %s: %w", id, err)
	}
	numbers := numberAudit{Breaches: breaches, rows: coupons.rows, settled: campaign.Settled}
	if err := numbers.read(ctx, source, id); err != nil {
		return Report{}, fmt.Errorf("audit %s: %w", id, err)
	}
	// The quantity may have been raised since the campaign was read.
	now, err := source.Campaign(ctx, id)
	if err != nil {
		return Report{}, fmt.Errorf("audit %s: %w", id, err)
	}
	if most := max(campaign.Quantity, now.Quantity); coupons.inForce > most {
		breaches.add("P1", "%d coupons are in force, the quantity is %d", coupons.inForce, most)
	}
	numbers.end(campaign.Remote, now.Settled)
	coupons.holders = nil
	facts := factAudit{Breaches: breaches, campaign: campaign, terms: terms, rows: coupons.rows, again: coupons.again}
	if err := source.Facts(ctx, id, facts.fact); err != nil && !errors.Is(err, errLost) {
		return Report{}, fmt.Errorf("audit %s: %w", id, err)
	}
	facts.end()
	return Report{
		Campaign: id, Coupons: int64(len(coupons.rows)), InForce: coupons.inForce,
		Voided: int64(len(coupons.rows)) - coupons.inForce, Facts: facts.position,
		Letters: numbers.open, Lost: numbers.lost, Missing: numbers.missing, Breaches: *breaches,
	}, nil
}

// versions reads the terms of each version once.
type versions struct {
	terms map[int64]firstcome.Terms
	read  func(version int64) (firstcome.Terms, error)
}

func (v versions) at(version int64) (firstcome.Terms, error) {
	if terms, ok := v.terms[version]; ok {
		return terms, nil
	}
	terms, err := v.read(version)
	if err != nil {
		return terms, fmt.Errorf("the terms of version %d: %w", version, err)
	}
	v.terms[version] = terms
	return terms, nil
}
