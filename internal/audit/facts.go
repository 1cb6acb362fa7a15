package audit

import (
	"fmt"
	"math"

	"github.com/firstcome/firstcome"
)

// factAudit reads the runs of facts in position order, after the coupons.
type factAudit struct {
	*Breaches
	campaign *Campaign
	history  *history
	rows     rows
	again    map[int64]int64 // see couponAudit
	newest   int32           // index of the latest terms
	position int64
	issued   int64
	inForce  int64
	over     bool // in force was above the quantity at the last issue
}

// maxCount bounds what a run counts for, so that no sum of such is out of range.
const maxCount = 1 << 40

func (a *factAudit) run(r Run) {
	if r.Position != a.position+1 {
		a.add("facts", "position %d follows position %d", r.Position, a.position)
	}
	if r.Count < 1 || r.Position < 1 || r.Position > math.MaxInt64-r.Count {
		a.add("facts", "a run of %d facts from position %d on is none", r.Count, r.Position)
		return
	}
	a.position = r.Position + r.Count - 1
	if r.Number < 1 || r.Number > math.MaxInt64-r.Count {
		a.add("facts", "the positions %d to %d are about numbers from %d on", r.Position, a.position, r.Number)
		return
	}
	if r.Kind != firstcome.CouponIssued && r.Kind != firstcome.CouponVoided {
		a.add("facts", "position %d has the unknown kind %q", r.Position, r.Kind)
		return
	}
	a.each(r)
}

// each audits the facts of a run: those of coupons one by one, those without one by their count.
func (a *factAudit) each(r Run) {
	next := r.Number
	for n := a.rows.from(r.Number); n < len(a.rows) && a.rows[n].number < r.Number+r.Count; n++ {
		c := &a.rows[n]
		a.gone(r, next, c.number)
		position := r.Position + c.number - r.Number
		if r.Kind == firstcome.CouponIssued {
			a.issue(c, position)
		} else {
			a.void(c, position)
		}
		next = c.number + 1
	}
	a.gone(r, next, r.Number+r.Count)
}

// gone reports the facts of a run about the numbers before next, which are no coupons.
func (a *factAudit) gone(r Run, first, next int64) {
	count := min(next-first, maxCount)
	if count <= 0 {
		return
	}
	if r.Kind == firstcome.CouponIssued {
		a.issued += count
		a.inForce += count
		a.add("P5", "position %d issued number %d, and the ledger does not have it%s", r.Position+first-r.Number, first, through(first, count))
		return
	}
	a.inForce -= count
	a.add("facts", "position %d voids number %d, which no coupon has%s", r.Position+first-r.Number, first, through(first, count))
}

// through says how far what is said of a number goes on.
func through(first, count int64) string {
	if count == 1 {
		return ""
	}
	return fmt.Sprintf(", and so on to number %d", first+count-1)
}

func (a *factAudit) issue(c *row, position int64) {
	a.issued++
	a.inForce++
	if before, ok := a.again[c.number]; ok {
		if r := a.rows.find(before); r == nil || r.state&voidedFact == 0 {
			a.add("P3", "the user of number %d was issued it while number %d was in force", c.number, before)
		}
	}
	if c.state&issuedFact != 0 {
		a.add("facts", "position %d issues number %d again", position, c.number)
	} else if c.position != position {
		a.add("facts", "position %d issues number %d, whose coupon says that it was position %d", position, c.number, c.position)
	}
	c.state |= issuedFact
	a.stock(c)
}

// stock checks P1 at the instant of an issue, by the terms it was issued under, or
// later ones if a remote gate's coupons came out of order.
func (a *factAudit) stock(c *row) {
	a.newest = max(a.newest, c.terms)
	if int(a.newest) >= len(a.history.terms) {
		return
	}
	quantity := a.history.terms[a.newest].quantity
	over := a.inForce > quantity
	if over && !a.over {
		a.add("P1", "number %d made %d coupons in force, the quantity was %d", c.number, a.inForce, quantity)
	}
	a.over = over
}

func (a *factAudit) void(c *row, position int64) {
	a.inForce--
	switch {
	case c.state&issuedFact == 0:
		a.add("facts", "position %d voids number %d, which was not issued by then", position, c.number)
	case c.state&voidedFact != 0:
		a.add("facts", "position %d voids number %d again", position, c.number)
	case c.state&voidedRow == 0:
		a.add("facts", "position %d voids number %d, which is in force", position, c.number)
	}
	c.state |= voidedFact
}

// end adds the last run, which the ledger leaves unwritten where it decides, and
// checks what all the facts together must have said.
func (a *factAudit) end() {
	c := a.campaign
	if count := c.Position - a.position; count > 0 && count <= c.LastNumber && c.Row != nil && !c.Remote {
		a.run(Run{a.position + 1, count, c.LastNumber - count + 1, firstcome.CouponIssued})
	}
	if a.position != c.Position {
		a.add("counters", "the campaign's last position is %d, the facts end at %d", c.Position, a.position)
	}
	if a.issued != c.Issued {
		a.add("counters", "the campaign counts %d coupons issued, the facts name %d", c.Issued, a.issued)
	}
	if a.inForce != c.InForce {
		a.add("counters", "the campaign counts %d coupons in force, the facts leave %d", c.InForce, a.inForce)
	}
	for _, r := range a.rows {
		if r.state&issuedFact == 0 {
			a.add("facts", "no position issues number %d", r.number)
		}
		if r.state&voidedRow != 0 && r.state&voidedFact == 0 {
			a.add("facts", "no position voids number %d, which is voided", r.number)
		}
	}
}
