//go:build !check

package redis_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestWhoInspectsTheGateSeesEveryHolderAndTheWholeJournal(t *testing.T) {
	const batches, each = 250, 9 // several pages of holders and of the journal
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	var issued []firstcome.Coupon
	for n := range batches {
		for _, d := range s.issue(n*each, each) {
			issued = append(issued, d.Coupon)
		}
	}
	s.do("XADD", keysOf[2], "*", "format", "9", "users", "x") // belongs to no coupon
	var journal, held []firstcome.Coupon
	err := s.gate.Unrecorded(t.Context(), "c", func(c firstcome.Coupon) error {
		journal = append(journal, c)
		return nil
	})
	stage.Must(t, err)
	if diff := cmp.Diff(issued, journal); diff != "" {
		t.Errorf("the journal is not what was issued (-issued +journal):\n%s", diff)
	}
	err = s.gate.Coupons(t.Context(), "c", func(c firstcome.Coupon) error {
		held = append(held, c)
		return nil
	})
	stage.Must(t, err)
	slices.SortFunc(held, func(a, b firstcome.Coupon) int { return int(a.Number - b.Number) })
	held = slices.Compact(held)
	for n := range issued {
		issued[n].Code = "" // holders have no code
	}
	if diff := cmp.Diff(issued, held); diff != "" {
		t.Errorf("the holders are not who was issued (-issued +held):\n%s", diff)
	}
}

func TestAnInspectionEndsWhenItsReaderSaysSo(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	s.issue(0, 3)
	stop := errors.New("stop")
	refuse := func(firstcome.Coupon) error { return stop }
	if err := s.gate.Coupons(t.Context(), "c", refuse); !errors.Is(err, stop) {
		t.Errorf("the holders end with %v", err)
	}
	if err := s.gate.Unrecorded(t.Context(), "c", refuse); !errors.Is(err, stop) {
		t.Errorf("the journal ends with %v", err)
	}
}

func TestWhoInspectsALineSeesEveryTicketOfIt(t *testing.T) {
	const people = 2500 // several pages of both keys
	s := newShop(t, services.Redis.Database(t), 9)
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeTerms, Terms: withPace(9, 0)})
	join(t, s.gate, 0, people)
	stage.Must(t, stage.Err(s.gate.Leave(t.Context(), "c", "user-2")))
	if _, err := s.gate.Serve(t.Context(), "c", 1); err != nil {
		t.Fatal(err)
	}
	var line, tickets []redis.Ticket
	stage.Must(t, s.gate.InLine(t.Context(), "c", func(t redis.Ticket) error {
		line = append(line, t)
		return nil
	}))
	stage.Must(t, s.gate.Tickets(t.Context(), "c", func(t redis.Ticket) error {
		tickets = append(tickets, t)
		return nil
	}))
	slices.SortFunc(tickets, func(a, b redis.Ticket) int { return int(a.Number - b.Number) })
	tickets = slices.Compact(tickets)
	var wantLine, wantTickets []redis.Ticket
	for n, user := range crowd(0, people)[1:] {
		ticket := redis.Ticket{Generation: 1, Number: int64(n + 2), User: user, Over: user == "user-2"}
		wantTickets = append(wantTickets, ticket)
		if ticket.JoinedAt = line[0].JoinedAt; !ticket.Over {
			wantLine = append(wantLine, ticket)
		}
	}
	if diff := cmp.Diff(wantLine, line); diff != "" || line[0].JoinedAt.IsZero() {
		t.Errorf("the line is another (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantTickets, tickets); diff != "" {
		t.Errorf("the tickets are others (-want +got):\n%s", diff)
	}
	got, past, err := s.gate.WrittenLine(t.Context(), "c")
	stage.Must(t, err)
	got.Due = time.Time{}
	want := firstcome.Line{Generation: 1, LastTicket: people, ServedThrough: 1, Served: 1, Waiting: people - 2}
	if diff := cmp.Diff(want, got); diff != "" || len(past) > 0 {
		t.Errorf("the counters are others (-want +got):\n%s", diff)
	}
}

func TestWhoInspectsALineHearsWhatCannotBeRead(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 9)
	ignore := func(redis.Ticket) error { return nil }
	s.do("XADD", keysOf[3], "1-1", "user", "a")
	s.do("HSET", keysOf[4], "a", "short")
	s.do("HSET", keysOf[0], "line", "1 2", "past", "1")
	_, _, err := s.gate.WrittenLine(t.Context(), "c")
	s.do("HDEL", keysOf[0], "line")
	_, _, err2 := s.gate.WrittenLine(t.Context(), "c")
	for what, err := range map[string]error{
		"line": s.gate.InLine(t.Context(), "c", ignore), "tickets": s.gate.Tickets(t.Context(), "c", ignore), "counters": err, "past": err2,
	} {
		if !redis.Spoiled(err) {
			t.Errorf("of the %s: %v", what, err)
		}
	}
}
