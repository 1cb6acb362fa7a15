package campaign

import (
	"database/sql"

	"github.com/firstcome/firstcome"
)

// A quantityIn scans a column into a quantity.
type quantityIn int64

// Quantity scans a column into a quantity.
func Quantity(into *int64) *quantityIn { return (*quantityIn)(into) }

// Scan implements sql.Scanner.
func (q *quantityIn) Scan(column any) error {
	var n sql.NullInt64
	err := n.Scan(column)
	*q = quantityIn(unlimited(n))
	return err
}

// QuantityColumn returns the column value of a quantity. NULL means that it is unlimited.
func QuantityColumn(quantity int64) sql.NullInt64 {
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

// Pace scans a column into a pace.
func Pace(into **firstcome.Pace) paceIn { return paceIn{into} }

// Scan implements sql.Scanner.
func (p paceIn) Scan(column any) error {
	var n sql.NullInt64
	err := n.Scan(column)
	if *p.into = nil; n.Valid {
		*p.into = &firstcome.Pace{PerSecond: n.Int64}
	}
	return err
}

// PaceColumn returns the column value of a pace. NULL means that there is none.
func PaceColumn(p *firstcome.Pace) sql.NullInt64 {
	if p == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: p.PerSecond, Valid: true}
}
