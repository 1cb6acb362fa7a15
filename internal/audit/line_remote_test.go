package audit_test

import (
	"context"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

// queue are the books of a campaign whose gate keeps a line: number 1 went to the ticket 1.1, number 2, voided since, to 1.3,
// number 3 passed the line, and number 4 went to 2.1. The generation 1 had one more ticket whose user got number 3.
type queue struct {
	*books
	past []audit.PastLine
	view audit.LineView
}

func inLine() *queue {
	q := &queue{books: sound()}
	q.campaign.Remote, q.campaign.Drained = true, 4
	q.campaign.Instants = firstcome.Instants{}
	for n, place := range [][2]int64{{1, 1}, {1, 3}, {}, {2, 1}} {
		q.coupons[n].Generation, q.coupons[n].Ticket = place[0], place[1]
	}
	q.campaign.Row.Line = firstcome.Line{Generation: 2, LastTicket: 3, ServedThrough: 1, Served: 1, Waiting: 2}
	q.past = []audit.PastLine{{Line: firstcome.Line{Generation: 1, LastTicket: 5, ServedThrough: 4, Served: 3, Waiting: 1}, Reason: "sold_out", EndedAt: at(2)}}
	q.view = audit.LineView{Line: q.campaign.Row.Line, Past: q.past}
	return q
}

// bury makes a dead letter of the last coupon.
func (q *queue) bury(l audit.Letter) {
	last := q.coupons[3]
	q.coupons = q.coupons[:3]
	q.campaign.Issued, q.campaign.InForce, q.campaign.Position = q.campaign.Issued-1, q.campaign.InForce-1, q.campaign.Position-1
	l.ID, l.Number, l.User, l.Open = 1, last.Number, last.User, true
	q.letters = append(q.letters, l)
}

func TestTheLineOfARemoteGateIsAuditedByWhatItsJournalSaid(t *testing.T) {
	buried := func(q *queue) { q.bury(audit.Letter{Generation: 2, Ticket: 1}) }
	for what, c := range map[string]struct {
		spoil func(*queue)
		want  string // part of the one breach; empty: there is none
	}{
		"as it should be":                  {func(*queue) {}, ""},
		"a dead letter of a ticket":        {buried, ""},
		"a coupon of the ticket before":    {func(q *queue) { q.coupons[1].Ticket = 1 }, "number 2 was issued to the ticket 1.1, behind number 1 to the ticket 1.1"},
		"tickets out of order":             {func(q *queue) { q.coupons[0].Ticket = 4 }, "number 2 was issued to the ticket 1.3, behind number 1 to the ticket 1.4"},
		"a generation before":              {func(q *queue) { q.coupons[0].Generation, q.coupons[0].Ticket = 2, 1 }, "behind number 1 to the ticket 2.1"},
		"a dead letter out of order":       {func(q *queue) { q.bury(audit.Letter{Generation: 1, Ticket: 2}) }, "number 4 was issued to the ticket 1.2, behind number 2 to the ticket 1.3"},
		"a dead letter beyond the line":    {func(q *queue) { q.bury(audit.Letter{Generation: 2, Ticket: 2}) }, "number 4 was issued to the ticket 2.2, and the tickets up to 2.1 have ended"},
		"a ticket that waits":              {func(q *queue) { q.coupons[3].Ticket = 2 }, "number 4 was issued to the ticket 2.2, and the tickets up to 2.1 have ended"},
		"a ticket behind the end":          {func(q *queue) { q.coupons[1].Ticket = 5 }, "number 2 was issued to the ticket 1.5, and the tickets up to 1.4 have ended"},
		"a generation that is not yet":     {func(q *queue) { q.coupons[3].Generation = 3 }, "and the line is in generation 2"},
		"an end that nobody told":          {func(q *queue) { q.campaign.Row.Line.Generation = 3 }, "the line is in generation 3, and 1 have ended"},
		"more coupons than served":         {func(q *queue) { q.past[0].Served = 1 }, "generation 1 counts 1 tickets served, and 2 coupons and dead letters name one"},
		"more served than there can be":    {func(q *queue) { q.past[0].Served = 4 }, "generation 1 counts 4 tickets served: 2 coupons and dead letters name one, and 1 others"},
		"more served, as a number is lost": {func(q *queue) { q.past[0].Served = 4; q.lost = append(q.lost, audit.Range{First: 5, Count: 1}) }, ""},
		"an end before a coupon":           {func(q *queue) { q.past[0].EndedAt = at(0) }, "generation 1 ended at 2026-12-24T10:00:00.000000Z, before a coupon of it was issued"},
		"an end that was none":             {func(q *queue) { q.past[0].Reason = "closed" }, "generation 1 ended at 2026-12-24T10:00:02.000000Z as closed, and nothing did so then"},
		"a generation that was lost":       {func(q *queue) { q.past[0].Reason = "lost" }, ""},
	} {
		q := inLine()
		c.spoil(q)
		source := q.source()
		source.Past = each(&q.past)
		source.Tickets = func(context.Context, firstcome.CampaignID, func(audit.Ticket)) error {
			t.Errorf("%s: the ledger is asked for tickets that it does not have", what)
			return nil
		}
		q.is(t, what, source, c.want)
	}
}

// is expects one breach of P9, or none.
func (q *queue) is(t *testing.T, what string, source audit.Source, want string) {
	t.Helper()
	report, err := audit.Ledger(t.Context(), source, "c", &secret)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, b := range report.Breaches.Shown {
		if b.Promise == "P9" {
			found = append(found, b.Text)
		}
	}
	if (len(found) > 0) != (want != "") || want != "" && !strings.Contains(strings.Join(found, "\n"), want) {
		t.Errorf("%s: found %q, want %q", what, found, want)
	}
}

func TestTheLineIsAuditedByWhatEverybodyIsTold(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(*queue)
		want  string
	}{
		"as it should be":          {func(*queue) {}, ""},
		"later":                    {func(q *queue) { q.view.Line.ServedThrough, q.view.Line.Waiting = 3, 0 }, ""},
		"a generation later":       {func(q *queue) { q.view = audit.LineView{Line: firstcome.Line{Generation: 9}} }, ""},
		"a coupon out of order":    {func(q *queue) { q.coupons[1].Ticket = 1 }, "number 2 was issued to the ticket 1.1, behind number 1"},
		"a ticket that waits":      {func(q *queue) { q.coupons[3].Ticket = 2 }, "number 4 was issued to the ticket 2.2, and the line is told to be at the ticket 2.1"},
		"a ticket behind the end":  {func(q *queue) { q.coupons[1].Ticket = 5 }, "number 2 was issued to the ticket 1.5"},
		"a generation to come":     {func(q *queue) { q.coupons[3].Generation = 3 }, "number 4 was issued to the ticket 3.1"},
		"a line that went back":    {func(q *queue) { q.view.Line.ServedThrough = 0 }, "number 4 was issued to the ticket 2.1, and the line is told to be at the ticket 2.0"},
		"too many in line":         {func(q *queue) { q.view.Line.Waiting = 3 }, "generation 2 is told of 3 tickets, up to 1 served and 3 in line, and 1 of them are coupons"},
		"an end of the live line":  {func(q *queue) { q.view.Past[0].Generation = 2 }, "generation 2 of the line is told to have ended"},
		"served more than was had": {func(q *queue) { q.view.Line.LastTicket = 2 }, "generation 2 is told of 2 tickets"},
	} {
		q := inLine()
		q.view.Past = append([]audit.PastLine{}, q.past...)
		c.spoil(q)
		source := q.source()
		source.Line = func(context.Context, firstcome.CampaignID) (audit.LineView, error) { return q.view, nil }
		q.campaign.Row = nil // as from outside
		source.Log = nil
		q.is(t, what, source, c.want)
	}
}
