package ledger

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

// putTerms puts the terms of a version into effect. soldOutAt is when the campaign first had no stock left, or
// zero if it always had some.
func putTerms(t *sqldb.Tx, id firstcome.CampaignID, terms firstcome.Terms, version int64, soldOutAt time.Time) error {
	_, err := t.Change(`UPDATE campaigns SET quantity = ?, opens_at = ?, closes_at = ?, terms_version = ?, sold_out_at = ?,
		pace = ?, waitlist = ? WHERE id = ?`,
		quantityColumn(terms.Quantity), micros(terms.OpensAt), micros(terms.ClosesAt), version, micros(soldOutAt),
		paceColumn(terms.Pace), terms.Waitlist, string(id))
	return err
}

// soldOutAt returns when a campaign in the state s first has no stock left, if it gets new terms at now. It
// returns the zero time for a remote gate, because the ledger does not know.
func (r *rows) soldOutAt(s stock, terms firstcome.Terms, now time.Time) time.Time {
	if r.remote() {
		return time.Time{}
	}
	s.Terms = terms
	return s.SoldOut(s.inForce, now)
}

func payloadOf(t *sqldb.Tx, id firstcome.CampaignID, version int64) (payload string, err error) {
	err = t.Row(`SELECT payload FROM changes WHERE campaign_id = ? AND version = ?`, id, version).Scan(&payload)
	return payload, err
}

// Terms returns the terms of a campaign as of a version, or ErrNoCampaign. Once the gate has taken that version,
// they never change. Until then the gate may refuse them.
func (rd *Reads) Terms(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error) {
	return rd.rows.terms(ctx, id, version)
}

// terms implements Reads.Terms.
func (r *rows) terms(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error) {
	var payload string
	err := r.db.Conclude.QueryRowContext(ctx, `SELECT payload FROM changes
		WHERE campaign_id = ? AND version <= ? AND kind IN ('terms', 'reconcile') AND NOT refused ORDER BY version DESC LIMIT 1`, id, version).Scan(&payload)
	if errors.Is(err, sql.ErrNoRows) {
		return firstcome.Terms{}, firstcome.ErrNoCampaign
	}
	if err != nil {
		return firstcome.Terms{}, fmt.Errorf("read the terms of %s: %w", id, err)
	}
	return decodeTerms(payload)
}

// storedTerms is the JSON of terms in the table changes. Times and durations are in microseconds.
type storedTerms struct {
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
	Log        *storedLog           `json:"line_log,omitempty"`
}

// A storedLog is the JSON of a line's log.
type storedLog struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	First     int64  `json:"first"`
}

// A storedPace is the JSON of a pace.
type storedPace struct {
	PerSecond int64 `json:"per_second,omitempty"`
}

// storedTermsOf converts terms to their JSON.
func storedTermsOf(t firstcome.Terms) storedTerms {
	validFor := t.ValidFor.Microseconds()
	return storedTerms{
		Name: t.Name, Answer: t.Answer, Benefit: t.Benefit, Pace: (*storedPace)(t.Pace), Waitlist: t.Waitlist, Log: (*storedLog)(t.Log),
		Quantity: pointer(quantityColumn(t.Quantity)),
		OpensAt:  pointer(micros(t.OpensAt)), ClosesAt: pointer(micros(t.ClosesAt)),
		ValidUntil: pointer(micros(t.ValidUntil)), ValidFor: pointer(sql.NullInt64{Int64: validFor, Valid: validFor != 0}),
	}
}

func encodeTerms(t firstcome.Terms) (string, error) {
	text, err := json.Marshal(storedTermsOf(t))
	return string(text), sqldb.Wrap(err, "the benefit is not JSON")
}

func decodeTerms(payload string) (firstcome.Terms, error) {
	var s storedTerms
	if err := json.Unmarshal([]byte(payload), &s); err != nil {
		return firstcome.Terms{}, err
	}
	return firstcome.Terms{
		Name: s.Name, Answer: s.Answer, Benefit: s.Benefit, Pace: (*firstcome.Pace)(s.Pace), Waitlist: s.Waitlist, Log: (*firstcome.LineLog)(s.Log),
		Quantity: unlimited(column(s.Quantity)),
		OpensAt:  instant(column(s.OpensAt)), ClosesAt: instant(column(s.ClosesAt)), ValidUntil: instant(column(s.ValidUntil)),
		ValidFor: time.Duration(column(s.ValidFor).Int64) * time.Microsecond,
	}, nil
}

func pointer(n sql.NullInt64) *int64 {
	if !n.Valid {
		return nil
	}
	return &n.Int64
}

func column(n *int64) sql.NullInt64 {
	if n == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: *n, Valid: true}
}
