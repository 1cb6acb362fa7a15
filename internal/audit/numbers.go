package audit

import (
	"cmp"
	"slices"
)

// numberAudit checks that every number is exactly one of coupon, dead letter and lost.
type numberAudit struct {
	*Breaches
	rows     rows
	campaign *Campaign
	history  *history
	log      *logAudit
	logged   bool    // the audit log was read
	known    []Range // of dead letters and lost numbers
	open     int64
	numbered int64 // dead letters with a number
	lost     int64
	missing  int64 // above what is drained
	highest  int64 // number of a coupon or a dead letter
	before   Range // of lost numbers
}

func (a *numberAudit) letter(l Letter) {
	if a.highest = max(a.highest, l.Number); l.Wrong != "" {
		a.add("letters", "the dead letter %d contradicts itself: %s", l.ID, l.Wrong)
	}
	if a.logged {
		a.log.resolved(l)
	}
	if l.Number > 0 {
		a.numbered++
		a.known = append(a.known, Range{First: l.Number, Count: 1})
	}
	if l.Open {
		a.open++
	}
	is := a.rows.find(l.Number)
	switch whole := a.campaign.Row != nil; {
	case l.Open && is != nil:
		a.add("P4", "number %d is a coupon, and a dead letter for the user %q", l.Number, l.User)
	case l.Open || l.Number == 0:
	case l.Voided:
		if c := a.history.void(l.Number, l.ResolvedAt, l.User); c != nil {
			c.known = true
		} else if whole && l.User != "" && !l.ResolvedAt.Before(a.campaign.CreatedAt) {
			a.add("changes", "the dead letter %d, number %d of the user %q, was voided at %s, and no change says so", l.ID, l.Number, l.User, text(l.ResolvedAt))
		}
	case is == nil && whole:
		a.add("P5", "the dead letter %d was replayed, and its number %d is no coupon", l.ID, l.Number)
	}
}

func (a *numberAudit) lose(r Range) {
	a.known = append(a.known, r)
	a.lost += r.Count
	if from := a.rows.from(r.First); from < len(a.rows) && a.rows[from].number <= r.last() {
		a.add("P4", "number %d is a coupon, and it was lost: %d to %d were", a.rows[from].number, r.First, r.last())
	}
	if a.before.Count > 0 && r.First <= a.before.last() {
		a.add("P4", "number %d was lost twice", r.First)
	}
	if r.Epoch != 0 && (r.Epoch < 2 || r.Epoch > a.campaign.Epoch || r.Epoch < a.before.Epoch) {
		a.add("changes", "the numbers %d to %d were lost before epoch %d, the campaign is in %d, and those before were lost before epoch %d", r.First, r.last(), r.Epoch, a.campaign.Epoch, a.before.Epoch)
	}
	a.before = r
}

// end reports the numbers that are nothing. With a remote gate those above what is
// drained may be on their way; now is the campaign after the dead letters were read.
func (a *numberAudit) end(now Campaign) {
	remote := a.campaign.Remote
	if a.logged {
		a.log.endLetters()
	}
	if len(a.rows) > 0 {
		a.highest = max(a.highest, a.rows[len(a.rows)-1].number)
	}
	if a.highest < a.campaign.LastNumber || a.highest > now.LastNumber {
		a.add("counters", "the campaign's last number is %d, that of its coupons and dead letters %d", a.campaign.LastNumber, a.highest)
	}
	if before, after := a.campaign.Row, now.Row; before != nil && after != nil && (a.numbered < before.Letters || a.numbered > after.Letters) {
		a.add("counters", "the campaign has %d dead letters with numbers, by its row %d", a.numbered, before.Letters)
	}
	if !remote && a.campaign.Row != nil && a.campaign.Drained != 0 {
		a.add("counters", "numbers are drained up to %d, and without a remote gate none are", a.campaign.Drained)
	}
	slices.SortFunc(a.known, func(x, y Range) int { return cmp.Compare(x.First, y.First) })
	through := int64(0) // each number up to it is something
	var first int64     // that is nothing
	gap := func(next int64) {
		if next <= through+1 {
			return
		}
		if first == 0 {
			first = through + 1
		}
		a.absent(Range{First: through + 1, Count: next - through - 1}, remote)
	}
	known := a.known
	for n := 0; n < len(a.rows) || len(known) > 0; {
		next := Range{Count: 1}
		if len(known) == 0 || n < len(a.rows) && a.rows[n].number <= known[0].First {
			next.First = a.rows[n].number
			n++
		} else {
			next, known = known[0], known[1:]
		}
		gap(next.First)
		through = max(through, next.last())
	}
	if !remote {
		return
	}
	gap(a.campaign.Drained + 1)
	if first == 0 {
		first = max(through, a.campaign.Drained) + 1
	}
	if first-1 > now.Drained {
		a.add("counters", "every number up to %d is in the ledger, the campaign says so only up to %d", first-1, now.Drained)
	}
}

// absent reports numbers that are nothing.
func (a *numberAudit) absent(r Range, remote bool) {
	above := int64(0)
	if remote {
		above = min(r.Count, max(0, r.last()-a.campaign.Drained))
	}
	a.missing += above
	if r.Count -= above; r.Count > 0 {
		a.add("P4", "the numbers %d to %d are missing", r.First, r.last())
	}
}
