package ledger

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Campaigns creates and changes campaigns, and knows which changes their gates lack.
type Campaigns struct {
	db    *sqldb.DB
	store *campaign.Store
}

// Create creates a campaign, as its change 1. ErrCampaignExists means that its id is taken. A joined FieldError means that its terms
// are not allowed.
func (cs *Campaigns) Create(ctx context.Context, actor string, id firstcome.CampaignID, terms firstcome.Terms) error {
	if err := terms.Check(); err != nil {
		return err
	}
	if cs.store.Gate == "" {
		return gate.ErrUnnamed
	}
	payload, err := campaign.EncodeTerms(terms, 0)
	if err != nil {
		return err
	}
	err = cs.db.Update(ctx, func(t *sqldb.Tx) error {
		var exists bool
		if err := t.Row(`SELECT EXISTS (SELECT 1 FROM campaigns WHERE id = ?)`, id).Scan(&exists); err != nil {
			return err
		}
		if exists {
			return firstcome.ErrCampaignExists
		}
		now, err := cs.db.Now(t)
		if err != nil {
			return err
		}
		if err := terms.CheckChange(firstcome.Terms{}, now); err != nil {
			return err
		}
		_, err = t.Change(`INSERT INTO campaigns
			(id, quantity, opens_at, closes_at, version, terms_version, applied, gate, epoch, ceiling, secret, decided_at, created_at, sold_out_at, pace, waitlist, burns, paused)
			VALUES (?, ?, ?, ?, 1, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			id, campaign.QuantityColumn(terms.Quantity), sqldb.Micros(terms.OpensAt), sqldb.Micros(terms.ClosesAt),
			cs.store.AppliedAt(1), cs.store.Gate, campaign.FirstEpoch, cs.store.Grant(&campaign.Row{Campaign: firstcome.Campaign{Terms: terms}}), cs.store.Fingerprint, now.UnixMicro(), now.UnixMicro(),
			sqldb.Micros(cs.store.SoldOutAt(campaign.Row{}, terms, now)), campaign.PaceColumn(terms.Pace), terms.Waitlist,
			terms.HasImported(), terms.HasImported()) // it begins paused, until its codes are imported
		if err != nil {
			return err
		}
		if err := campaign.InsertChange(t, id, 1, firstcome.ChangeTerms, payload, now); err != nil {
			return err
		}
		return campaign.AddLog(t, now, actor, "campaign.create", campaign.Entry{Campaign: id, Detail: campaign.LogDetail(firstcome.ChangeTerms, "", payload)})
	})
	return sqldb.Wrap(err, "create the campaign %s", id)
}

// SetTerms calls edit to change a campaign's terms, maybe more than once. It returns the new version, or 0 if edit changed nothing.
// If version is not 0 and the campaign has a different version, the error is ErrStale. ErrBelowInForce, ErrPrizesFixed and ErrClosed
// mean that the change is not allowed. ErrPending means that an earlier change must reach the gate first.
//
// With a remote gate, terms that lower the quantity or move prizes are only proposed. They take effect when Applied notes that the gate
// has them. The gate may refuse them, because it may have more coupons in force, or have given a number, that the ledger does not know.
func (cs *Campaigns) SetTerms(ctx context.Context, actor string, id firstcome.CampaignID, version int64, edit func(*firstcome.Terms)) (made int64, err error) {
	err = cs.store.Change(ctx, id, func(t *sqldb.Tx, s campaign.Row) (err error) {
		made, err = cs.setTerms(t, s, actor, version, edit)
		return err
	})
	return made, sqldb.Wrap(err, "change the terms of %s", id)
}

// setTerms does the work of SetTerms in its transaction.
func (cs *Campaigns) setTerms(t *sqldb.Tx, s campaign.Row, actor string, version int64, edit func(*firstcome.Terms)) (int64, error) {
	if version != 0 && version != s.Version {
		return 0, firstcome.ErrStale
	}
	if s.Over() {
		return 0, firstcome.ErrClosed
	}
	was, before, err := campaign.TermsInForce(t, s)
	if err != nil {
		return 0, err
	}
	terms := was
	edit(&terms)
	terms.Skips, terms.Burnt = was.Skips, was.Burnt
	if was.Log != nil {
		terms.Log = was.Log // edit must not move the log
	}
	if err := terms.CheckChange(was, cs.store.DecidesAt(s)); err != nil {
		return 0, err
	}
	if terms.Quantity > was.Quantity || terms.MovesPrizes(was) {
		if err := cs.store.CodesMissing(t.Query, s.ID, &terms); err != nil {
			return 0, err
		}
	}
	if terms.Quantity < s.InForce {
		return 0, fmt.Errorf("%w: %d are in force", firstcome.ErrBelowInForce, s.InForce)
	}
	beforeNumber := int64(0)
	if terms.MovesPrizes(was) {
		if beforeNumber = terms.NumberOf(1); max(s.LastNumber, s.DrainedThrough) >= beforeNumber {
			return 0, firstcome.ErrPrizesFixed
		}
	}
	payload, err := campaign.EncodeTerms(terms, beforeNumber)
	if err != nil {
		return 0, err
	}
	if same, err := campaign.EncodeTerms(was, 0); err != nil || payload == same {
		return 0, err
	}
	s.QuarantineReturned(terms, cs.store.DecidesAt(s))
	raised := s
	raised.Quantity = max(s.Quantity, terms.Quantity)
	made, err := cs.store.AddChange(t, raised, firstcome.ChangeTerms, payload)
	if err != nil {
		return 0, err
	}
	if proposed := cs.store.Remote() && (terms.Quantity < s.Quantity || beforeNumber > 0); !proposed {
		if err := campaign.PutTerms(t, s.ID, terms, made.Version, cs.store.SoldOutAt(s, terms, made.At)); err != nil {
			return 0, err
		}
	}
	after := s
	after.Terms = terms
	if err := cs.store.ChangeLine(t, s, after, made.At); err != nil {
		return 0, err
	}
	return made.Version, campaign.AddLog(t, made.At, actor, "campaign.update", campaign.Entry{Campaign: s.ID, Detail: campaign.LogDetail(firstcome.ChangeTerms, before, payload)})
}

// MayIssue returns firstcome.ErrCodesMissing if a campaign lacks imported codes, so that nobody may be issued a coupon.
func (cs *Campaigns) MayIssue(ctx context.Context, id firstcome.CampaignID) error {
	s, err := cs.store.Campaign(ctx, id)
	if err != nil || !s.Burns {
		return err
	}
	return cs.store.CodesMissing(func(query string, args ...any) (*sql.Rows, error) {
		return cs.db.Conclude.QueryContext(ctx, query, args...)
	}, id, &s.Terms)
}

// ChangeState pauses, resumes or closes a campaign, and returns the new version. Doing so again changes nothing and returns 0. For a closed
// campaign, pause and resume return ErrClosed. ErrPending means that an earlier change must reach the gate first. If from is not 0
// and the campaign has a different version, the error is ErrStale. A campaign whose gate is another Redis can also be closed, even if
// that Redis is gone. If it returns, it gets the change.
func (cs *Campaigns) ChangeState(ctx context.Context, actor string, id firstcome.CampaignID, from int64, to firstcome.ChangeKind) (version int64, err error) {
	change := cs.store.Change
	if to == firstcome.ChangeClose {
		change = cs.store.ChangeAnywhere
	}
	err = change(ctx, id, func(t *sqldb.Tx, s campaign.Row) error {
		version = 0
		if from != 0 && from != s.Version {
			return firstcome.ErrStale
		}
		if s.Over() && to != firstcome.ChangeClose {
			return firstcome.ErrClosed
		}
		paused, closed := to == firstcome.ChangePause || to == firstcome.ChangeClose && s.Paused, s.Closed || to == firstcome.ChangeClose
		if paused == s.Paused && closed == s.Closed {
			return nil
		}
		payload := campaign.Nothing
		if to == firstcome.ChangeResume {
			if payload, err = cs.store.NoteCodes(t, s); err != nil {
				return err
			}
		}
		made, err := cs.store.AddChange(t, s, to, payload)
		if err != nil {
			return err
		}
		version = made.Version
		if closed && !s.Closed {
			s.ClosedAt = made.At
		}
		_, err = t.Change(`UPDATE campaigns SET paused = ?, closed = ?, closed_at = ? WHERE id = ?`, paused, closed, sqldb.Micros(s.ClosedAt), string(id))
		if err != nil {
			return err
		}
		after := s
		after.Paused, after.Closed = paused, closed
		if err := cs.store.ChangeLine(t, s, after, made.At); err != nil {
			return err
		}
		return campaign.AddLog(t, made.At, actor, "campaign."+string(to), campaign.Entry{Campaign: id, Detail: campaign.LogDetail(to, "", campaign.Nothing)})
	})
	return version, sqldb.Wrap(err, "%s the campaign %s", to, id)
}
