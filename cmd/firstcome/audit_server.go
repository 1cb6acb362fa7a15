package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
)

// serverCampaigns returns the ids of all campaigns of a server.
func serverCampaigns(ctx context.Context, calls *client.Client) ([]firstcome.CampaignID, error) {
	var ids []firstcome.CampaignID
	for after := ""; ; {
		page, err := calls.Campaigns(ctx, after, maxPage)
		if err != nil {
			return nil, err
		}
		for _, c := range page.Items {
			ids = append(ids, firstcome.CampaignID(c.ID))
		}
		if page.Next == nil {
			return ids, nil
		}
		after = *page.Next
	}
}

// maxPage is how many items a server gives at once.
const maxPage = 500

// A remote is one campaign of a server, as an audit reads it. A coupon on the wire
// says neither under which version of the terms it was issued nor when it was
// voided; its facts do. So facts are read first, up to the end, and again whenever
// a coupon comes of which they did not tell yet.
type remote struct {
	calls *client.Client
	id    string
	read  *atomic.Int64 // coupons and facts

	changes []client.Change // of terms, in the order of their versions
	version int64           // of the last change that was read

	position int64               // of the last fact that was read
	issued   []span              // sorted by their numbers, unless unsorted
	unsorted bool                // the last span is before another
	voided   map[int64]time.Time // numbers, with when
	over     bool                // facts do not tell of a coupon that came
	lost     int                 // facts without a coupon
}

// A span is of numbers that were issued under the terms of one version.
type span struct{ first, last, version int64 }

func (r *remote) source() audit.Source {
	r.voided = map[int64]time.Time{}
	return audit.Source{
		Campaign: r.campaign, Terms: r.terms, Coupons: r.coupons, Facts: r.facts, Letters: r.letters, Lost: r.lostNumbers,
	}
}

// ledgerGate is the gate of a campaign that the ledger decides.
const ledgerGate = "ledger"

func (r *remote) campaign(ctx context.Context, _ firstcome.CampaignID) (audit.Campaign, error) {
	c, err := r.calls.Campaign(ctx, r.id)
	if err != nil {
		return audit.Campaign{}, err
	}
	kept, err := r.calls.LedgerState(ctx, r.id)
	if err != nil {
		return audit.Campaign{}, err
	}
	read := audit.Campaign{
		InForce: kept.InForce, Issued: kept.Recorded, Position: kept.Position,
		Remote: kept.Gate != ledgerGate, Settled: kept.Settled, Applied: kept.Applied, Epoch: kept.Epoch,
	}
	read.ID, read.Version, read.CreatedAt = firstcome.CampaignID(c.ID), c.Version, c.CreatedAt.Time
	read.Terms = termsOf(client.Terms{Name: c.Name, Quantity: c.Quantity, OpensAt: c.OpensAt, ClosesAt: c.ClosesAt, Answer: c.Answer, Coupon: c.Coupon})
	return read, nil
}

// letters calls each with every dead letter that has a number.
func (r *remote) letters(ctx context.Context, _ firstcome.CampaignID, each func(audit.Letter) error) error {
	filter := client.LetterFilter{Campaign: r.id, Settled: true, Limit: maxPage}
	for {
		page, err := r.calls.DeadLetters(ctx, filter)
		if err != nil {
			return err
		}
		for _, d := range page.Items {
			if d.Number == nil {
				continue
			}
			letter := audit.Letter{Number: *d.Number, Open: d.SettledAt == nil}
			if d.UserID != nil {
				letter.User = firstcome.UserID(*d.UserID)
			}
			if err := each(letter); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		filter.After = *page.Next
	}
}

// lostNumbers calls each with every range of lost numbers.
func (r *remote) lostNumbers(ctx context.Context, _ firstcome.CampaignID, each func(audit.Range) error) error {
	kept, err := r.calls.LedgerState(ctx, r.id)
	if err != nil {
		return err
	}
	for _, numbers := range kept.Lost {
		if err := each(audit.Range(numbers)); err != nil {
			return err
		}
	}
	return nil
}

// terms returns the terms as of a version.
func (r *remote) terms(ctx context.Context, _ firstcome.CampaignID, version int64) (firstcome.Terms, error) {
	for r.version < version {
		page, err := r.calls.Changes(ctx, r.id, r.version, maxPage)
		if err != nil {
			return firstcome.Terms{}, err
		}
		if len(page.Items) == 0 {
			break
		}
		for _, c := range page.Items {
			r.version = c.Version
			if c.Terms != nil && !c.Refused {
				r.changes = append(r.changes, c)
			}
		}
	}
	for _, c := range slices.Backward(r.changes) {
		if c.Version <= version {
			return termsOf(*c.Terms), nil
		}
	}
	return firstcome.Terms{}, fmt.Errorf("no change of %s holds the terms of its version %d", r.id, version)
}

// termsOf returns terms on the wire as the rule has them.
func termsOf(t client.Terms) firstcome.Terms {
	terms := firstcome.Terms{Name: t.Name, Quantity: firstcome.Unlimited, Answer: firstcome.AnswerWhen(t.Answer), Benefit: t.Coupon.Benefit}
	if t.Quantity != nil {
		terms.Quantity = *t.Quantity
	}
	for into, at := range map[*time.Time]*client.Time{&terms.OpensAt: t.OpensAt, &terms.ClosesAt: t.ClosesAt, &terms.ValidUntil: t.Coupon.ValidUntil} {
		if at != nil {
			*into = at.Time
		}
	}
	if t.Coupon.ValidFor != nil {
		terms.ValidFor = time.Duration(*t.Coupon.ValidFor)
	}
	return terms
}

// coupons calls each with every coupon in number order.
func (r *remote) coupons(ctx context.Context, _ firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	if err := r.learn(ctx); err != nil {
		return err
	}
	return r.calls.Coupons(ctx, r.id, true, func(c client.Coupon) error {
		r.read.Add(1)
		coupon, known := r.coupon(&c)
		if !known && !r.over {
			before := r.position
			if err := r.learn(ctx); err != nil {
				return err
			}
			coupon, _ = r.coupon(&c)
			r.over = r.position == before // the audit of the facts reports it
		}
		return each(coupon)
	})
}

// coupon returns a coupon with what the facts say of it, and whether they told all.
func (r *remote) coupon(c *client.Coupon) (coupon firstcome.Coupon, known bool) {
	coupon = firstcome.Coupon{
		Campaign: firstcome.CampaignID(c.CampaignID), Number: c.Number, User: firstcome.UserID(c.UserID),
		Code: c.Code, IssuedAt: c.IssuedAt.Time, Recorded: c.Recorded,
	}
	coupon.TermsVersion, known = r.versionOf(c.Number)
	if c.State == "voided" {
		at, told := r.voided[c.Number]
		if !told {
			at = coupon.IssuedAt // so that it counts as voided
		}
		coupon.VoidedAt, known = at, known && told
	}
	return coupon, known
}

// versionOf returns the version under whose terms a number was issued. If the facts
// do not say, it is that of the number before.
func (r *remote) versionOf(number int64) (version int64, known bool) {
	if r.unsorted {
		slices.SortFunc(r.issued, func(x, y span) int { return cmp.Compare(x.first, y.first) })
		r.unsorted = false
	}
	n, ok := slices.BinarySearchFunc(r.issued, number, func(s span, number int64) int { return cmp.Compare(s.first, number) })
	if !ok {
		n--
	}
	if n < 0 {
		return 1, false
	}
	return r.issued[n].version, number <= r.issued[n].last
}

// maxLost is how many facts without their coupons are read: a position that is out
// of all reason has no end.
const maxLost = 1_000_000

// errOver says that the rest of the facts is not worth reading.
var errOver = errors.New("the facts have no coupons any more")

// learn reads the facts that came since the last that was read.
func (r *remote) learn(ctx context.Context) error {
	err := r.follow(ctx, r.position, func(f client.Fact) error {
		r.position = f.Position
		switch last := len(r.issued) - 1; {
		case f.UserID == "": // its coupon is lost, and will not come
			if r.lost++; r.lost == maxLost {
				r.over = true
				return errOver
			}
		case f.Kind == string(firstcome.CouponVoided):
			r.voided[f.Number] = f.At.Time
		case last >= 0 && r.issued[last].last+1 == f.Number && r.issued[last].version == f.TermsVersion:
			r.issued[last].last = f.Number
		default:
			r.unsorted = r.unsorted || last >= 0 && r.issued[last].first > f.Number
			r.issued = append(r.issued, span{f.Number, f.Number, f.TermsVersion})
		}
		return nil
	})
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// facts calls each with every fact.
func (r *remote) facts(ctx context.Context, _ firstcome.CampaignID, each func(firstcome.Fact) error) error {
	return r.follow(ctx, 0, func(f client.Fact) error {
		r.read.Add(1)
		return each(firstcome.Fact{Position: f.Position, Kind: firstcome.FactKind(f.Kind), Coupon: firstcome.Coupon{
			Campaign: firstcome.CampaignID(f.CampaignID), Number: f.Number, User: firstcome.UserID(f.UserID),
			Code: f.Code, TermsVersion: f.TermsVersion,
		}})
	})
}

// follow calls each with the facts behind a position, to the end.
func (r *remote) follow(ctx context.Context, after int64, each func(client.Fact) error) error {
	for {
		page, err := r.calls.Facts(ctx, r.id, after, 0, maxPage)
		if err != nil {
			return err
		}
		for _, f := range page.Items {
			if err := each(f); err != nil {
				return err
			}
		}
		if len(page.Items) == 0 || page.Next == nil {
			return nil
		}
		if after, err = strconv.ParseInt(*page.Next, 10, 64); err != nil {
			return fmt.Errorf("the server's next position: %w", err)
		}
	}
}
