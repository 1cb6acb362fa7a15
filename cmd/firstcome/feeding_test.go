//go:build !check

package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A feeding is a desk whose campaign c has its line in a feed, which is a slice of users.
type feeding struct {
	*rewind
	over *gate.Router
	feed []firstcome.UserID // by offset
}

// newFed returns a desk of the campaign c with so many coupons, and a feed whose line has begun at offset 3, in which user-0, user-1 and so on are.
func newFed(t *testing.T, name string, quantity int64, inLine int) *feeding {
	t.Helper()
	f := &feeding{rewind: &rewind{desk: newDesk(t, services.Redis.Database(t), name, nil)}, feed: make([]firstcome.UserID, 3)}
	terms := stage.Terms(quantity)
	terms.Pace, terms.Feed = &firstcome.Pace{}, &firstcome.Feed{Topic: "id", Partition: 0}
	f.reaches("c", f.ledger.Create(t.Context(), "test", "c", terms))
	f.through()
	f.begins(1)
	f.appends(people("user-", inLine)...)
	return f
}

// through has the desk's node ask its gate.
func (f *feeding) through() {
	f.over = &gate.Router{Gate: f.remote.gate, Fed: f.remote.gate, Book: f.ledger}
}

// begins has a generation begin at the end of the feed, and returns the line.
func (f *feeding) begins(generation int64) firstcome.Line {
	f.t.Helper()
	line, err := f.over.Begin(f.t.Context(), "c", *f.status().Feed, generation, int64(len(f.feed)))
	stage.Must(f.t, err)
	return line
}

// appends has users claim, and appends them.
func (f *feeding) appends(users ...firstcome.UserID) {
	f.t.Helper()
	for n, answer := range f.claims(users...) {
		if answer != "waiting:0" {
			f.t.Fatalf("%s joins, and is answered %s", users[n], answer)
		}
	}
	f.feed = append(f.feed, users...)
}

// at returns the line at the gate.
func (f *feeding) at() firstcome.Line {
	f.t.Helper()
	state, err := f.over.LineOf(f.t.Context(), "c")
	stage.Must(f.t, err)
	return state.Line
}

// serves serves the next tickets, at most so many of the feed, and returns the coupons.
func (f *feeding) serves(limit int) (coupons []firstcome.Coupon) {
	f.t.Helper()
	line := f.at()
	for limit > 0 && line.Begun {
		users := f.feed[line.Offset(line.Serving()):]
		users = users[:min(len(users), limit)]
		if len(users) == 0 {
			break
		}
		turned, err := f.over.ServeTurn(f.t.Context(), "c", gate.Turn{Generation: line.Generation, From: line.Serving(), Users: users})
		stage.Must(f.t, err)
		coupons, line, limit = append(coupons, turned.Coupons...), turned.Line, limit-len(users)
	}
	return coupons
}

// leaves has a user leave with a ticket of the generation.
func (f *feeding) leaves(user firstcome.UserID, ticket int64) {
	f.t.Helper()
	stage.Must(f.t, f.over.LeaveOf(f.t.Context(), "c", user, firstcome.Ticket{Generation: f.at().Generation, Number: ticket}))
}

// places returns where tickets of the generation stand, as rewind.places does.
func (f *feeding) places(tickets map[firstcome.UserID]int64) map[firstcome.UserID]string {
	f.t.Helper()
	places := map[firstcome.UserID]string{}
	for user, ticket := range tickets {
		p, c, err := f.over.PlaceOf(f.t.Context(), "c", user, firstcome.Ticket{Generation: f.at().Generation, Number: ticket})
		switch {
		case errors.Is(err, firstcome.ErrNoTicket):
			places[user] = "no"
		case err != nil:
			f.t.Fatal(err)
		case c.Number > 0:
			places[user] = fmt.Sprintf("#%d", c.Number)
		default:
			places[user] = fmt.Sprintf("%d.%d+%d", p.Generation, p.Ticket, p.Ahead)
		}
	}
	return places
}

// inForce returns who holds a coupon in the ledger, in the order of their numbers, with their tickets.
func (f *feeding) inForce() (all []string) {
	f.t.Helper()
	stage.Must(f.t, f.ledger.Coupons(f.t.Context(), "c", ledger.Page{}, func(c firstcome.Coupon) error {
		all = append(all, fmt.Sprintf("%s@%d.%d", c.User, c.Generation, c.Ticket))
		return nil
	}))
	return all
}

// compared expects that gate and ledger agree.
func (f *feeding) compared() {
	f.t.Helper()
	campaign := f.status()
	compared, err := compareWithGate(f.t.Context(), f.ledger.Books().Source(), f.redis(), nil, &campaign, nil)
	stage.Must(f.t, err)
	for _, b := range compared.Breaches.Shown {
		f.t.Errorf("gate and ledger differ, %s: %s", b.Promise, b.Text)
	}
}
