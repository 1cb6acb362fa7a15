package campaign

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
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

// PayloadOf returns the payload of a change of a campaign.
func PayloadOf(t *sqldb.Tx, id firstcome.CampaignID, version int64) (payload string, err error) {
	err = t.Row(`SELECT payload FROM changes WHERE campaign_id = ? AND version = ?`, id, version).Scan(&payload)
	return payload, err
}

// Terms implements ledger.Reads.Terms.
func (r *Store) Terms(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error) {
	var payload string
	err := r.DB.Conclude.QueryRowContext(ctx, `SELECT payload FROM changes
		WHERE campaign_id = ? AND version <= ? AND kind IN ('terms', 'reconcile') AND NOT refused ORDER BY version DESC LIMIT 1`, id, version).Scan(&payload)
	if errors.Is(err, sql.ErrNoRows) {
		return firstcome.Terms{}, firstcome.ErrNoCampaign
	}
	if err != nil {
		return firstcome.Terms{}, fmt.Errorf("read the terms of %s: %w", id, err)
	}
	return DecodeTerms(payload)
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
	return StoredTerms{
		Name: t.Name, Answer: t.Answer, Benefit: t.Benefit, Pace: (*storedPace)(t.Pace), Waitlist: t.Waitlist, Log: (*StoredLog)(t.Log),
		Quantity: sqldb.ToPointer(QuantityColumn(t.Quantity)),
		OpensAt:  sqldb.ToPointer(sqldb.Micros(t.OpensAt)), ClosesAt: sqldb.ToPointer(sqldb.Micros(t.ClosesAt)),
		ValidUntil: sqldb.ToPointer(sqldb.Micros(t.ValidUntil)), ValidFor: sqldb.ToPointer(sql.NullInt64{Int64: validFor, Valid: validFor != 0}),
	}
}

// EncodeTerms returns the payload of a change that sets terms. It is an error if the benefit is not JSON.
func EncodeTerms(t firstcome.Terms) (string, error) {
	text, err := json.Marshal(StoredTermsOf(t))
	return string(text), sqldb.Wrap(err, "the benefit is not JSON")
}

// DecodeTerms reads the terms in a payload: see EncodeTerms.
func DecodeTerms(payload string) (firstcome.Terms, error) {
	var s StoredTerms
	if err := json.Unmarshal([]byte(payload), &s); err != nil {
		return firstcome.Terms{}, err
	}
	return firstcome.Terms{
		Name: s.Name, Answer: s.Answer, Benefit: s.Benefit, Pace: (*firstcome.Pace)(s.Pace), Waitlist: s.Waitlist, Log: (*firstcome.LineLog)(s.Log),
		Quantity: unlimited(sqldb.FromPointer(s.Quantity)),
		OpensAt:  sqldb.Instant(sqldb.FromPointer(s.OpensAt)), ClosesAt: sqldb.Instant(sqldb.FromPointer(s.ClosesAt)), ValidUntil: sqldb.Instant(sqldb.FromPointer(s.ValidUntil)),
		ValidFor: time.Duration(sqldb.FromPointer(s.ValidFor).Int64) * time.Microsecond,
	}, nil
}
