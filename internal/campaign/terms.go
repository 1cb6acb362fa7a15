package campaign

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// PutTerms puts the terms of a version into effect. soldOutAt is when the campaign first had no stock left, or
// zero if it always had some.
func PutTerms(t *sqldb.Tx, id firstcome.CampaignID, terms firstcome.Terms, version int64, soldOutAt time.Time) error {
	_, err := t.Change(`UPDATE campaigns SET quantity = ?, opens_at = ?, closes_at = ?, terms_version = ?, sold_out_at = ?,
		pace = ?, waitlist = ? WHERE id = ?`,
		QuantityColumn(terms.Quantity), sqldb.Micros(terms.OpensAt), sqldb.Micros(terms.ClosesAt), version, sqldb.Micros(soldOutAt),
		PaceColumn(terms.Pace), terms.Waitlist, string(id))
	return err
}

// SoldOutAt returns when a campaign in the state s first has no stock left, if it gets new terms at now. It
// returns the zero time for a remote gate, because the ledger does not know.
func (r *Store) SoldOutAt(s Row, terms firstcome.Terms, now time.Time) time.Time {
	if r.Remote() {
		return time.Time{}
	}
	s.Terms = terms
	return s.SoldOut(s.InForce, now)
}

// with returns terms with the quantity that is in force: in a campaign with imported codes, voids may have lowered it since the terms were set.
func (s *Row) with(terms firstcome.Terms) firstcome.Terms {
	if s.Burns {
		terms.Burnt += terms.Quantity - s.Quantity
		terms.Quantity = s.Quantity
	}
	return terms
}

// TermsInForce returns a campaign's terms in force, and the payload of their change.
func TermsInForce(t *sqldb.Tx, s Row) (terms firstcome.Terms, payload string, err error) {
	err = t.Row(`SELECT payload FROM changes WHERE campaign_id = ? AND version = ?`, string(s.ID), s.TermsVersion).Scan(&payload)
	if err == nil {
		terms, err = DecodeTerms(payload)
	}
	return s.with(terms), payload, err
}

// termsQuery reads the terms of a version: those of the change before it and, first, those of the reconcile after it, which has them if the ledger
// has forgotten the version. Each row also has the campaign's version.
const termsQuery = `SELECT h.version, h.payload, c.version FROM campaigns c JOIN changes h ON h.campaign_id = c.id WHERE c.id = ? AND h.version IN (
	(SELECT MAX(version) FROM changes WHERE campaign_id = ? AND version <= ? AND kind IN ('terms', 'reconcile') AND NOT refused),
	(SELECT MIN(version) FROM changes WHERE campaign_id = ? AND version > ? AND kind = 'reconcile')) ORDER BY h.version DESC`

// Terms implements ledger.Reads.Terms.
func (r *Store) Terms(ctx context.Context, id firstcome.CampaignID, version int64) (terms firstcome.Terms, err error) {
	var found int64 // the version whose terms they are
	rows, err := r.DB.Conclude.QueryContext(ctx, termsQuery, id, id, version, id, version)
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		var of, last int64
		var payload string
		switch err := take(&of, &payload, &last); {
		case err != nil || found > version:
			return err
		case version > last:
			return &gate.LedgerRolledBackError{Campaign: id, Found: fmt.Sprintf("the gate has terms of version %d, the ledger is at version %d", version, last)}
		}
		if of > version {
			var reconcile struct{ Behind int64 }
			if err := json.Unmarshal([]byte(payload), &reconcile); err != nil || reconcile.Behind >= version {
				return err // the ledger has not forgotten the version
			}
		}
		found = of
		terms, err = DecodeTerms(payload)
		return err
	})
	switch {
	case err != nil:
		return firstcome.Terms{}, fmt.Errorf("read the terms of %s: %w", id, err)
	case found == 0:
		return firstcome.Terms{}, firstcome.ErrNoCampaign
	}
	return terms, nil
}

// StoredTerms is the JSON of terms in the table changes. Times and durations are in microseconds.
type StoredTerms struct {
	Name       string               `json:"name"`
	Quantity   *int64               `json:"quantity"`
	OpensAt    *int64               `json:"opens_at"`
	ClosesAt   *int64               `json:"closes_at"`
	Answer     firstcome.AnswerWhen `json:"answer"`
	Benefit    json.RawMessage      `json:"benefit"`
	ValidUntil *int64               `json:"valid_until"`
	ValidFor   *int64               `json:"valid_for"`
	Pace       *storedPace          `json:"pace,omitempty"`
	Waitlist   bool                 `json:"waitlist,omitempty"`
	Log        *StoredLog           `json:"line_log,omitempty"`
	Prizes     []storedPrize        `json:"prizes,omitempty"`
	Skips      []storedSkip         `json:"skips,omitempty"`
	Imported   bool                 `json:"imported,omitempty"`
	Burnt      int64                `json:"burnt,omitempty"`
	// Before is set if the change moves prizes: see firstcome.Change.
	Before int64 `json:"before_number,omitempty"`
}

// A storedPrize is the JSON of a prize.
type storedPrize struct {
	ID       firstcome.PrizeID `json:"id"`
	Name     string            `json:"name"`
	Quantity int64             `json:"quantity,omitempty"`
	Benefit  json.RawMessage   `json:"benefit,omitempty"`
	Imported bool              `json:"imported,omitempty"`
}

// A storedSkip is the JSON of a firstcome.Skip.
type storedSkip struct {
	After   int64 `json:"after"`
	Skipped int64 `json:"skipped"`
}

// A StoredLog is the JSON of a line's log.
type StoredLog struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	First     int64  `json:"first"`
}

// A storedPace is the JSON of a pace.
type storedPace struct {
	PerSecond int64 `json:"per_second,omitempty"`
}

// StoredTermsOf converts terms to their JSON.
func StoredTermsOf(t firstcome.Terms) StoredTerms {
	validFor := t.ValidFor.Microseconds()
	s := StoredTerms{
		Name: t.Name, Answer: t.Answer, Benefit: t.Benefit, Pace: (*storedPace)(t.Pace), Waitlist: t.Waitlist, Log: (*StoredLog)(t.Log),
		Imported: t.Imported, Burnt: t.Burnt,
		Quantity: sqldb.ToPointer(QuantityColumn(t.Quantity)),
		OpensAt:  sqldb.ToPointer(sqldb.Micros(t.OpensAt)), ClosesAt: sqldb.ToPointer(sqldb.Micros(t.ClosesAt)),
		ValidUntil: sqldb.ToPointer(sqldb.Micros(t.ValidUntil)), ValidFor: sqldb.ToPointer(sql.NullInt64{Int64: validFor, Valid: validFor != 0}),
	}
	for _, p := range t.Prizes {
		s.Prizes = append(s.Prizes, storedPrize(p))
	}
	for _, skip := range t.Skips {
		s.Skips = append(s.Skips, storedSkip(skip))
	}
	return s
}

// EncodeTerms returns the payload of a change that sets terms. It is an error if a benefit is not JSON. before is that of firstcome.Change.
func EncodeTerms(t firstcome.Terms, before int64) (string, error) {
	stored := StoredTermsOf(t)
	stored.Before = before
	text, err := json.Marshal(stored)
	return string(text), sqldb.Wrap(err, "a benefit is not JSON")
}

// DecodeTerms reads the terms in a payload: see EncodeTerms.
func DecodeTerms(payload string) (firstcome.Terms, error) {
	var s StoredTerms
	if err := json.Unmarshal([]byte(payload), &s); err != nil {
		return firstcome.Terms{}, err
	}
	t := firstcome.Terms{
		Name: s.Name, Answer: s.Answer, Benefit: s.Benefit, Pace: (*firstcome.Pace)(s.Pace), Waitlist: s.Waitlist, Log: (*firstcome.LineLog)(s.Log),
		Imported: s.Imported, Burnt: s.Burnt,
		Quantity: unlimited(sqldb.FromPointer(s.Quantity)),
		OpensAt:  sqldb.Instant(sqldb.FromPointer(s.OpensAt)), ClosesAt: sqldb.Instant(sqldb.FromPointer(s.ClosesAt)), ValidUntil: sqldb.Instant(sqldb.FromPointer(s.ValidUntil)),
		ValidFor: time.Duration(sqldb.FromPointer(s.ValidFor).Int64) * time.Microsecond,
	}
	for _, p := range s.Prizes {
		t.Prizes = append(t.Prizes, firstcome.Prize(p))
	}
	for _, skip := range s.Skips {
		t.Skips = append(t.Skips, firstcome.Skip(skip))
	}
	return t, nil
}
