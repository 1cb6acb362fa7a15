package redis

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// What an entry says of the campaign's waiting line, beside what was issued:
//
//	generation, tickets  of those who were served: a ticket for each of users, ascending
//	line                 generation last_ticket served_through served waiting, as they are behind the script
//	ended                generation reason ended_at last_ticket served_through served waiting, of a generation that ended
//
// A script that ends a generation and issues nothing writes an entry without users.

// tickets returns the generation and the tickets of so many users; 0 of those who were issued without a line.
func (e item) tickets(users int) (generation int64, tickets []int64, err error) {
	text, served := e.fields["tickets"]
	if _, said := e.fields["generation"]; !served && !said {
		return 0, make([]int64, users), nil
	}
	if generation, err = e.number("generation"); err != nil {
		return 0, nil, err
	}
	if tickets, err = numbers(strings.Split(text, separator)); err != nil {
		return 0, nil, fmt.Errorf("its field tickets: %w", err)
	}
	ascend := slices.IsSorted(tickets) && len(slices.Compact(slices.Clone(tickets))) == len(tickets)
	if len(tickets) != users || tickets[0] < 1 || !ascend {
		return 0, nil, fmt.Errorf("its field tickets has %d tickets for %d users, or not in their order", len(tickets), users)
	}
	return generation, tickets, nil
}

// line returns what an item says of the line, if anything.
func (e item) line() (r gate.LineReport, err error) {
	if text, said := e.fields["line"]; said {
		if r.Line, err = lineOf(strings.Fields(text)); err != nil {
			return r, fmt.Errorf("its field line is %q: %w", text, err)
		}
	}
	if text, said := e.fields["ended"]; said {
		past, err := pastOf(strings.Fields(text))
		if err != nil {
			return r, fmt.Errorf("its field ended is %q: %w", text, err)
		}
		r.Past = []gate.PastLine{past}
	}
	return r, nil
}

// pastOf returns a generation that ended from the words of the field ended.
func pastOf(words []string) (p gate.PastLine, err error) {
	if len(words) != 7 {
		return p, errors.New("it has not seven words")
	}
	l, err := lineOf(slices.Concat(words[:1], words[3:]))
	if err != nil {
		return p, err
	}
	if words[1] != firstcome.SoldOut.String() && words[1] != firstcome.Closed.String() {
		return p, errors.New("that is no reason")
	}
	at, err := numbers(words[2:3])
	if err != nil || at[0] == 0 || l.LastTicket == 0 {
		return p, errors.New("nobody was in it, or it did not end")
	}
	return gate.PastLine{
		Generation: l.Generation, Reason: words[1], EndedAt: time.UnixMicro(at[0]).UTC(), LastTicket: l.LastTicket,
		ServedThrough: l.ServedThrough, Served: l.Served, Waiting: l.Waiting,
	}, nil
}

// lineOf returns a line from its five numbers. It refuses one that no line can be, as the ledger does.
func lineOf(words []string) (l firstcome.Line, err error) {
	n, err := numbers(words)
	switch {
	case err != nil:
		return firstcome.Line{}, err
	case len(n) != 5:
		return firstcome.Line{}, errors.New("it has not five numbers")
	}
	l.Generation, l.LastTicket, l.ServedThrough, l.Served, l.Waiting = n[0], n[1], n[2], n[3], n[4]
	if !possible(l) {
		return firstcome.Line{}, errors.New("there is no such line")
	}
	return l, nil
}

// possible reports whether a line may have these counters, by the rules of the ledger's tables.
func possible(l firstcome.Line) bool {
	negative := l.LastTicket < 0 || l.ServedThrough < 0 || l.Served < 0 || l.Waiting < 0
	return !negative && l.Generation >= 1 && l.ServedThrough <= l.LastTicket && l.Left() >= 0
}

// numbers returns whole numbers from 0 on.
func numbers(words []string) ([]int64, error) {
	all := make([]int64, len(words))
	for n, word := range words {
		number, err := strconv.ParseInt(word, 10, 64)
		if err != nil || number < 0 || number > unlimited {
			return nil, fmt.Errorf("%q is no number", word)
		}
		all[n] = number
	}
	return all, nil
}
