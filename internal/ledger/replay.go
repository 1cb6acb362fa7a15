package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// openLetter returns an open dead letter. It locks the letter's campaign if the ledger has that campaign.
func (rc *Recorder) openLetter(t *sqldb.Tx, id int64) (DeadLetter, *recording, error) {
	read := func(locking string) (DeadLetter, error) {
		d, err := scanLetter(t.Row(`SELECT `+letterColumns+` FROM dead_letters WHERE id = ?`+locking, id).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			err = firstcome.ErrNoDeadLetter
		}
		return d, err
	}
	d, err := read("")
	if err != nil {
		return d, nil, err
	}
	r, err := rc.recordingOf(t, record.Batch{Campaign: d.Campaign})
	if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) {
		return d, nil, err
	}
	// Read the letter again, now that no other transaction can resolve it. If the letter has no campaign, this
	// locks the letter itself.
	if d, err = read(rc.db.Dialect.ForUpdate); err == nil && !d.ResolvedAt.IsZero() {
		err = firstcome.ErrResolvedLetter
	}
	return d, r, err
}

// errNothingIn means that a dead letter holds no coupon.
var errNothingIn = fmt.Errorf("%w: there is no coupon in it that could be recorded, it can only be voided", record.ErrRefused)

// Replay records the coupon of a dead letter, and so resolves the letter. If the ledger still refuses the
// coupon, Replay returns record.ErrRefused with the reason, and the letter stays open.
// firstcome.ErrNoDeadLetter and ErrResolvedLetter mean that there is no such open letter.
func (rc *Recorder) Replay(ctx context.Context, actor string, letter int64) error {
	err := rc.db.Update(context.WithoutCancel(ctx), func(t *sqldb.Tx) error { return rc.replay(t, actor, letter) })
	return sqldb.Wrap(err, "replay the dead letter %d", letter)
}

func (rc *Recorder) replay(t *sqldb.Tx, actor string, letter int64) error {
	d, r, err := rc.openLetter(t, letter)
	if err != nil {
		return err
	}
	if d.Number == 0 || r == nil {
		return errNothingIn
	}
	var s campaign.StoredCoupon
	if err := json.Unmarshal([]byte(d.Payload), &s); err != nil {
		return fmt.Errorf("%w: %w", errNothingIn, err)
	}
	if r.epochGiven = s.Epoch; s.Epoch == s.BuriedIn {
		r.epochGiven = r.Epoch // the coupon was buried in its own epoch, so its epoch was not why. A later epoch must not refuse it now
	}
	if r.given, err = inNumberOrder(d.Campaign, []firstcome.Coupon{s.Coupon()}); err != nil {
		return err
	}
	r.replay, r.look = true, true
	if _, err := r.do(); err != nil {
		return err
	}
	return resolveLetter(t, d, Replayed, actor, "", rc.store.DecidesAt(r.Row))
}

// VoidLetter resolves a dead letter permanently: its coupon will never be in the ledger. If the letter has a
// number of one of this node's campaigns, a numbered change returns the stock, as with Void.
// firstcome.ErrNoDeadLetter, ErrResolvedLetter and ErrPending mean that nothing was done.
func (rc *Recorder) VoidLetter(ctx context.Context, actor string, letter int64, reason string) error {
	err := rc.db.Update(context.WithoutCancel(ctx), func(t *sqldb.Tx) error { return rc.voidLetter(t, actor, letter, reason) })
	return sqldb.Wrap(err, "void the dead letter %d", letter)
}

func (rc *Recorder) voidLetter(t *sqldb.Tx, actor string, letter int64, reason string) error {
	d, r, err := rc.openLetter(t, letter)
	if err != nil {
		return err
	}
	if r == nil || d.Number == 0 || d.User == "" {
		now, err := rc.db.Now(t)
		if err != nil {
			return err
		}
		return resolveLetter(t, d, Voided, actor, reason, now)
	}
	if r.Pending() {
		return firstcome.ErrPending
	}
	if r.Burns {
		r.Quantity--
	}
	made, err := rc.store.AddChange(t, r.Row, firstcome.ChangeVoid, campaign.VoidPayload(d.Number, d.User, r.Burns))
	if err == nil && r.Burns {
		_, err = t.Change(`UPDATE campaigns SET quantity = ? WHERE id = ?`, campaign.QuantityColumn(r.Quantity), string(r.ID))
	}
	if err != nil {
		return err
	}
	return resolveLetter(t, d, Voided, actor, reason, made.At)
}

func resolveLetter(t *sqldb.Tx, d DeadLetter, by Resolution, actor, reason string, at time.Time) error {
	_, err := t.Change(`UPDATE dead_letters SET resolved_at = ?, resolved_by = ? WHERE id = ?`, at.UnixMicro(), string(by), d.ID)
	if err != nil {
		return err
	}
	action := map[Resolution]string{Replayed: "dead_letter.replay", Voided: "dead_letter.void"}[by]
	detail := map[string]any{"dead_letter": d.ID, "cause": d.Cause, "reason": reason}
	return campaign.AddLogJSON(t, at, actor, action, detail, campaign.Entry{Campaign: d.Campaign, User: d.User, Number: d.Number})
}
