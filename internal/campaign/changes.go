package campaign

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// AddChange adds the next numbered change to a campaign, and writes the ceiling and the quarantine of s. In s, the caller has
// already raised a quantity that the change raises. With a remote gate, the change is then pending.
func (r *Store) AddChange(t *sqldb.Tx, s Row, kind firstcome.ChangeKind, payload string) (firstcome.Change, error) {
	made := firstcome.Change{Campaign: s.ID, Version: s.Version + 1, Kind: kind, At: r.DecidesAt(s)}
	if err := InsertChange(t, s.ID, made.Version, kind, payload, made.At); err != nil {
		return made, err
	}
	_, err := t.Change(`UPDATE campaigns SET version = ?, applied = ?, ceiling = ?, decided_at = ?,
		quarantined = ?, quarantined_until = ?, was_opens_at = ?, was_closes_at = ?, was_sold_out = ? WHERE id = ?`,
		made.Version, r.AppliedAt(made.Version), r.Grant(&s), made.At.UnixMicro(),
		s.Quarantined.Coupons, s.Quarantined.Until.UnixMicro(), sqldb.Micros(s.Quarantined.OpensAt), sqldb.Micros(s.Quarantined.ClosesAt), s.Quarantined.SoldOut, string(s.ID))
	return made, err
}

// AppliedAt returns the last change that the gate has when the ledger adds change v. This is v if the ledger is the gate, and otherwise
// the change before v.
func (r *Store) AppliedAt(v int64) int64 {
	if r.Remote() {
		return v - 1
	}
	return v
}

// InsertChange writes a change. It also writes a part of its payload as columns, for the audit: of terms the quantity, the window and how many
// numbers are skipped in all, and of a rebuild how many numbers it skipped.
func InsertChange(t *sqldb.Tx, id firstcome.CampaignID, version int64, kind firstcome.ChangeKind, payload string, at time.Time) error {
	var terms StoredTerms
	var skipped int64
	switch kind {
	case firstcome.ChangeTerms, firstcome.ChangeReconcile:
		if err := json.Unmarshal([]byte(payload), &terms); err != nil {
			return sqldb.Wrap(err, "read the terms of a change")
		}
		if n := len(terms.Skips); n > 0 {
			skipped = terms.Skips[n-1].Skipped
		}
	case firstcome.ChangeRebuild:
		var rebuilt struct{ Skipped int64 }
		if err := json.Unmarshal([]byte(payload), &rebuilt); err != nil {
			return sqldb.Wrap(err, "read a rebuild")
		}
		skipped = rebuilt.Skipped
	}
	_, err := t.Change(`INSERT INTO changes (campaign_id, version, kind, payload, changed_at, quantity, opens_at, closes_at, skipped) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		string(id), version, string(kind), payload, at.UnixMicro(), sqldb.FromPointer(terms.Quantity), sqldb.FromPointer(terms.OpensAt), sqldb.FromPointer(terms.ClosesAt), skipped)
	return err
}

// ConcludeChange makes proposed terms effective, or notes that they were refused.
func ConcludeChange(t *sqldb.Tx, s Row, version int64, refused bool) error {
	var kind firstcome.ChangeKind
	var payload string
	err := t.Row(`SELECT kind, payload FROM changes WHERE campaign_id = ? AND version = ?`, string(s.ID), version).Scan(&kind, &payload)
	if err != nil {
		return err
	}
	proposed := kind == firstcome.ChangeTerms && version > s.TermsVersion
	switch {
	case refused && !proposed:
		return errRefusal
	case refused:
		_, err := t.Change(`UPDATE changes SET refused = TRUE WHERE campaign_id = ? AND version = ?`, string(s.ID), version)
		return err
	case !proposed:
		return nil
	}
	terms, err := DecodeTerms(payload)
	if err != nil {
		return err
	}
	return PutTerms(t, s.ID, terms, version, time.Time{})
}

// errRefusal means that a gate refused a change that it must accept.
var errRefusal = errors.New("the gate refused a change that it must accept")

// DecodeChange sets the fields of a change from its payload.
func DecodeChange(c *firstcome.Change, payload string, epoch int64) (err error) {
	switch c.Kind {
	case firstcome.ChangeTerms:
		var moved struct {
			Before int64 `json:"before_number"`
		}
		if c.Terms, err = DecodeTerms(payload); err == nil {
			err = json.Unmarshal([]byte(payload), &moved)
		}
		c.Payload, c.Before = payload, moved.Before
		if c.Version == 1 {
			c.Epoch, c.Paused = epoch, c.Terms.HasImported()
		}
	case firstcome.ChangeReconcile:
		var r struct {
			Paused, Closed bool
			ClosedAt       *int64 `json:"closed_at"`
		}
		if c.Terms, err = DecodeTerms(payload); err == nil {
			err = json.Unmarshal([]byte(payload), &r)
		}
		c.Paused, c.Closed, c.ClosedAt = r.Paused, r.Closed, sqldb.Instant(sqldb.FromPointer(r.ClosedAt))
	case firstcome.ChangeVoid:
		var v storedVoid
		err = json.Unmarshal([]byte(payload), &v)
		c.Number, c.User, c.Burns = v.Number, v.User, v.Burns
	case firstcome.ChangeResume:
		c.Payload = payload
	}
	return err
}

// Nothing is the payload of a change that neither sets terms nor voids a coupon.
const Nothing = "{}"

// A storedVoid is the JSON of a void in the table changes.
type storedVoid struct {
	Number int64            `json:"number"`
	User   firstcome.UserID `json:"user_id"`
	Burns  bool             `json:"burns,omitempty"`
}

// VoidPayload returns the payload of a void's change. burns means that the stock does not come back.
func VoidPayload(number int64, user firstcome.UserID, burns bool) string {
	return JSON(storedVoid{number, user, burns})
}

// JSON encodes a value of strings and numbers as JSON.
func JSON(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		panic(err) // these are always JSON
	}
	return string(text)
}
