package epoch

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// FinishRebuild ends the campaign's epoch. Every number that its gate may have assigned is lost, unless it is a
// coupon or a dead letter. FinishRebuild also concludes a change that has not reached the gate, as the gate
// would have. It returns the state in which the gate begins the next epoch. recovery.ErrMoved means that the
// ledger has changed since its state was loaded. recovery.ErrSuperseded means that another attempt has begun.
// gate.ErrRetired means that the campaign is retired. After these errors nothing is written.
func (e *Epochs) FinishRebuild(ctx context.Context, r recovery.Rebuild, loaded recovery.Loaded, frozen recovery.Frozen) (fill recovery.Refill, err error) {
	err = e.store.Locked(ctx, r.Campaign, func(t *sqldb.Tx, s campaign.Row) error {
		if s.Attempt != r.Attempt || s.RebuildingAt.IsZero() {
			return recovery.ErrSuperseded
		}
		if !s.RetiredAt.IsZero() {
			return gate.ErrRetired
		}
		var now recovery.Mark
		err := t.Row(markQuery, string(s.ID)).Scan(fieldsOf(&now)...)
		now.SoldOutAt = loaded.SoldOutAt // follows from the coupons and changes
		if err == nil && now != loaded.Mark {
			err = recovery.ErrMoved
		}
		if err == nil {
			err = e.store.CheckTopics(t, r.Campaign) // other nodes may have begun to relay since BeginRebuild
		}
		if err == nil {
			err = e.concludeRebuilt(t, &s, 0)
		}
		if err == nil {
			fill, err = e.nextEpoch(t, s, r.Actor, frozen, loaded)
			fill.SoldOutAt = loaded.SoldOutAt
		}
		return err
	})
	return fill, sqldb.Wrap(err, "rebuild the gate of %s", r.Campaign)
}

// concludeRebuilt concludes the change that has not reached the gate, if there is one. It refuses only terms
// whose quantity is below the coupons in force, as the ledger or the gate counts them.
func (e *Epochs) concludeRebuilt(t *sqldb.Tx, s *campaign.Row, atGate int64) error {
	if !s.Pending() {
		return nil
	}
	var kind firstcome.ChangeKind
	var payload string
	err := t.Row(`SELECT kind, payload FROM changes WHERE campaign_id = ? AND version = ?`, string(s.ID), s.Version).Scan(&kind, &payload)
	if err != nil {
		return err
	}
	refused := false
	if kind == firstcome.ChangeTerms && s.Version > s.TermsVersion {
		terms, err := campaign.DecodeTerms(payload)
		if err != nil {
			return err
		}
		var letters int64
		if err := t.Row(`SELECT `+openLetters+` FROM campaigns WHERE id = ?`, string(s.ID)).Scan(&letters); err != nil {
			return err
		}
		refused = terms.Quantity < max(s.InForce+letters, atGate)
	}
	if err := campaign.ConcludeChange(t, *s, s.Version, refused); err != nil {
		return err
	}
	concluded, err := e.store.RowToChange(t, s.ID)
	*s = concluded
	return err
}

// A storedRebuild is the JSON of a rebuild in the table changes.
type storedRebuild struct {
	Epoch   int64 `json:"epoch"`
	Through int64 `json:"through"` // the highest number that the gate may have assigned
	Lost    int64 `json:"lost"`
	// Carried is how many users in line kept their places. At least LostPlaces users did not.
	Carried    int64 `json:"carried,omitempty"`
	LostPlaces int64 `json:"lost_places,omitempty"`
	// Log is where the line is logged, and where the epoch begins in that log, or -1 if unknown. If Anew is
	// true, earlier entries of the log no longer count.
	Log  *campaign.StoredLog `json:"line_log,omitempty"`
	Anew bool                `json:"logged_anew,omitempty"`
}

// nextEpoch writes the lost numbers, the change, the line and the campaign's row.
func (e *Epochs) nextEpoch(t *sqldb.Tx, s campaign.Row, actor string, frozen recovery.Frozen, loaded recovery.Loaded) (fill recovery.Refill, err error) {
	ended := max(s.Ceiling, s.LastNumber, s.DrainedThrough)
	if frozen.Through > 0 {
		ended = max(frozen.Through, s.LastNumber, s.DrainedThrough)
	}
	next := max(s.Epoch, loaded.LogEpoch) + 1
	lost, err := loseNumbers(t, s, ended, next)
	if err != nil {
		return fill, err
	}
	s.Epoch, s.DrainedThrough, s.Ceiling = next, ended, ended
	if s.DecidedAt.Before(frozen.DecidedAt) {
		s.DecidedAt = frozen.DecidedAt
	}
	if frozen.Line.Later(s.Line) {
		s.Line = frozen.Line
	}
	s.Line.Due = frozen.Line.Due
	carried := loaded.Carried
	rebuilt := storedRebuild{s.Epoch, ended, lost, carried.People, max(0, s.Line.Waiting-carried.People-carried.LeftWithCoupon), (*campaign.StoredLog)(loaded.Log), loaded.Anew}
	made, err := e.store.AddChange(t, s, firstcome.ChangeRebuild, campaign.JSON(rebuilt))
	if err != nil {
		return fill, err
	}
	ceiling := e.store.Grant(&s)
	_, err = t.Change(`UPDATE campaigns SET epoch = ?, drained_through = ?, applied = ?, rebuilding_at = NULL WHERE id = ?`,
		s.Epoch, ended, made.Version, string(s.ID))
	if err == nil {
		fill.Past, err = carryLine(t, &s, carried, made.At)
	}
	if err == nil {
		err = campaign.AddLog(t, made.At, actor, "campaign.rebuild", campaign.Entry{Campaign: s.ID, Detail: campaign.LogDetail(firstcome.ChangeRebuild, "", campaign.JSON(rebuilt))})
	}
	if err == nil {
		s.OpenedAt, err = firstIssue(t, s)
	}
	s.Version, s.Log = made.Version, loaded.Log
	fill = recovery.Refill{
		Campaign: s.Campaign, TermsVersion: s.TermsVersion, Epoch: s.Epoch, LastNumber: ended, Ceiling: ceiling,
		Issued: s.Issued, DecidedAt: made.At, Line: s.Line, Past: fill.Past, Lost: lost, LostPlaces: rebuilt.LostPlaces,
	}
	return fill, err
}

// firstIssue returns when the first claim got a coupon, or the zero time if none did. It skips direct issues,
// because they may precede the opening.
func firstIssue(t *sqldb.Tx, s campaign.Row) (at time.Time, err error) {
	err = t.Row(`SELECT issued_at FROM coupons WHERE campaign_id = ? AND NOT direct ORDER BY number LIMIT 1`, string(s.ID)).Scan(sqldb.Time(&at))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return at, err
}
