package ledger

import (
	"database/sql"
	"time"

	"github.com/firstcome/firstcome"
)

// These types and functions convert between fields and columns. A column holds a time in microseconds since 1970. NULL stands for the
// zero value. In a column of a quantity, NULL means unlimited; in a column of a pace, it means no pace.

// micros returns the column value of a time.
func micros(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}

func instant(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

// An instantIn scans a column into a time.
type instantIn time.Time

func when(into *time.Time) *instantIn { return (*instantIn)(into) }

// Scan implements sql.Scanner.
func (i *instantIn) Scan(column any) error {
	var n int64
	err := orZero(&n).Scan(column)
	if *i = (instantIn{}); column != nil {
		*i = instantIn(time.UnixMicro(n).UTC())
	}
	return err
}

// A maybe scans a column that may be NULL. NULL becomes the zero value.
type maybe[T any] struct{ into *T }

func orZero[T any](into *T) maybe[T] { return maybe[T]{into} }

// Scan implements sql.Scanner.
func (m maybe[T]) Scan(column any) error {
	if v, is := column.(T); is || column == nil { // avoids the allocations of sql.Null, because claims scan many columns
		*m.into = v
		return nil
	}
	var n sql.Null[T]
	err := n.Scan(column)
	*m.into = n.V
	return err
}

// A quantityIn scans a column into a quantity.
type quantityIn int64

// quantityInto scans a column into a quantity.
func quantityInto(into *int64) *quantityIn { return (*quantityIn)(into) }

// Scan implements sql.Scanner.
func (q *quantityIn) Scan(column any) error {
	var n sql.NullInt64
	err := n.Scan(column)
	*q = quantityIn(unlimited(n))
	return err
}

func quantityColumn(quantity int64) sql.NullInt64 {
	return sql.NullInt64{Int64: quantity, Valid: quantity != firstcome.Unlimited}
}

// unlimited returns the quantity in a column. NULL becomes firstcome.Unlimited.
func unlimited(quantity sql.NullInt64) int64 {
	if !quantity.Valid {
		return firstcome.Unlimited
	}
	return quantity.Int64
}

// A paceIn scans a column into a pace.
type paceIn struct{ into **firstcome.Pace }

// paceInto scans a column into a pace.
func paceInto(into **firstcome.Pace) paceIn { return paceIn{into} }

// Scan implements sql.Scanner.
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
