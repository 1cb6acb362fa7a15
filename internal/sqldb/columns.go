package sqldb

import (
	"database/sql"
	"time"
)

// These types and functions convert between fields and columns. A column holds a time in microseconds since 1970. NULL stands for the
// zero value.

// Micros returns the column value of a time.
func Micros(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}

// OrNull returns the column value of v: NULL if v is the zero value.
func OrNull[V comparable](v V) any {
	var none V
	if v == none {
		return nil
	}
	return v
}

// Instant returns the time in a column.
func Instant(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

// An instantIn scans a column into a time.
type instantIn time.Time

// Time scans a column into a time.
func Time(into *time.Time) *instantIn { return (*instantIn)(into) }

// Scan implements sql.Scanner.
func (i *instantIn) Scan(column any) error {
	var n int64
	err := OrZero(&n).Scan(column)
	if *i = (instantIn{}); column != nil {
		*i = instantIn(time.UnixMicro(n).UTC())
	}
	return err
}

// A maybe scans a column that may be NULL. NULL becomes the zero value.
type maybe[T any] struct{ into *T }

// OrZero scans a column that may be NULL.
func OrZero[T any](into *T) maybe[T] { return maybe[T]{into} }

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

// ToPointer returns the value of a column, as JSON has it: nil for NULL.
func ToPointer(n sql.NullInt64) *int64 {
	if !n.Valid {
		return nil
	}
	return &n.Int64
}

// FromPointer returns the column value of a number in JSON: NULL for nil.
func FromPointer(n *int64) sql.NullInt64 {
	if n == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: *n, Valid: true}
}
