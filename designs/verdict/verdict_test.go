package verdict_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/designs/verdict"
	"github.com/firstcome/firstcome/test/seed"
)

// told is a user who asked at an instant, in milliseconds, and was answered 5 ms later.
func told(id string, sent int, what verdict.Told, place int64) verdict.User {
	at := time.Duration(sent) * time.Millisecond
	u := verdict.User{ID: id, Sent: at, Answered: at + 5*time.Millisecond, Told: what, Place: place, Settled: verdict.Never}
	if what != verdict.Nothing {
		u.Settled = u.Answered
	}
	return u
}

// row is a coupon that was stored at an instant, in milliseconds.
func row(user string, stored int) verdict.Row {
	return verdict.Row{User: user, Stored: time.Duration(stored) * time.Millisecond}
}

// exact is a run of four people for two coupons, in which nothing is wrong.
func exact() verdict.History {
	return verdict.History{
		Quantity: 2,
		Users: []verdict.User{
			told("a", 0, verdict.Issued, 1), told("b", 10, verdict.Issued, 2), told("c", 20, verdict.SoldOut, 0), told("d", 30, verdict.SoldOut, 0),
		},
		Rows: []verdict.Row{row("a", 4), row("b", 14)},
	}
}

// TestEachKindOfWrongIsCounted changes the exact run in one way each, and wants what differs in the verdict.
func TestEachKindOfWrongIsCounted(t *testing.T) {
	tests := map[string]struct {
		change func(h *verdict.History)
		want   func(v *verdict.Verdict)
	}{
		"nothing": {func(*verdict.History) {}, func(*verdict.Verdict) {}},
		"a coupon beyond the quantity": {
			func(h *verdict.History) { h.Users[2].Told, h.Rows = verdict.Issued, append(h.Rows, row("c", 24)) },
			func(v *verdict.Verdict) { v.Stored, v.Oversold, v.Promised = 3, 1, 1 },
		},
		"a coupon promised beyond the quantity": {
			func(h *verdict.History) { h.Users[2].Told = verdict.Issued },
			func(v *verdict.Verdict) { v.Promised, v.Lost = 1, 1 },
		},
		"a user with two": {
			func(h *verdict.History) { h.Quantity, h.Rows = 3, append(h.Rows, row("a", 24)) },
			func(v *verdict.Verdict) { v.Stored, v.Twice, v.Unsold, v.Denied = 3, 1, 1, 1 },
		},
		"a winner who is not stored": {
			func(h *verdict.History) { h.Rows = h.Rows[:1] },
			func(v *verdict.Verdict) { v.Stored, v.Lost, v.Unsold, v.Denied = 1, 1, 1, 1 },
		},
		"a winner who is not stored, whose place the design names": {
			func(h *verdict.History) { h.Rows, h.Named = h.Rows[:1], []verdict.Places{{First: 2, Last: 2}} },
			func(v *verdict.Verdict) { v.Stored, v.Lost, v.Reported, v.Named, v.Unsold, v.Denied = 1, 1, 1, 1, 1, 1 },
		},
		"a winner who is not stored, and other places are named": {
			func(h *verdict.History) { h.Rows, h.Named = h.Rows[:1], []verdict.Places{{First: 3, Last: 9}} },
			func(v *verdict.Verdict) { v.Stored, v.Lost, v.Named, v.Unsold, v.Denied = 1, 1, 7, 1, 1 },
		},
		"a row whose user was told that all are gone": {
			func(h *verdict.History) { h.Users[1].Told = verdict.SoldOut },
			func(v *verdict.Verdict) { v.Untold = 1 },
		},
		"a row whose user was told nothing": {
			func(h *verdict.History) { h.Users[1].Told = verdict.Nothing },
			func(v *verdict.Verdict) { v.Untold = 1 },
		},
		"a user who is told nothing": {
			func(h *verdict.History) { h.Users[3].Told = verdict.Nothing },
			func(v *verdict.Verdict) { v.Open = 1 },
		},
		"all gone, while one was left": {
			func(h *verdict.History) { h.Quantity = 3 },
			func(v *verdict.Verdict) { v.Unsold, v.Denied = 1, 1 },
		},
		"the second has the smaller number": {
			func(h *verdict.History) { h.Users[0].Place, h.Users[1].Place = 2, 1 },
			func(v *verdict.Verdict) { v.Order = verdict.Order{Overtaken: 1, Farthest: 1} },
		},
		"the second has the smaller number, and asked before the first was answered": {
			func(h *verdict.History) {
				h.Users[0].Place, h.Users[1].Place = 2, 1
				h.Users[1].Sent = 4 * time.Millisecond
			},
			func(*verdict.Verdict) {},
		},
		"no numbers, and the second is stored first": {
			func(h *verdict.History) {
				h.Users[0].Place, h.Users[1].Place = 0, 0
				h.Rows[0], h.Rows[1] = h.Rows[1], h.Rows[0]
			},
			func(v *verdict.Verdict) {
				v.Delay = verdict.Times{}
				v.Order = verdict.Order{Overtaken: 1, Farthest: 1}
			},
		},
		"a later one has a coupon, and an earlier one has none": {
			func(h *verdict.History) {
				h.Users[0].Told, h.Users[3].Told = verdict.SoldOut, verdict.Issued
				h.Users[0].Place, h.Users[3].Place = 0, 1
				h.Rows[0].User = "d"
			},
			// a was overtaken by b and d, b by d, and c by d.
			func(v *verdict.Verdict) { v.Order = verdict.Order{Overtaken: 4, Farthest: 2} },
		},
		"a user who is told that nothing was decided": {
			func(h *verdict.History) { h.Users[3].Told = verdict.Refused },
			func(v *verdict.Verdict) { v.Refused = 1 },
		},
		"a winner whose number nobody knows, among numbers": {
			func(h *verdict.History) {
				h.Users[0].Place, h.Users[1].Place = 0, 1 // by the rows, the first is the first
				h.Rows[0], h.Rows[1] = h.Rows[1], h.Rows[0]
			},
			func(*verdict.Verdict) {},
		},
		"a row that comes after the answer": {
			func(h *verdict.History) { h.Rows[1].Stored = 2015 * time.Millisecond },
			func(v *verdict.Verdict) { v.Delay = verdict.Times{P95: 2, P99: 2, Max: 2} },
		},
		"an error is no answer: nobody overtakes who got only errors before": {
			func(h *verdict.History) {
				h.Users[0].Answered, h.Users[0].Place, h.Users[1].Place = verdict.Never, 2, 1
			},
			func(*verdict.Verdict) {},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h, want := exact(), verdict.Verdict{Stored: 2}
			test.change(&h)
			test.want(&want)
			if diff := cmp.Diff(want, verdict.Of(h)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// TestTheOrderIsCountedAsPairsAre holds the count against one that looks at every pair.
func TestTheOrderIsCountedAsPairsAre(t *testing.T) {
	random := seed.Rand(t)
	for range 300 {
		h := verdict.History{Quantity: 1000}
		for n := range random.IntN(30) {
			u := told(fmt.Sprint(n), random.IntN(40), verdict.Issued, int64(1+random.IntN(20)))
			if random.IntN(4) == 0 {
				u.Told, u.Place = verdict.SoldOut, 0
			} else {
				h.Rows = append(h.Rows, row(u.ID, 0))
			}
			h.Users = append(h.Users, u)
		}
		place := func(u verdict.User) int64 {
			if u.Told != verdict.Issued {
				return 1 << 40
			}
			return u.Place
		}
		var want int64
		for _, a := range h.Users {
			for _, b := range h.Users {
				if a.Answered < b.Sent && place(b) < place(a) {
					want++
				}
			}
		}
		if got := verdict.Of(h).Order.Overtaken; got != want {
			t.Fatalf("%d pairs, want %d, in %v", got, want, h)
		}
	}
}
