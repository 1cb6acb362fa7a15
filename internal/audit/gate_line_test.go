package audit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

// A queueThere is a line at a remote gate, and what the ledger was told of it.
type queueThere struct {
	counters audit.LineView
	inLine   []audit.GateTicket
	tickets  []audit.GateTicket
	issuedTo map[int64][2]int64 // by number: generation and ticket
}

func (q *queueThere) line() audit.GateLine {
	all := func(list *[]audit.GateTicket) func(context.Context, firstcome.CampaignID, func(audit.GateTicket) error) error {
		return func(_ context.Context, _ firstcome.CampaignID, each func(audit.GateTicket) error) error {
			for _, t := range *list {
				if err := each(t); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return audit.GateLine{
		Counters: func(context.Context, firstcome.CampaignID) (audit.LineView, error) { return q.counters, nil },
		InLine:   all(&q.inLine), Tickets: all(&q.tickets),
	}
}

// issueTo sets the ticket of a number everywhere.
func (s *remote) issueTo(number, generation, ticket int64) {
	s.issuedTo[number] = [2]int64{generation, ticket}
	for n := range s.coupons {
		if c := &s.coupons[n]; c.Number == number {
			c.Generation, c.Ticket = generation, ticket
		}
	}
	for n := range s.journal {
		if c := &s.journal[n]; c.Number == number {
			c.Generation, c.Ticket = generation, ticket
		}
	}
	for n := range s.letters {
		if l := &s.letters[n]; l.Number == number {
			l.Generation, l.Ticket = generation, ticket
		}
	}
}

// withLine returns a remote whose gate keeps a line. Number 3 went to the ticket 1.1 and 4 to 2.1, the dead letter 5 to 2.3, and number 10, which is
// only in the journal, to 2.4. The user i got number 9 directly, and had 2.2. z was sent away with generation 1; l and m left; p and q are in line.
// The gate has not removed the ticket of j, who was served.
func withLine() *remote {
	s := atRest()
	s.issuedTo = map[int64][2]int64{}
	s.issueTo(3, 1, 1)
	s.issueTo(4, 2, 1)
	s.issueTo(5, 2, 3)
	s.issueTo(10, 2, 4)
	s.counters = audit.LineView{
		Line: firstcome.Line{Generation: 2, LastTicket: 8, ServedThrough: 4, Served: 4, Waiting: 2},
		Past: []firstcome.PastLine{{Line: firstcome.Line{Generation: 1, LastTicket: 2, ServedThrough: 1, Served: 1, Waiting: 1}, Reason: "sold_out", EndedAt: at(2)}},
	}
	s.past = append(s.past, s.counters.Past...)
	s.campaign.Line = s.counters.Line
	s.inLine = []audit.GateTicket{ticket(1, 2, "z"), ticket(2, 4, "j"), ticket(2, 6, "p"), ticket(2, 7, "q")}
	s.tickets = []audit.GateTicket{ticket(1, 2, "z"), over(2, 2, "i"), ticket(2, 4, "j"), over(2, 5, "l"), ticket(2, 6, "p"), ticket(2, 7, "q"), over(2, 8, "m")}
	return s
}

func ticket(generation, number int64, user firstcome.UserID) audit.GateTicket {
	return audit.GateTicket{Generation: generation, Number: number, User: user, JoinedAt: at(int(10*generation + number))}
}

func over(generation, number int64, user firstcome.UserID) audit.GateTicket {
	t := ticket(generation, number, user)
	t.Over = true
	return t
}

func TestASoundLineAtAGateHasNoBreach(t *testing.T) {
	want := audit.GateReport{Campaign: "c", Holders: 6, Unrecorded: 1, Waiting: 2}
	if diff := cmp.Diff(want, gateOf(t, withLine())); diff != "" {
		t.Error(diff)
	}
	neverLined := atRest()
	neverLined.counters.Line.Generation = 1
	if found := gateOf(t, neverLined).Breaches; found.Total != 0 {
		t.Error(found.Shown)
	}
}

func TestEveryBreachOfALineAtAGateIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(s *remote)
		text  string
	}{
		"in line, and not found": {func(s *remote) { s.tickets[5].User = "x" }, `the ticket 2.7 of the user "q" is in line, but is not the ticket that the gate finds for them`},
		"found, and not in line": {func(s *remote) { s.tickets = append(s.tickets, ticket(2, 5, "x")) }, `the ticket 2.5 of the user "x" has not ended, but is not in line`},
		"another ticket found":   {func(s *remote) { s.tickets[5].Number = 8 }, `the ticket 2.7 of the user "q" is in line, but is not`},
		"left, and in line":      {func(s *remote) { s.tickets[5].Over = true }, `the ticket 2.7 of the user "q" is in line, but is not`},
		"twice in line": {func(s *remote) {
			s.inLine[3].User, s.tickets = "p", append(s.tickets[:5], s.tickets[6:]...)
		}, `the user "p" is in line twice, with the tickets 2.6 and 2.7`},
		"passed over": {func(s *remote) {
			s.counters.Line.ServedThrough = 6
		}, `the ticket 2.6 of the user "p" was passed over`},
		"passed over, and not in line": {func(s *remote) { s.tickets[1].Over = false }, `the ticket 2.2 of the user "i" was passed over`},
		"above the last ticket": {func(s *remote) {
			s.inLine[3].Number, s.tickets[5].Number = 9, 9
		}, `the ticket 2.9 of the user "q" was not given`},
		"left above the last ticket": {func(s *remote) { s.tickets[6].Number = 9 }, `the ticket 2.9 of the user "m" was not given`},
		"of a generation to come": {func(s *remote) {
			s.inLine[3].Generation, s.tickets[5].Generation = 3, 3
		}, `the ticket 3.7 of the user "q" was not given`},
		"given before the one ahead": {func(s *remote) { s.inLine[3].JoinedAt = at(20) }, "the ticket 2.7 was given at 2026-12-24T10:00:20.000000Z, before the ticket 2.6"},
		"in line with a coupon":      {func(s *remote) { s.inLine[3].User, s.tickets[5].User = "a", "a" }, `the user "a" has the ticket 2.7, which has not ended, and holds number 1`},
		"a coupon of who is in line": {func(s *remote) {
			s.issueTo(10, 2, 7)
		}, "number 10 was issued to the ticket 2.7, whose turn has not come at the gate"},
		"a coupon of a generation to come": {func(s *remote) { s.issueTo(10, 3, 1) }, "number 10 was issued to the ticket 3.1, whose turn has not come"},
		"another ticket in the ledger":     {func(s *remote) { s.issuedTo[3] = [2]int64{1, 2} }, "number 3 was issued to the ticket 1.2 at the gate, and to the ticket 1.1 in the ledger"},
		"no ticket in the ledger":          {func(s *remote) { s.coupons[3].Ticket, s.coupons[3].Generation = 0, 0 }, "number 4 was issued to the ticket 2.1 at the gate, and to the ticket 0.0 in the ledger"},
		"more coupons than served":         {func(s *remote) { s.counters.Line.Served = 2 }, "generation 2 counts 2 tickets served, and 3 coupons name one of them"},
		"more served than issued": {func(s *remote) {
			s.counters.Line.LastTicket, s.counters.Line.Served = 20, 10
		}, "generation 2 counts 10 tickets served, and 9 numbers were not issued to another generation"},
		"fewer in line than counted": {func(s *remote) { s.inLine, s.tickets = s.inLine[:3], append(s.tickets[:5], s.tickets[6:]...) }, "generation 2 counts 2 tickets in line, and has 1"},
		"more in line than there can be": {func(s *remote) {
			s.counters.Line.Waiting = 5
		}, "generation 2 counts 8 tickets, 4 of them served, 5 in line, and each up to 4 ended; 3 have coupons, and 3 others have ended"},
		"more served and in line than given": {func(s *remote) {
			s.counters.Line.Served = 7
		}, "generation 2 counts 8 tickets, 7 of them served, 2 in line"},
		"more have ended than were given": {func(s *remote) {
			s.counters.Line.LastTicket = 7
		}, "generation 2 counts 7 tickets, 4 of them served, 2 in line, and each up to 4 ended; 3 have coupons, and 3 others have ended"},
		"a ledger ahead":        {func(s *remote) { s.campaign.Line.LastTicket = 9 }, "the ledger was told that the line is at the ticket 2.4 of 9, 4 served"},
		"a ledger that serves":  {func(s *remote) { s.campaign.Line.Served = 5 }, "the ledger was told that the line is at the ticket 2.4 of 8, 5 served; at the gate it is at 2.4 of 8, 4 served"},
		"a ledger further on":   {func(s *remote) { s.campaign.Line.ServedThrough = 5 }, "the ledger was told that the line is at the ticket 2.5 of 8"},
		"a ledger's generation": {func(s *remote) { s.campaign.Line = firstcome.Line{Generation: 3} }, "the ledger was told that the line is at the ticket 3.0 of 0"},
		"another end":           {func(s *remote) { s.past[0].Waiting = 0 }, "generation 1 ended as sold_out at 2026-12-24T10:00:02.000000Z with 2 tickets, 1 served, 1 in line, and each up to 1 ended at the gate, but in the ledger it"},
		"an end that is later":  {func(s *remote) { s.past[0].EndedAt = at(3) }, "generation 1 ended as sold_out at 2026-12-24T10:00:02.000000Z"},
	} {
		t.Run(name, func(t *testing.T) {
			s := withLine()
			test.spoil(s)
			expectBreaches(t, gateOf(t, s).Breaches, []string{"P9"}, test.text)
		})
	}
}

// TestALineInUseHasNoBreach lets users join, leave and be served, and a generation end, between the readings of gate and ledger.
func TestALineInUseHasNoBreach(t *testing.T) {
	serve := func(s *remote) { // p, whom nobody has recorded yet
		s.journal = append(s.journal, firstcome.Coupon{Campaign: "c", Number: 11, User: "p", IssuedAt: at(9)})
		s.holders["p"], s.state.InForce, s.state.LastNumber, s.campaign.Quantity = 11, 7, 11, 9
		s.issueTo(11, 2, 6)
		s.counters.Line.ServedThrough, s.counters.Line.Served, s.counters.Line.Waiting = 6, 5, 1
		s.inLine, s.tickets = s.inLine[3:], append(s.tickets[:4], s.tickets[5:]...)
	}
	for name, meanwhile := range map[string]func(*remote){
		"served": serve,
		"joined": func(s *remote) {
			s.inLine, s.tickets = append(s.inLine, ticket(2, 9, "r")), append(s.tickets, ticket(2, 9, "r"))
			s.counters.Line.LastTicket, s.counters.Line.Waiting = 9, 3
		},
		"left": func(s *remote) {
			s.inLine, s.tickets[5].Over, s.counters.Line.Waiting = s.inLine[:3], true, 1
		},
		"ended": func(s *remote) {
			was := s.counters.Line
			s.counters.Past = append(s.counters.Past, firstcome.PastLine{Line: was, Reason: "closed", EndedAt: at(30)})
			s.counters.Line = firstcome.Line{Generation: 3}
			s.inLine = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := withLine()
			s.between = func() { meanwhile(s) }
			if report := gateOf(t, s); report.Breaches.Total != 0 {
				t.Error(report.Breaches.Shown)
			}
		})
	}
}

// TestWhatMovesInBothReadingsAlikeIsNoBreach lets a user join in each reading of the gate, and leave between the two.
func TestWhatMovesInBothReadingsAlikeIsNoBreach(t *testing.T) {
	s := withLine()
	gate, reading := s.gate(), 0
	gate.Line.Counters = func(context.Context, firstcome.CampaignID) (audit.LineView, error) {
		v := s.counters
		v.Line.LastTicket, v.Line.Waiting = 8+int64(reading+1)/2, 2+int64(reading%2)
		reading++
		return v, nil
	}
	s.state.LastNumber++ // so that there is a second one
	report, err := audit.Gate(t.Context(), s.source(), gate, "c")
	if err != nil || reading != 4 || report.Breaches.Total != 1 || !report.Moving || !mentions(report.Breaches, "issued the numbers 11 to 11") {
		t.Errorf("%d readings: %+v, %v", reading, report, err)
	}
}

// TestAGenerationThatEndsInTheSecondReadingIsNoBreach lets a user join in the first reading, who is then sent away.
func TestAGenerationThatEndsInTheSecondReadingIsNoBreach(t *testing.T) {
	s := withLine()
	gate, reading := s.gate(), 0
	gate.Line.Counters = func(context.Context, firstcome.CampaignID) (audit.LineView, error) {
		v := s.counters
		if reading++; reading == 4 {
			v.Line = firstcome.Line{Generation: 3}
		}
		return v, nil
	}
	s.inLine = s.inLine[:3]
	report, err := audit.Gate(t.Context(), s.source(), gate, "c")
	if err != nil || reading != 4 || report.Breaches.Total != 0 {
		t.Errorf("%d readings: %+v, %v", reading, report, err)
	}
}

// TestALineThatWasLostIsNotHeldAgainstWhatTheLedgerKnew has an old gate that is back.
func TestALineThatWasLostIsNotHeldAgainstWhatTheLedgerKnew(t *testing.T) {
	s := withLine()
	s.past = append(s.past, firstcome.PastLine{Line: s.counters.Line, Reason: "lost", EndedAt: at(60)})
	s.campaign.Line = firstcome.Line{Generation: 3}
	if found := gateOf(t, s).Breaches; found.Total != 0 {
		t.Error(found.Shown)
	}
}

// TestALineThatCannotBeReadAtTheGateIsABreach makes each list of the line fail.
func TestALineThatCannotBeReadAtTheGateIsABreach(t *testing.T) {
	spoiled := fmt.Errorf("the entry 2-6: %w", audit.ErrUnreadable)
	fails := func(context.Context, firstcome.CampaignID, func(audit.GateTicket) error) error { return spoiled }
	for name, spoil := range map[string]func(*audit.GateLine){
		"counters": func(l *audit.GateLine) {
			l.Counters = func(context.Context, firstcome.CampaignID) (audit.LineView, error) { return audit.LineView{}, spoiled }
		},
		"in line": func(l *audit.GateLine) { l.InLine = fails },
		"tickets": func(l *audit.GateLine) { l.Tickets = fails },
	} {
		t.Run(name, func(t *testing.T) {
			s := withLine()
			gate := s.gate()
			spoil(&gate.Line)
			report, err := audit.Gate(t.Context(), s.source(), gate, "c")
			if err != nil || !mentions(report.Breaches, "the entry 2-6") {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}
