package audit

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// Of a line that a remote gate keeps, the ledger has the tickets of its coupons and dead letters, and what journal entries
// said of each generation: as of an entry that may be ahead of the coupons that are recorded, never behind them.

// A LineView is what is told of a campaign's line.
type LineView struct {
	Line firstcome.Line // but for Due, and for Served where clients are told
	Past []PastLine     // the last ones that ended, in any order; clients are told the generation and the last ticket served of each
	// Of a line that a feed keeps, a gate says which one, and how many users left it in this generation.
	Feed *firstcome.Feed
	Left int64
}

// letter keeps the ticket of a dead letter whose coupon is not in the ledger.
func (a *lineAudit) letter(l Letter) {
	if l.Ticket > 0 && l.Number > 0 && (l.Open || l.Voided) {
		a.letters = append(a.letters, place{l.Generation, l.Ticket, l.Number, hash(string(l.User)), 0})
	}
}

// view holds coupons against what is told of the line later. The past may lack generations that ended long ago.
func (a *lineAudit) view(v LineView) {
	through := map[int64]int64{v.Line.Generation: v.Line.ServedThrough}
	for _, p := range v.Past {
		if through[p.Generation] = p.ServedThrough; p.Reason == "lost" {
			through[p.Generation] = math.MaxInt64 // as the ledger knew it by then
		}
		if p.Generation >= v.Line.Generation {
			a.add("P9", "generation %d of the line is told to have ended, and to be in generation %d", p.Generation, v.Line.Generation)
		}
	}
	live := int64(0)
	for _, p := range a.served {
		if served, told := through[p.generation]; p.generation > v.Line.Generation || told && p.ticket > served {
			a.add("P9", "number %d was issued to the ticket %d.%d, and the line is told to be at the ticket %d.%d",
				p.number, p.generation, p.ticket, v.Line.Generation, v.Line.ServedThrough)
		}
		if p.generation == v.Line.Generation {
			live++
		}
	}
	if l := v.Line; live+l.Waiting > l.LastTicket || l.ServedThrough+l.Waiting > l.LastTicket {
		a.add("P9", "generation %d is told of %d tickets, up to %d served and %d in line, and %d of them are coupons",
			l.Generation, l.LastTicket, l.ServedThrough, l.Waiting, live)
	}
}

// A tally is what there is of the tickets of a generation.
type tally struct {
	count  int64 // of coupons and dead letters
	last   place // the one with the highest ticket
	latest int64 // microseconds: when the last coupon was issued
}

// finishRemote holds the tickets of coupons and dead letters against what the gate said of each generation, where so many
// numbers are missing and so many are lost.
func (a *lineAudit) finishRemote(missing, lost int64) {
	all := append(a.served, a.letters...)
	slices.SortStableFunc(all, func(x, y place) int { return cmp.Compare(x.number, y.number) })
	for n, p := range all {
		if n > 0 && !all[n-1].before(p) {
			a.add("P9", "number %d was issued to the ticket %d.%d, behind number %d to the ticket %d.%d",
				p.number, p.generation, p.ticket, all[n-1].number, all[n-1].generation, all[n-1].ticket)
		}
	}
	tallies := tallyOf(all)
	line := a.campaign.Row.Line
	if n := int64(len(a.past)); line.Generation != n+1 && missing == 0 {
		a.add("P9", "the line is in generation %d, and %d have ended", line.Generation, n)
	}
	says := map[int64]firstcome.Line{line.Generation: line}
	lostLines := map[int64]bool{} // the ledger says of each what it knew by then
	for _, p := range a.past {
		says[p.Generation], lostLines[p.Generation] = p.Line, p.Reason == "lost"
	}
	for g, t := range tallies {
		l, known := says[g]
		switch {
		case lostLines[g]:
		case !known:
			a.add("P9", "number %d was issued to the ticket %d.%d, and the line is in generation %d", t.last.number, g, t.last.ticket, line.Generation)
		case t.last.ticket > l.ServedThrough:
			a.add("P9", "number %d was issued to the ticket %d.%d, and the tickets up to %d.%d have ended", t.last.number, g, t.last.ticket, g, l.ServedThrough)
		case t.count > l.Served:
			a.add("P9", "generation %d counts %d tickets served, and %d coupons and dead letters name one", g, l.Served, t.count)
		}
	}
	a.pastRemote(tallies, missing, lost)
}

// pastRemote checks each generation that ended. A coupon of a later one says that all of its numbers are known; then
// whoever was served and got none of them held a coupon that passed the line, or a number that was lost.
func (a *lineAudit) pastRemote(tallies map[int64]tally, missing, lost int64) {
	highest := int64(0)
	for g := range tallies {
		highest = max(highest, g)
	}
	elsewhere := int64(len(a.direct)) + lost
	var before time.Time
	for _, p := range a.past {
		if p.Reason == "lost" { // by the ledger's clock
			continue
		}
		t := tallies[p.Generation]
		if more := p.Served - t.count - elsewhere; more > 0 && missing == 0 && p.Generation < highest {
			a.add("P9", "generation %d counts %d tickets served: %d coupons and dead letters name one, and %d others may have been got directly or lost",
				p.Generation, p.Served, t.count, elsewhere)
		}
		if p.EndedAt.Before(before) || p.EndedAt.UnixMicro() < t.latest {
			a.add("P9", "generation %d ended at %s, before a coupon of it was issued or the one before it ended", p.Generation, text(p.EndedAt))
		}
		before = p.EndedAt
	}
}
