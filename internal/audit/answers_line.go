package audit

import (
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// A Followed is a ticket of a waiting line as seen by its user.
type Followed struct {
	User               firstcome.UserID
	Generation, Ticket int64
	End                End
	Number             int64 // of the coupon, if End is Served
}

// An End is how a place in line ended: a word below, or the word of the refusal with which all users in line were sent away.
type End string

// The ends that are not refusals.
const (
	Served   End = "issued"
	Left     End = "left"
	Lost     End = "lost"     // the gate lost the line, and reported that
	Vanished End = "vanished" // the ticket no longer exists, for no known reason
	InLine   End = "waiting"  // it has not ended: the user was in line at the end
)

// line checks P9 in the clients' answers.
func (a *answers) line() {
	a.tickets()
	given := a.given()
	slices.SortFunc(a.Followed, func(x, y Followed) int {
		return firstcome.Ticket{Generation: x.Generation, Number: x.Ticket}.Compare(firstcome.Ticket{Generation: y.Generation, Number: y.Ticket})
	})
	a.served(given)
	a.skipped()
	a.ended()
}

// ticketOf returns the ticket with which a coupon was issued.
func ticketOf(c *firstcome.Coupon) firstcome.Ticket {
	return firstcome.Ticket{Generation: c.Generation, Number: c.Ticket}
}

// A stay is a user in the line of a generation.
type stay struct {
	user       firstcome.UserID
	generation int64
}

// tickets checks that a user has one ticket of a generation, that no other user has the same ticket, and that tickets were issued in the order of the
// claims.
func (a *answers) tickets() {
	of, sent := map[firstcome.Ticket]firstcome.UserID{}, map[firstcome.UserID]time.Duration{}
	for n := range a.Claims {
		c := &a.Claims[n]
		if at, ok := sent[c.User]; !ok || c.Sent < at {
			sent[c.User] = c.Sent
		}
	}
	given := map[int64][]decided{} // by generation
	has := map[stay]int64{}
	for n := range a.Claims {
		c := &a.Claims[n]
		if c.Outcome != firstcome.Waiting {
			continue
		}
		mine := stay{c.User, c.Generation}
		if other, ok := has[mine]; ok && other != c.Ticket {
			a.add("P9", "the user %q was told the tickets %d.%d and %d.%d", c.User, c.Generation, other, c.Generation, c.Ticket)
		}
		has[mine] = c.Ticket
		t := firstcome.Ticket{Generation: c.Generation, Number: c.Ticket}
		if user, ok := of[t]; ok && user != c.User {
			a.add("P9", "the users %q and %q were told the ticket %d.%d", user, c.User, c.Generation, c.Ticket)
		}
		of[t] = c.User
		given[c.Generation] = append(given[c.Generation], decided{c.Ticket, sent[c.User], c.Received})
	}
	for generation, all := range given {
		inOrder(all, func(first, behind decided) {
			a.add("P9", "the ticket %d.%d was answered %v before the ticket %d.%d was asked for",
				generation, first.number, behind.sent-first.received, generation, behind.number)
		})
	}
}

// given returns the tickets that were served with a coupon.
func (a *answers) given() map[stay]int64 {
	given := map[stay]int64{}
	for _, c := range a.Coupons {
		if c.Ticket > 0 {
			given[stay{c.User, c.Generation}] = c.Ticket
		}
	}
	return given
}

// served checks that coupons were issued in the order of the tickets, each to the ticket that its user was told.
func (a *answers) served(given map[stay]int64) {
	var last firstcome.Coupon
	for _, c := range a.Coupons {
		switch {
		case c.Ticket == 0: // issued directly, or not through a line
			continue
		case !ticketOf(&last).Before(ticketOf(&c)):
			a.add("P9", "the ticket %d.%d was served with number %d, after number %d of the ticket %d.%d",
				c.Generation, c.Ticket, c.Number, last.Number, last.Generation, last.Ticket)
		default:
			last = c
		}
	}
	for _, f := range a.Followed {
		if ticket, ok := given[stay{f.User, f.Generation}]; f.End == Served && ok && ticket != f.Ticket {
			a.add("P9", "the user %q followed the ticket %d.%d, and was served with the ticket %d.%d", f.User, f.Generation, f.Ticket, f.Generation, ticket)
		}
	}
}

// skipped checks that every user whose ticket precedes a served ticket of the same generation got a coupon, left, or lost the line.
func (a *answers) skipped() {
	held := make(map[firstcome.UserID]bool, len(a.Coupons))
	for _, c := range a.Coupons {
		held[c.User] = true // even if it was voided later
	}
	var behind Followed // the last served user of the generation
	for _, f := range slices.Backward(a.Followed) {
		switch {
		case f.End == Served:
			if behind.Generation != f.Generation {
				behind = f
			}
		case behind.Generation == f.Generation && !held[f.User] && f.End != Left && f.End != Lost:
			a.add("P9", "the ticket %d.%d of the user %q was skipped: the later ticket %d.%d was served with number %d",
				f.Generation, f.Ticket, f.User, behind.Generation, behind.Ticket, behind.Number)
		}
	}
}

// ended checks that users who were told that their place ended without a coupon have none, and that no place vanished.
func (a *answers) ended() {
	made := map[firstcome.UserID]int64{} // numbers in force that were issued during the history
	for _, c := range a.Coupons {
		if c.VoidedAt.IsZero() && c.Number > a.Before {
			made[c.User] = c.Number
		}
	}
	for _, f := range a.Followed {
		number, has := made[f.User]
		switch {
		case f.End == Vanished:
			a.add("P9", "the ticket %d.%d of the user %q no longer exists, for no known reason", f.Generation, f.Ticket, f.User)
		case has && f.End != Served && f.End != InLine && !a.Returned:
			a.add("P9", "the ticket %d.%d of the user %q ended as %s, but the server has number %d for them", f.Generation, f.Ticket, f.User, f.End, number)
		}
	}
}
