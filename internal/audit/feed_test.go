package audit_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/test/stage"
)

// A fedQueue is the books of a campaign whose line a topic keeps, and the topic: number 1 went to the ticket 1.1, number 2, voided since, to 1.3,
// number 3 passed the line, and number 4 went to 2.1. The record of 1.2 is nobody's, and 1.4 was of the user of number 3. The user d of 2.2 left.
type fedQueue struct {
	*books
	left    []audit.Leaver
	records map[int64]firstcome.UserID // by offset
}

func fed() *fedQueue {
	q := &fedQueue{books: sound(), left: []audit.Leaver{{User: "d", Generation: 2, Through: 2}}}
	q.campaign.Feed = &firstcome.Feed{Topic: "t", Partition: 3}
	for n, place := range [][2]int64{{1, 1}, {1, 3}, {}, {2, 1}} {
		q.coupons[n].Generation, q.coupons[n].Ticket = place[0], place[1]
	}
	q.campaign.Line = firstcome.Line{Generation: 2, LastTicket: 2, ServedThrough: 2, Served: 1, First: 20, Begun: true}
	q.past = []audit.PastLine{{Line: firstcome.Line{Generation: 1, LastTicket: 4, ServedThrough: 4, Served: 3, First: 10, Begun: true}, Reason: "sold_out", EndedAt: at(2)}}
	q.records = map[int64]firstcome.UserID{10: "a", 11: "", 12: "b", 13: "c", 20: "b", 21: "d", 22: "waits"}
	return q
}

func (q *fedQueue) source() audit.Source {
	source := q.books.source()
	source.Leavers = each(&q.left)
	return source
}

// bury makes a dead letter of the last coupon.
func (q *fedQueue) bury(l audit.Letter) {
	last := q.coupons[3]
	q.coupons = q.coupons[:3]
	l.ID, l.Number, l.User, l.Open = 1, last.Number, last.User, true
	q.letters = append(q.letters, l)
}

func TestALineInATopicIsHeldAgainstItsRecords(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(*fedQueue)
		want  string // part of the one breach; empty: there is none
	}{
		"as it should be":       {func(*fedQueue) {}, ""},
		"another user's ticket": {func(q *fedQueue) { q.records[10] = "x"; q.coupons[0].User = "a" }, `the ticket 1.1 of the user "x" was served to "a"`},
		"nobody's ticket":       {func(q *fedQueue) { q.records[12] = "" }, `the ticket 1.3 of the user "" was served to "b"`},
		"not the earliest": {func(q *fedQueue) {
			q.records[9], q.past[0].First = "a", 9
			q.coupons[0].Ticket = 2
			q.coupons[1].Ticket = 4
			q.past[0].LastTicket, q.past[0].ServedThrough = 5, 5
		}, `the user "a" was served with the ticket 1.2, and had the ticket 1.1 before it`},
		"skipped":                      {func(q *fedQueue) { q.records[11] = "x" }, `the ticket 1.2 of the user "x" was passed over`},
		"left, and came again":         {func(q *fedQueue) { q.left[0].Through = 1 }, `the ticket 2.2 of the user "d" was passed over`},
		"left in another generation":   {func(q *fedQueue) { q.left[0].Generation = 1 }, `the ticket 2.2 of the user "d" was passed over`},
		"skipped, as a number is lost": {func(q *fedQueue) { q.records[11] = "x"; q.lost = append(q.lost, audit.Range{First: 5, Count: 1}) }, ""},
		"a dead letter's":              {func(q *fedQueue) { q.bury(audit.Letter{Generation: 2, Ticket: 1}) }, ""},
		"in another partition":         {func(q *fedQueue) { q.past[0].Reason = "lost"; q.records[10] = "x" }, ""},
		"gone":                         {func(q *fedQueue) { delete(q.records, 10); delete(q.records, 11) }, ""},
	} {
		q := fed()
		c.spoil(q)
		report, err := audit.Feed(t.Context(), audit.FeedSource{Source: q.source(), Records: q.read}, "c")
		stage.Must(t, err)
		var found []string
		for _, b := range report.Breaches.Shown {
			found = append(found, b.Text)
		}
		if len(found) > 1 || (len(found) > 0) != (c.want != "") || c.want != "" && !strings.Contains(found[0], c.want) {
			t.Errorf("%s: found %q, want %q", what, found, c.want)
		}
	}
	q := fed()
	delete(q.records, 10)
	delete(q.records, 13)
	report, err := audit.Feed(t.Context(), audit.FeedSource{Source: q.source(), Records: q.read}, "c")
	stage.Must(t, err)
	stage.Same(t, "the counts", audit.FeedReport{Campaign: "c", Tickets: 4, Over: 2, Gone: 2}, *report)
}

func (q *fedQueue) read(_ context.Context, _ firstcome.Feed, _, first, end int64, each func(int64, firstcome.UserID)) error {
	var offsets []int64
	for offset := range q.records {
		if offset >= first && offset < end {
			offsets = append(offsets, offset)
		}
	}
	slices.Sort(offsets)
	for _, offset := range offsets {
		each(offset, q.records[offset])
	}
	return nil
}

func TestALineAtItsGateIsInNoTopic(t *testing.T) {
	if report, err := audit.Feed(t.Context(), audit.FeedSource{Source: sound().source()}, "c"); report != nil || err != nil {
		t.Errorf("%+v, %v", report, err)
	}
}
