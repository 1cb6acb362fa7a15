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
			err = e.concludeRebuilt(t, &s, atGate{version: frozen.Version, termsVersion: frozen.TermsVersion, lastNumber: frozen.LastNumber})
		}
		if err == nil {
			fill, err = e.nextEpoch(t, s, r.Actor, frozen, loaded)
			fill.SoldOutAt = loaded.SoldOutAt
		}
		return err
	})
	return fill, sqldb.Wrap(err, "rebuild the gate of %s", r.Campaign)
}

// An atGate is what a frozen gate knows of a campaign. It is zero if the gate knows nothing.
type atGate struct{ version, termsVersion, inForce, lastNumber int64 }

// concludeRebuilt concludes the change that the ledger has not noted as applied, if there is one.
func (e *Epochs) concludeRebuilt(t *sqldb.Tx, s *campaign.Row, g atGate) error {
	if !s.Pending() {
		return nil
	}
	change, is, err := proposed(t, s)
	refused := false
	if err == nil && is {
		refused, err = refuses(t, s, g, change)
	}
	if err == nil {
		err = campaign.ConcludeChange(t, *s, s.Version, refused)
	}
	if err != nil {
		return err
	}
	concluded, err := e.store.RowToChange(t, s.ID)
	*s = concluded
	return err
}

// proposed returns the pending change of a campaign, and whether it has terms that the gate may refuse.
func proposed(t *sqldb.Tx, s *campaign.Row) (change firstcome.Change, is bool, err error) {
	change.Version = s.Version
	var payload string
	err = t.Row(`SELECT kind, payload FROM changes WHERE campaign_id = ? AND version = ?`, string(s.ID), s.Version).Scan(&change.Kind, &payload)
	if is = err == nil && change.Kind == firstcome.ChangeTerms && s.Version > s.TermsVersion; is {
		err = campaign.DecodeChange(&change, payload, 0)
	}
	return change, is, err
}

// refuses reports whether the gate refused proposed terms, or would have. If it gave coupons under them, it had taken them. Otherwise it
// refuses a quantity below the coupons in force, and prizes that move after a number was given, as the ledger or the gate counts them.
func refuses(t *sqldb.Tx, s *campaign.Row, g atGate, change firstcome.Change) (bool, error) {
	issuedUnder, err := lastTermsVersion(t, s.ID)
	if err != nil {
		return false, err
	}
	if max(issuedUnder, g.termsVersion) >= change.Version {
		return false, nil
	}
	if g.version >= change.Version {
		return true, nil
	}
	var letters int64
	if err := t.Row(`SELECT `+openLetters+` FROM campaigns WHERE id = ?`, string(s.ID)).Scan(&letters); err != nil {
		return false, err
	}
	return change.Terms.Quantity < max(s.InForce+letters, g.inForce) || change.Before > 0 && lastGiven(s, g.lastNumber) >= change.Before, nil
}

// lastGiven returns the last number of a campaign that was given, as far as the ledger and the gate know.
func lastGiven(s *campaign.Row, atGate int64) int64 {
	return max(s.LastNumber, s.DrainedThrough, atGate)
}

// lastTermsVersion returns the version of the terms of the coupon with a campaign's highest number, or 0 if there is no coupon. No
// earlier coupon has later terms.
func lastTermsVersion(t *sqldb.Tx, id firstcome.CampaignID) (version int64, err error) {
	err = t.Row(`SELECT terms_version FROM coupons WHERE campaign_id = ? ORDER BY number DESC LIMIT 1`, string(id)).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return version, err
}

// A storedRebuild is the JSON of a rebuild in the table changes.
type storedRebuild struct {
	Epoch   int64 `json:"epoch"`
	Through int64 `json:"through"` // the highest number that the gate may have assigned
	Lost    int64 `json:"lost"`
	// Skipped is how many of the lost numbers come after the last one that was given: see firstcome.Skip.
	Skipped int64 `json:"skipped,omitempty"`
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
	terms, before, err := campaign.TermsInForce(t, s)
	if err != nil {
		return fill, err
	}
	given := lastGiven(&s, frozen.LastNumber)
	if n := len(terms.Skips); n > 0 { // a reconcile that was cut off has the gate's terms, and perhaps not its coupons
		given = max(given, terms.Skips[n-1].After)
	}
	given = min(given, ended)
	burnt, err := burn(t, &s, &terms, lost-(ended-given))
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
	rebuilt := storedRebuild{s.Epoch, ended, lost, ended - given, carried.People, max(0, s.Line.Waiting-carried.People-carried.LeftWithCoupon), (*campaign.StoredLog)(loaded.Log), loaded.Anew}
	made, err := e.store.AddChange(t, s, firstcome.ChangeRebuild, campaign.JSON(rebuilt))
	if err != nil {
		return fill, err
	}
	err = campaign.AddLog(t, made.At, actor, "campaign.rebuild", campaign.Entry{Campaign: s.ID, Detail: campaign.LogDetail(firstcome.ChangeRebuild, "", campaign.JSON(rebuilt))})
	if err != nil {
		return fill, err
	}
	s.Version = made.Version
	ceiling, payload := e.store.Grant(&s), before
	if given < ended {
		terms = terms.WithSkip(given, ended)
	}
	if (given < ended || burnt) && !s.Closed {
		payload, err = e.changeTerms(t, &s, actor, before, terms)
	}
	if err == nil {
		_, err = t.Change(`UPDATE campaigns SET epoch = ?, drained_through = ?, applied = ?, rebuilding_at = NULL WHERE id = ?`,
			s.Epoch, ended, s.Version, string(s.ID))
	}
	if err == nil {
		fill.Past, err = carryLine(t, &s, carried, made.At)
	}
	if err == nil {
		s.OpenedAt, err = firstIssue(t, s)
	}
	if err == nil && s.Burns {
		fill.Codes, err = campaign.NotedCodes(t, s.ID, &terms)
	}
	s.Log = loaded.Log
	fill = recovery.Refill{
		Campaign: s.Campaign, TermsVersion: s.TermsVersion, Payload: payload, Codes: fill.Codes, Epoch: s.Epoch, LastNumber: ended, Ceiling: ceiling,
		Issued: s.Issued, DecidedAt: made.At, Line: s.Line, Past: fill.Past, Lost: lost, LostPlaces: rebuilt.LostPlaces,
	}
	return fill, err
}

// burn lowers the quantity of a campaign with imported codes by numbers that were lost before the last one that was given: later coupons have later
// codes. It reports whether it did.
func burn(t *sqldb.Tx, s *campaign.Row, terms *firstcome.Terms, lost int64) (bool, error) {
	if !s.Burns || s.Closed || lost <= 0 {
		return false, nil
	}
	var letters int64
	if err := t.Row(`SELECT `+openLetters+` FROM campaigns WHERE id = ?`, string(s.ID)).Scan(&letters); err != nil {
		return false, err
	}
	lost = min(lost, s.Quantity-s.InForce-letters)
	s.Quantity, terms.Quantity, terms.Burnt = s.Quantity-lost, terms.Quantity-lost, terms.Burnt+lost
	return lost > 0, nil
}

// changeTerms adds a change of terms with which the next epoch begins. It returns the change's payload. before is the payload of the terms in force.
func (e *Epochs) changeTerms(t *sqldb.Tx, s *campaign.Row, actor, before string, terms firstcome.Terms) (payload string, err error) {
	if payload, err = campaign.EncodeTerms(terms, 0); err != nil {
		return "", err
	}
	made, err := e.store.AddChange(t, *s, firstcome.ChangeTerms, payload)
	if err == nil {
		err = campaign.PutTerms(t, s.ID, terms, made.Version, time.Time{})
	}
	if err == nil {
		err = campaign.AddLog(t, made.At, actor, "campaign.update", campaign.Entry{Campaign: s.ID, Detail: campaign.LogDetail(firstcome.ChangeTerms, before, payload)})
	}
	s.Version, s.TermsVersion = made.Version, made.Version
	return payload, err
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
