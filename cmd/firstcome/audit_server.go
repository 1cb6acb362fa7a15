package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
)

// serverCampaigns returns the ids of all campaigns of a server.
func serverCampaigns(ctx context.Context, calls *client.Client) ([]firstcome.CampaignID, error) {
	all, err := client.All(func(after string) (client.List[client.Campaign], error) { return calls.Campaigns(ctx, after, maxPage) })
	ids := make([]firstcome.CampaignID, len(all))
	for n, c := range all {
		ids[n] = firstcome.CampaignID(c.ID)
	}
	return ids, err
}

// maxPage is how many items a server gives at once.
const maxPage = 500

// A remote is one campaign of a server, as an audit reads it, at the instant of a position: it ignores what came later. A
// coupon on the wire says neither under which version of the terms it was issued nor when it was voided; its facts do. So
// facts are read first, up to the end, and again whenever a coupon comes of which they did not tell yet.
type remote struct {
	calls *client.Client
	id    string

	at      *client.LedgerState // as it was read first
	last    int64               // position of the last fact that was read
	issued  map[int64]issueFact // by number
	voided  map[int64]voidFact  // by number
	missing int                 // facts without a coupon
	version int64               // under which the coupon before was issued
	over    bool                // facts do not tell of a coupon that came
	latest  time.Time           // when a coupon was issued
}

// An issueFact is the fact that a coupon was issued, under the terms of a version.
type issueFact struct{ position, version int64 }

// A voidFact is the fact that a coupon was voided.
type voidFact struct {
	position int64
	at       time.Time
}

func (r *remote) source() audit.Source {
	r.issued, r.voided, r.version = map[int64]issueFact{}, map[int64]voidFact{}, 1
	return audit.Source{
		Campaign: r.campaign, Changes: r.changes, Coupons: r.coupons, Line: r.line, Runs: r.runs, Letters: r.letters, Lost: r.lostNumbers,
	}
}

// A line may be told a second late by a node or by a cache, and by both. An audit waits three times as long.
const (
	staleWait  = 250 * time.Millisecond
	staleWaits = 24
)

// line returns what the server tells everybody of the line.
func (r *remote) line(ctx context.Context, _ firstcome.CampaignID) (v audit.LineView, err error) {
	shown, err := r.calls.Campaign(ctx, r.id)
	if err == nil && shown.GateState != "ok" {
		return v, audit.ErrNotTold
	}
	if err != nil {
		return v, err
	}
	told, err := r.calls.Line(ctx, r.id)
	for wait := 0; err == nil && told.ServerTime.Before(r.latest); wait++ { // a node, or a cache, repeats what it told
		if wait == staleWaits {
			return v, fmt.Errorf("the server tells of the line of %s as of %s, before its last coupon", r.id, told.ServerTime)
		}
		select {
		case <-ctx.Done():
			return v, ctx.Err()
		case <-time.After(staleWait):
		}
		told, err = r.calls.Line(ctx, r.id)
	}
	if err != nil {
		return v, err
	}
	v.Line = firstcome.Line{Generation: told.Generation, LastTicket: told.LastTicket, ServedThrough: told.Serving - 1, Waiting: told.Waiting}
	for _, e := range told.Ended {
		past := firstcome.Line{Generation: e.Generation, ServedThrough: e.LastTicketServed}
		v.Past = append(v.Past, audit.PastLine{Line: past, Reason: e.Reason, EndedAt: e.EndedAt.Time})
	}
	return v, nil
}

// ledgerGate is the gate of a campaign that the ledger decides.
const ledgerGate = "ledger"

func (r *remote) campaign(ctx context.Context, id firstcome.CampaignID) (audit.Campaign, error) {
	kept, err := r.calls.LedgerState(ctx, r.id)
	if err != nil {
		return audit.Campaign{}, err
	}
	if r.at == nil {
		r.at = &kept
	}
	read := audit.Campaign{
		InForce: kept.InForce, Issued: kept.Recorded, LastNumber: kept.LastNumber, Position: kept.Position,
		Remote: kept.Gate != ledgerGate, Drained: kept.DrainedThrough, Applied: kept.Applied, Epoch: kept.Epoch,
	}
	read.ID, read.Version = id, kept.Version
	return read, nil
}

// letters calls each with every dead letter.
func (r *remote) letters(ctx context.Context, _ firstcome.CampaignID, each func(audit.Letter)) error {
	all, err := client.All(func(after string) (client.List[client.DeadLetter], error) {
		return r.calls.DeadLetters(ctx, client.LetterFilter{Campaign: r.id, Resolved: true, Limit: maxPage, After: after})
	})
	for _, d := range all {
		each(letterOf(d))
	}
	return err
}

// lostNumbers calls each with every range of lost numbers.
func (r *remote) lostNumbers(_ context.Context, _ firstcome.CampaignID, each func(audit.Range)) error {
	for _, numbers := range r.at.Lost {
		each(audit.Range{First: numbers.First, Count: numbers.Count})
	}
	return nil
}

// changes calls each with every change.
func (r *remote) changes(ctx context.Context, id firstcome.CampaignID, each func(audit.Change)) error {
	for after := int64(0); after < r.at.Version; {
		page, err := r.calls.Changes(ctx, r.id, after, maxPage)
		if err != nil {
			return err
		}
		if len(page.Items) == 0 {
			return nil
		}
		for _, c := range page.Items {
			if after = c.Version; after > r.at.Version {
				break
			}
			each(changeOf(id, c))
		}
	}
	return nil
}

// coupons calls each with every coupon in number order.
func (r *remote) coupons(ctx context.Context, _ firstcome.CampaignID, each func(audit.Coupon)) error {
	if err := r.learn(ctx); err != nil {
		return err
	}
	return r.calls.Coupons(ctx, r.id, true, func(c client.Coupon) error {
		coupon, known := r.coupon(&c)
		if !known && !r.over {
			before := r.last
			if err := r.learn(ctx); err != nil {
				return err
			}
			coupon, _ = r.coupon(&c)
			r.over = r.last == before // the audit of the facts reports it
		}
		if coupon.Position <= r.at.Position {
			if r.latest.Before(coupon.IssuedAt) {
				r.latest = coupon.IssuedAt
			}
			each(coupon)
		}
		return nil
	})
}

// coupon returns a coupon with what the facts say of it, and whether they say everything. If they do not name the
// version of the terms, it is that of the coupon before.
func (r *remote) coupon(c *client.Coupon) (coupon audit.Coupon, known bool) {
	coupon.Coupon = firstcome.Coupon{
		Campaign: firstcome.CampaignID(c.CampaignID), Number: c.Number, User: firstcome.UserID(c.UserID),
		Code: c.Code, IssuedAt: c.IssuedAt.Time, Recorded: c.Recorded, Generation: given(c.Generation), Ticket: given(c.Ticket), Direct: c.Direct,
	}
	issue, known := r.issued[c.Number]
	if known {
		r.version = issue.version
	}
	coupon.TermsVersion, coupon.Position = r.version, issue.position
	if c.State == "voided" {
		void, told := r.voided[c.Number]
		switch {
		case !told:
			coupon.VoidedAt, known = coupon.IssuedAt, false // so that it counts as voided
		case void.position <= r.at.Position:
			coupon.VoidedAt = void.at
		}
	}
	return coupon, known
}

// maxMissing bounds how many facts without their coupons are read: a damaged position may
// be absurdly large.
const maxMissing = 1_000_000

// learn reads the facts that came since the last that was read.
func (r *remote) learn(ctx context.Context) error {
	return r.follow(ctx, r.last, func(f client.Fact) (over bool) {
		r.last = f.Position
		switch {
		case f.UserID == "": // its coupon is lost, and will not come
			r.missing++
			r.over = r.over || r.missing == maxMissing
		case f.Kind == string(firstcome.CouponVoided):
			r.voided[f.Number] = voidFact{f.Position, f.At.Time}
		default:
			r.issued[f.Number] = issueFact{f.Position, f.TermsVersion}
		}
		return r.missing == maxMissing
	})
}

// runs calls each with every fact, as a run of its own.
func (r *remote) runs(ctx context.Context, _ firstcome.CampaignID, each func(audit.Run)) error {
	missing := 0
	return r.follow(ctx, 0, func(f client.Fact) (over bool) {
		if f.UserID == "" {
			missing++
		}
		if f.Position > r.at.Position || missing == maxMissing {
			return true
		}
		each(audit.Run{Position: f.Position, Count: 1, Number: f.Number, Kind: firstcome.FactKind(f.Kind)})
		return false
	})
}

// follow calls each with the facts after a position, to the end or until the rest is not worth reading.
func (r *remote) follow(ctx context.Context, after int64, each func(client.Fact) (over bool)) error {
	for {
		page, err := r.calls.Facts(ctx, r.id, after, 0, maxPage)
		if err != nil {
			return err
		}
		for _, f := range page.Items {
			if each(f) {
				return nil
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
