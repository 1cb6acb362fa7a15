package audit_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

// A fedRemote is a remote whose line a feed keeps, with those who left by the ledger.
type fedRemote struct {
	*remote
	leavers []audit.Leaver
}

func (s *fedRemote) report(t *testing.T) audit.GateReport {
	t.Helper()
	source := s.source()
	source.Leavers = each(&s.leavers)
	report, err := audit.Gate(t.Context(), source, s.gate(), "c")
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// withFeed returns a remote whose line is in the partition 3 of a topic. Generation 2 begins at the offset 100. Number 3 went to the ticket 1.1, 4 to
// 2.1, the dead letter 5 to 2.3, and number 10, which is in the journal only, to 2.6. Of the six tickets that have ended, one was of a holder,
// one nobody's, and one of l, who left. So did m, whose turn has not come, and n, of whom the ledger does not know.
func withFeed() *fedRemote {
	s := &fedRemote{remote: atRest()}
	s.issuedTo = map[int64][2]int64{}
	s.issueTo(3, 1, 1)
	s.issueTo(4, 2, 1)
	s.issueTo(5, 2, 3)
	s.issueTo(10, 2, 6)
	s.counters = audit.LineView{
		Line: firstcome.Line{Generation: 2, LastTicket: 6, ServedThrough: 6, Served: 4, First: 100, Begun: true},
		Past: []audit.PastLine{{Line: firstcome.Line{Generation: 1, LastTicket: 2, ServedThrough: 2, Served: 1, Begun: true}, Reason: "sold_out", EndedAt: at(2)}},
		Feed: &firstcome.Feed{Topic: "id", Partition: 3}, Left: 3,
	}
	s.past = append(s.past, s.counters.Past...)
	s.campaign.Line = s.counters.Line
	s.campaign.Feed = s.counters.Feed
	s.tickets = []audit.GateTicket{over(2, 5, "l"), over(2, 9, "m"), over(2, 12, "n")}
	s.leavers = []audit.Leaver{{Generation: 1, Through: 7, User: "z"}, {Generation: 2, Through: 5, User: "l"}, {Generation: 2, Through: 8, User: "m"}}
	return s
}

func TestTheSoundLineOfAFeedAtAGateHasNoBreach(t *testing.T) {
	for what, move := range map[string]func(s *fedRemote){
		"as it is": func(*fedRemote) {},
		"a ledger that knows no coupon of the last turns": func(s *fedRemote) {
			s.campaign.Line.ServedThrough, s.campaign.Line.LastTicket, s.campaign.Line.Served = 3, 3, 2
		},
		"a partition that was given up": func(s *fedRemote) { s.campaign.Feed = &firstcome.Feed{Topic: "id", Partition: -1} },
		"another feed on its way": func(s *fedRemote) {
			s.campaign.Feed = &firstcome.Feed{Topic: "id", Partition: 4}
			s.campaign.Version++
		},
		"the next generation, of which the gate has not heard": func(s *fedRemote) {
			s.counters.Past = append(s.counters.Past, audit.PastLine{Line: s.counters.Line, Reason: "sold_out", EndedAt: at(30)})
			s.counters.Line, s.counters.Left, s.tickets = firstcome.Line{Generation: 3}, 0, nil
			s.campaign.Line = firstcome.Line{Generation: 3, First: 200, Begun: true}
		},
		"an end meanwhile": func(s *fedRemote) {
			s.between = func() {
				s.counters.Past = append(s.counters.Past, audit.PastLine{Line: s.counters.Line, Reason: "sold_out", EndedAt: at(30)})
				s.counters.Line, s.counters.Left, s.tickets = firstcome.Line{Generation: 3}, 0, nil
			}
		},
		"somebody who leaves meanwhile": func(s *fedRemote) {
			s.between = func() {
				s.counters.Left, s.tickets, s.leavers = 4, append(s.tickets, over(2, 30, "o")), append(s.leavers, audit.Leaver{Generation: 2, Through: 30, User: "o"})
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := withFeed()
			move(s)
			if found := s.report(t).Breaches; found.Total != 0 {
				t.Error(found.Shown)
			}
		})
	}
	if diff := cmp.Diff(audit.GateReport{Campaign: "c", Holders: 6, Unrecorded: 1}, withFeed().report(t)); diff != "" {
		t.Error(diff)
	}
}

func TestEveryBreachOfTheLineOfAFeedAtAGateIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(s *fedRemote)
		text  string
	}{
		"another partition":                          {func(s *fedRemote) { s.campaign.Feed = &firstcome.Feed{Topic: "id", Partition: 4} }, "by the gate the line is in the partition 3 of the topic id, and by the ledger it is in the partition 4 of the topic id"},
		"another topic":                              {func(s *fedRemote) { s.campaign.Feed = &firstcome.Feed{Topic: "other", Partition: 3} }, "by the ledger it is in the partition 3 of the topic other"},
		"no feed by the ledger":                      {func(s *fedRemote) { s.campaign.Feed = nil }, "by the ledger it is at its gate"},
		"no feed at the gate":                        {func(s *fedRemote) { s.counters.Feed = nil }, "by the gate the line is at its gate, and by the ledger it is in"},
		"another beginning":                          {func(s *fedRemote) { s.campaign.Line.First = 99 }, "generation 2 begins at the offset 100 at the gate, and at 99 by the ledger"},
		"a beginning that the ledger does not know":  {func(s *fedRemote) { s.campaign.Line.Begun = false }, "generation 2 has begun at the gate, and the ledger does not know it"},
		"a generation that the ledger does not know": {func(s *fedRemote) { s.campaign.Line = firstcome.Line{Generation: 1, Begun: true} }, "generation 2 has begun at the gate, and the ledger does not know it"},
		"tickets of a generation that has not begun": {func(s *fedRemote) { s.counters.Line.Begun = false }, "generation 2 counts 6 tickets that have ended, 4 served, 0 in line, and each up to 6 ended; begun: false"},
		"people in line":                             {func(s *fedRemote) { s.counters.Line.Waiting = 1 }, "generation 2 counts 6 tickets that have ended, 4 served, 1 in line"},
		"tickets passed over":                        {func(s *fedRemote) { s.counters.Line.ServedThrough = 7 }, "generation 2 counts 6 tickets that have ended, 4 served, 0 in line, and each up to 7"},
		"more served than ended":                     {func(s *fedRemote) { s.counters.Line.Served = 7 }, "generation 2 counts 6 tickets that have ended, 7 served"},
		"more coupons than served":                   {func(s *fedRemote) { s.counters.Line.Served = 2 }, "generation 2 counts 2 tickets served, and 3 coupons name one of them"},
		"a coupon of a ticket to come":               {func(s *fedRemote) { s.issueTo(10, 2, 7) }, "number 10 was issued to the ticket 2.7, whose turn has not come at the gate"},
		"a ledger further on":                        {func(s *fedRemote) { s.campaign.Line.ServedThrough = 7 }, "the ledger was told that the line is at the ticket 2.7"},
		"a ledger in a later generation":             {func(s *fedRemote) { s.campaign.Line = firstcome.Line{Generation: 3} }, "the ledger was told that the line is at the ticket 3.0"},
		"another end":                                {func(s *fedRemote) { s.past[0].Served = 2 }, "generation 1 ended as sold_out"},
		"somebody in line":                           {func(s *fedRemote) { s.inLine = append(s.inLine, ticket(2, 7, "p")) }, `the ticket 2.7 of the user "p" is in line at the gate, and a topic keeps the line`},
		"a ticket":                                   {func(s *fedRemote) { s.tickets[2].Over = false }, `the ticket 2.12 of the user "n" was not given by the gate`},
		"who left what is to come":                   {func(s *fedRemote) { s.tickets[2].Generation = 3 }, `the ticket 3.12 of the user "n" was not given by the gate`},
		"who left, not counted":                      {func(s *fedRemote) { s.counters.Left = 2 }, "the gate counts 2 users who left, and has 3"},
		"who left, gone":                             {func(s *fedRemote) { s.tickets, s.counters.Left = s.tickets[1:], 2 }, `the user "l" left with all tickets up to 2.5, and the gate would serve them`},
		"who left, with an earlier ticket":           {func(s *fedRemote) { s.tickets[1].Number = 7 }, `the user "m" left with all tickets up to 2.8, and the gate would serve them`},
		"who left, of an older generation":           {func(s *fedRemote) { s.tickets[1].Generation = 1 }, `the user "m" left with all tickets up to 2.8, and the gate would serve them`},
		"who left, and was served": {func(s *fedRemote) {
			s.tickets = append(s.tickets, over(2, 1, "b"))
			s.counters.Left = 4
		}, `number 4 was issued to the ticket 2.1 of the user "b", who had left with all tickets up to 1`},
	} {
		t.Run(name, func(t *testing.T) {
			s := withFeed()
			test.spoil(s)
			expectBreaches(t, s.report(t).Breaches, []string{"P9"}, test.text)
		})
	}
}

// TestWhoLeftAndCannotBeReadIsNoSilence has the ledger not say who left.
func TestWhoLeftAndCannotBeReadIsNoSilence(t *testing.T) {
	s := withFeed()
	source := s.source()
	source.Leavers = func(context.Context, firstcome.CampaignID, func(audit.Leaver)) error { return audit.ErrUnreadable }
	report, err := audit.Gate(t.Context(), source, s.gate(), "c")
	if err != nil || report.Breaches.Total != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}
