package ledger

import (
	"database/sql"
	"time"

	"github.com/firstcome/firstcome"
)

// Fields and columns differ: an instant is stored in microseconds since 1970. NULL is the zero value; for a quantity it is
// unlimited, for a pace none.

// micros returns the column of an instant.
func micros(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}

func instant(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

// An instantIn scans into an instant.
type instantIn time.Time

func when(into *time.Time) *instantIn { return (*instantIn)(into) }

// Scan is a sql.Scanner's.
func (i *instantIn) Scan(column any) error {
	var n int64
	err := orZero(&n).Scan(column)
	if *i = (instantIn{}); column != nil {
		*i = instantIn(time.UnixMicro(n).UTC())
	}
	return err
}

// A maybe scans into what a column holds that may be NULL.
type maybe[T any] struct{ into *T }

func orZero[T any](into *T) maybe[T] { return maybe[T]{into} }

// Scan is a sql.Scanner's.
func (m maybe[T]) Scan(column any) error {
	if v, is := column.(T); is || column == nil { // what the general way would allocate adds up on the way of a claim
		*m.into = v
		return nil
	}
	var n sql.Null[T]
	err := n.Scan(column)
	*m.into = n.V
	return err
}

// A quantityIn scans into a quantity.
type quantityIn int64

// Scan is a sql.Scanner's.
func (q *quantityIn) Scan(column any) error {
	var n sql.NullInt64
	err := n.Scan(column)
	*q = quantityIn(unlimited(n))
	return err
}

func quantityColumn(quantity int64) sql.NullInt64 {
	return sql.NullInt64{Int64: quantity, Valid: quantity != firstcome.Unlimited}
}

// unlimited returns the quantity that a column holds.
func unlimited(quantity sql.NullInt64) int64 {
	if !quantity.Valid {
		return firstcome.Unlimited
	}
	return quantity.Int64
}

// A paceIn scans into a pace.
type paceIn struct{ into **firstcome.Pace }

// Scan is a sql.Scanner's.
func (p paceIn) Scan(column any) error {
	var n sql.NullInt64
	err := n.Scan(column)
	if *p.into = nil; n.Valid {
		*p.into = &firstcome.Pace{PerSecond: n.Int64}
	}
	return err
}

func paceColumn(p *firstcome.Pace) sql.NullInt64 {
	if p == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: p.PerSecond, Valid: true}
}
