package ledger

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

func (b *Tables) changes(ctx context.Context, id firstcome.CampaignID, each func(audit.Change)) error {
	return every(ctx, b, "the changes", each, func(take sqldb.Scan) (audit.Change, error) {
		c := audit.Change{Change: firstcome.Change{Campaign: id}}
		var payload string
		if err := take(&c.Version, &c.Kind, &payload, sqldb.Time(&c.At), &c.Refused, campaign.Quantity(&c.Quantity), sqldb.Time(&c.OpensAt), sqldb.Time(&c.ClosesAt), &c.Skipped); err != nil {
			return c, err
		}
		c.Wrong, c.Payload = campaign.DecodeChange(&c.Change, payload, 0), payload
		switch c.Kind {
		case firstcome.ChangeResume: // it notes the lists of imported codes
			var lists campaign.NotedLists
			if json.Unmarshal([]byte(payload), &lists) != nil || payload != campaign.JSON(lists) {
				c.Wrong = errResume
			}
		case firstcome.ChangePause, firstcome.ChangeClose:
			if payload != campaign.Nothing {
				c.Wrong = errKind
			}
		case firstcome.ChangeRebuild:
			c.Wrong = json.Unmarshal([]byte(payload), &c.Rebuilt)
		case firstcome.ChangeReconcile:
			var r struct{ Behind int64 }
			if c.Wrong == nil {
				c.Wrong = json.Unmarshal([]byte(payload), &r)
			}
			c.Behind = r.Behind
		}
		return c, nil
	}, `SELECT version, kind, payload, changed_at, refused, quantity, opens_at, closes_at, skipped FROM changes WHERE campaign_id = ? ORDER BY version`, string(id))
}

// ofNone selects rows whose campaign does not exist.
const ofNone = `campaign_id IS NULL OR NOT EXISTS (SELECT 1 FROM campaigns WHERE campaigns.id = campaign_id)`

func (b *Tables) letters(ctx context.Context, id firstcome.CampaignID, each func(audit.Letter)) error {
	return b.lettersWhere(ctx, each, `campaign_id = ?`, string(id))
}

func (b *Tables) otherLetters(ctx context.Context, each func(audit.Letter)) error {
	return b.lettersWhere(ctx, each, ofNone)
}

func (b *Tables) lettersWhere(ctx context.Context, each func(audit.Letter), where string, args ...any) error {
	return every(ctx, b, "the dead letters", each, func(take sqldb.Scan) (audit.Letter, error) {
		d, err := scanLetter(take)
		var s campaign.StoredCoupon
		_ = json.Unmarshal([]byte(d.Payload), &s) // an unreadable entry has no ticket
		return audit.Letter{
			Generation: s.Generation, Ticket: s.Ticket,
			ID: d.ID, Number: d.Number, User: d.User, Open: d.ResolvedAt.IsZero(), Voided: d.ResolvedBy == Voided,
			Wrong: d.contradiction(),
		}, err
	}, `SELECT `+letterColumns+` FROM dead_letters WHERE `+where+` ORDER BY dead_letters.id`, args...)
}

// contradiction describes how the columns of a dead letter contradict each other. It is empty if they are consistent.
func (d *DeadLetter) contradiction() string {
	switch {
	case d.ResolvedAt.IsZero() != (d.ResolvedBy == ""):
		return "it has only one of resolved_at and resolved_by"
	case strings.HasPrefix(d.Source, couponSource):
		return d.ofCoupon()
	case d.Number != 0 || d.User != "":
		return "it has a number or a user, but its source is not a coupon"
	}
	return ""
}

// ofCoupon does the work of contradiction for a coupon's dead letter. It compares no payload or user that was shortened or changed to
// fit its column.
func (d *DeadLetter) ofCoupon() string {
	var s campaign.StoredCoupon
	if err := json.Unmarshal([]byte(d.Payload), &s); err != nil {
		if len(d.Payload) > maxPayload-utf8.UTFMax {
			return ""
		}
		return "its payload is not a coupon"
	}
	number := int64(0)
	if s.Campaign == d.Campaign && s.BuriedIn > 0 {
		number = max(s.Number, 0)
	}
	changed := strings.ContainsRune(string(s.User)+s.Code+string(s.Campaign), utf8.RuneError)
	switch {
	case d.Number != number:
		return "its payload has another number or campaign"
	case !changed && string(d.User) != storable(string(s.User), firstcome.MaxUserID):
		return "its payload has another user"
	case !changed && letterSource(s.Coupon()) != d.Source:
		return "its source does not match its payload"
	}
	return ""
}
