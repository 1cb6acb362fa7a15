package conform

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/stage"
)

// served returns a coupon that was issued to a ticket.
func served(number, generation, ticket int64) firstcome.Coupon {
	c := stage.Coupon("c", number)
	c.Generation, c.Ticket = generation, ticket
	return c
}

// ended returns a generation of four tickets that ended.
func ended(generation int64, reason string) firstcome.PastLine {
	return firstcome.PastLine{
		Line:   firstcome.Line{Generation: generation, LastTicket: 4, ServedThrough: 2, Served: 2, Waiting: 1},
		Reason: reason, EndedAt: stage.Epoch.Add(time.Duration(generation) * time.Second),
	}
}

// hasLine expects what the ledger knows of the line.
func (k *kept) hasLine(line firstcome.Line, past ...firstcome.PastLine) {
	k.t.Helper()
	got, err := k.LineOf(k.t.Context(), "c")
	stage.Must(k.t, err)
	if diff := cmp.Diff(line, got.Line) + cmp.Diff(past, slices.Clone(got.Past)); diff != "" {
		k.t.Errorf("of the line it has something else (-want +got):\n%s", diff)
	}
}

// reports expects that the ledger takes coupons and a report.
func (k *kept) reports(through int64, r gate.LineReport, coupons ...firstcome.Coupon) {
	k.t.Helper()
	b := k.batch(coupons...)
	b.Line = r
	k.drained(through, nil, false)(k.Record(k.t.Context(), b))
}

func lineReported(k *kept) {
	k.create(100)
	k.hasLine(firstcome.Line{Generation: 1})
	first := gate.LineReport{Line: firstcome.Line{Generation: 1, LastTicket: 3, ServedThrough: 2, Served: 2, Waiting: 1}}
	k.reports(2, first, served(1, 1, 1), served(2, 1, 2))
	k.hasLine(first.Line)
	left := first
	left.Line.Waiting = 0
	k.reports(2, left) // somebody left, and nothing was issued since
	k.hasLine(left.Line)
	turned := gate.LineReport{
		Line: firstcome.Line{Generation: 3, LastTicket: 1, Waiting: 1},
		Past: []firstcome.PastLine{ended(1, "sold_out"), ended(2, "closed")},
	}
	k.reports(2, turned)
	for _, again := range []gate.LineReport{first, turned, {}, {Past: turned.Past[:1]}} { // entries are given again
		k.reports(2, again, served(1, 1, 1))
	}
	k.hasLine(turned.Line, ended(2, "closed"), ended(1, "sold_out"))
	k.reports(3, gate.LineReport{Line: firstcome.Line{Generation: 3, LastTicket: 9, ServedThrough: 1, Served: 1, Waiting: 8}}, served(3, 3, 1))
	k.hasLine(firstcome.Line{Generation: 3, LastTicket: 9, ServedThrough: 1, Served: 1, Waiting: 8}, ended(2, "closed"), ended(1, "sold_out"))
	buried := k.batch(served(4, 3, 2))
	buried.Line = gate.LineReport{Line: firstcome.Line{Generation: 4}, Past: []firstcome.PastLine{ended(3, "closed")}}
	k.drained(4, []int64{4}, false)(k.Bury(k.t.Context(), buried, "a trial"))
	k.hasLine(firstcome.Line{Generation: 4}, ended(3, "closed"), ended(2, "closed"), ended(1, "sold_out"))
}

func ticketKept(k *kept) {
	k.create(100)
	k.records(1, nil, served(1, 1, 7))
	k.records(1, nil, served(1, 1, 7))
	k.buries(2, served(2, 1, 8))
	k.records(2, []int64{2}, served(2, 1, 8))
	k.records(4, nil, stage.Coupon("c", 3), served(4, 1, 9)) // some passed the line
	k.records(6, nil, served(5, 2, 1), stage.Coupon("c", 6))
	coupons, letters, err := k.Kept(k.t.Context(), "c")
	var places []string
	for _, c := range coupons {
		places = append(places, fmt.Sprintf("%d@%d.%d", c.Number, c.Generation, c.Ticket))
	}
	if diff := cmp.Diff([]string{"1@1.7", "3@0.0", "4@1.9", "5@2.1", "6@0.0"}, places); diff != "" || err != nil || letters != 1 {
		k.t.Errorf("it has %d dead letters, %v, and other coupons (-want +got):\n%s", letters, err, diff)
	}
}
