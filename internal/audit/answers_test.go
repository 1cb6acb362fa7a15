package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/test/seed"
)

// A history is built one claim after another: each claim is sent and answered within a millisecond of its own.
type history struct {
	audit.History
	now time.Duration
}

func (h *history) claim(user string, o firstcome.Outcome, number int64) *audit.Claim {
	c := audit.Claim{User: firstcome.UserID(user), Sent: h.now, Received: h.now + time.Millisecond, Outcome: o}
	if o.HasCoupon() {
		c.Number, c.Code, c.Recorded = number, code(number), true
	}
	h.now += 2 * time.Millisecond
	h.Claims = append(h.Claims, c)
	return &h.Claims[len(h.Claims)-1]
}

// keep adds a coupon to the server.
func (h *history) keep(user string, number int64) {
	h.Coupons = append(h.Coupons, firstcome.Coupon{
		Campaign: "c", Number: number, User: firstcome.UserID(user), Code: code(number), Recorded: true,
	})
}

func code(number int64) string { return fmt.Sprintf("%016d", number) }

// clean returns a history without a breach: three coupons, five users, repeats,
// and a lost answer.
func clean() *history {
	h := &history{History: audit.History{Quantity: 3}}
	h.claim("a", firstcome.Issued, 1)
	h.claim("b", 0, 0)
	h.claim("c", firstcome.Issued, 3)
	h.claim("b", firstcome.AlreadyIssued, 2)
	h.claim("d", firstcome.SoldOut, 0)
	h.claim("a", firstcome.AlreadyIssued, 1)
	h.claim("e", firstcome.SoldOut, 0)
	h.keep("a", 1)
	h.keep("b", 2)
	h.keep("c", 3)
	return h
}

func TestWhatMayBeInAHistoryIsNoBreach(t *testing.T) {
	for name, change := range map[string]func(h *history){
		"nothing else": func(*history) {},
		"nothing":      func(h *history) { *h = history{} },
		"dead letters and lost numbers": func(h *history) {
			h.Quantity, h.Others = 5, true
			h.keep("f", 9)
			h.Lost = []firstcome.Range{{First: 6, Count: 3}}
			h.Letters = []audit.Letter{{Number: 5, User: "g", Open: true}, {Number: 4, User: "h"}}
		},
		"returned stock, issued after sold out": func(h *history) { returned(h); h.Returned = true },
		"others who claim": func(h *history) {
			h.Quantity, h.Others = 4, true
			h.keep("z", 4)
		},
		"coupons from before": func(h *history) {
			*h = history{History: audit.History{Quantity: 3, Before: 2}}
			h.keep("x", 1)
			h.keep("y", 2)
			h.claim("y", firstcome.AlreadyIssued, 2)
			h.claim("a", firstcome.Issued, 3)
			h.keep("a", 3)
		},
	} {
		h := clean()
		change(h)
		if found := audit.Answers(h.History); found.Total != 0 {
			t.Errorf("%s: %v", name, found.Shown)
		}
	}
}

// returned voids a's coupon, and issues its stock again after another user was told that the campaign is sold out.
func returned(h *history) {
	h.Coupons[0].VoidedAt = time.Unix(1, 0)
	h.claim("e", firstcome.Issued, 4)
	h.claim("a", firstcome.SoldOut, 0)
	h.keep("e", 4)
}

func TestEveryBreachOfAHistoryIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spoil   func(h *history)
		promise []string
		text    string
	}{
		"oversold on the server": {func(h *history) {
			h.Quantity = 2
		}, []string{"P1"}, "3 coupons in force, the quantity is 2"},
		"oversold and forgotten": {func(h *history) {
			h.Coupons = h.Coupons[:2]
			h.Claims = h.Claims[:4]
			h.Quantity = 2
		}, []string{"P1", "P5"}, "3 coupons are on the server or were answered, the quantity is 2"},
		"sold out too early": {func(h *history) {
			h.Quantity = 4
		}, []string{"P2"}, "3 coupons of 4"},
		"sold out without a limit": {func(h *history) {
			h.Quantity = firstcome.Unlimited
		}, []string{"P2"}, "sold out"},
		"two coupons of one user": {func(h *history) {
			h.Quantity = 4
			h.keep("a", 4)
		}, []string{"P3"}, "numbers 1 and 4 in force"},
		"another user's number": {func(h *history) {
			h.Coupons[0].User, h.Coupons[2].User = "c", "a"
		}, []string{"P3"}, `belongs to "c"`},
		"another code": {func(h *history) {
			h.Coupons[0].Code, h.Coupons[2].Code = h.Coupons[2].Code, h.Coupons[0].Code
		}, []string{"P5"}, "with the code"},
		"a coupon is lost": {func(h *history) {
			h.Quantity = 2
			h.Claims = h.Claims[:4]
			h.Coupons = h.Coupons[:2]
			h.Claims[2].Recorded = false
			h.Quantity = 3
		}, []string{"P5"}, "the server does not have it"},
		"answered before it was recorded": {func(h *history) {
			h.Recorded = true
			h.Claims[0].Recorded = false
		}, []string{"P5"}, "number 1 was answered to the user \"a\" before it was recorded"},
		"a dead letter was answered": {func(h *history) {
			h.Claims[2].Recorded = false
			h.Coupons = h.Coupons[:2]
			h.Letters = []audit.Letter{{Number: 3, User: "c", Open: true}}
		}, []string{"P5"}, "number 3 was answered"},
		"numbers missing beside dead letters and lost ones": {func(h *history) {
			h.Quantity = 4
			h.keep("f", 10)
			h.Others = true
			h.Lost = []firstcome.Range{{First: 5, Count: 2}}
			h.Letters = []audit.Letter{{Number: 8}, {Number: 2}}
		}, []string{"P4"}, "lacks the numbers 7 to 7"},
		"a recorded coupon is lost": {func(h *history) {
			h.Claims = h.Claims[:4]
			h.Coupons = h.Coupons[:2]
		}, []string{"P5"}, "answered as recorded"},
		"voided behind the back": {func(h *history) {
			h.Coupons[2].VoidedAt = time.Unix(1, 0)
			h.Claims = h.Claims[:4]
		}, []string{"P5"}, "it is voided"},
		"a number is missing": {func(h *history) {
			h.Coupons[2].Number = 4
			h.Claims[2].Number = 4
			h.Coupons[2].Code, h.Claims[2].Code = code(4), code(4)
		}, []string{"P4"}, "lacks the numbers 3 to 3"},
		"a number twice": {func(h *history) {
			h.Quantity = 4
			h.Coupons = slices.Insert(h.Coupons, 1, h.Coupons[0])
			h.Coupons[1].User = "z"
			h.claim("z", 0, 0).Sent = 0
		}, []string{"P4"}, "number 1 twice"},
		"issued twice": {func(h *history) {
			h.Claims[5].Outcome = firstcome.Issued
			h.Claims[5].Sent, h.Claims[5].Received = h.Claims[0].Sent, h.Claims[0].Received
		}, []string{"P6"}, "answered issued, with the numbers 1 and 1"},
		"a repeat finds another": {func(h *history) {
			h.Coupons[0].User = "a"
			h.Claims[5].Number, h.Claims[5].Code = 3, code(3)
		}, []string{"P3", "P6"}, "the numbers 1 and 3"},
		"a repeat is refused": {func(h *history) {
			h.Claims[5] = audit.Claim{User: "a", Sent: h.Claims[5].Sent, Received: h.Claims[5].Received, Outcome: firstcome.SoldOut}
		}, []string{"P6"}, "asking again sold_out"},
		"refused and yet issued": {func(h *history) {
			h.Claims[1].Outcome = firstcome.SoldOut
			h.Claims[1].Received = h.Claims[4].Received
			h.Claims = slices.Delete(h.Claims, 3, 4)
		}, []string{"P6"}, "who was refused"},
		"nobody asked": {func(h *history) {
			h.Coupons[1].User = "z"
			h.Claims = slices.Delete(h.Claims, 3, 4)
		}, []string{"books"}, "never asked"},
		"already issued by nobody": {func(h *history) {
			h.Claims = slices.Delete(h.Claims, 1, 2)
		}, []string{"books"}, "no claim of theirs"},
		"a number given before": {func(h *history) {
			h.Before = 1
		}, []string{"P4"}, "it had been issued before"},
		"the later one first": {func(h *history) {
			h.Claims[0].User, h.Claims[2].User = "c", "a"
			h.Claims[5].User = "c"
			h.Claims[0].Number, h.Claims[2].Number, h.Claims[5].Number = 3, 1, 3
			h.Claims[0].Code, h.Claims[2].Code, h.Claims[5].Code = code(3), code(1), code(3)
		}, []string{"P4"}, "before number"},
		"a lost answer overtakes": {func(h *history) {
			h.Claims[1].Sent = h.Claims[2].Received + 1
			h.Claims[1].Received = h.Claims[1].Sent + 1
		}, []string{"P4"}, "number 3 was answered 1ns before number 2 was asked for"},
		"stock that nobody returned": {returned, []string{"P4", "P5", "P6"}, "after the first sold_out"},
		"issued after sold out": {func(h *history) {
			h.Claims[6].Received = h.Claims[1].Received
			h.Claims[6].Sent = 0
		}, []string{"P4"}, "after the first sold_out"},
	} {
		t.Run(name, func(t *testing.T) {
			h := clean()
			test.spoil(h)
			expectBreaches(t, audit.Answers(h.History), test.promise, test.text)
		})
	}
}

func mentions(found audit.Breaches, text string) bool {
	return slices.ContainsFunc(found.Shown, func(b audit.Breach) bool { return strings.Contains(b.Text, text) })
}

func TestBreachesAreCountedAndOnlyTheFirstAreShown(t *testing.T) {
	h := &history{History: audit.History{Quantity: 1000}}
	for n := int64(1); n <= 500; n++ {
		h.claim(fmt.Sprint("u", n), firstcome.Issued, n)
	}
	found := audit.Answers(h.History)
	if found.Total != 500 || found.Count["P5"] != 500 || len(found.Shown) != 10 {
		t.Errorf("total %d, P5 %d, shown %d: want 500, 500, 10", found.Total, found.Count["P5"], len(found.Shown))
	}
}

func TestTheOrderCheckIsItsDefinition(t *testing.T) {
	seed.Check(t, func(t *rapid.T) {
		h := audit.History{Quantity: 100, Returned: true}
		n := rapid.IntRange(0, 12).Draw(t, "n")
		for number := range n {
			sent := rapid.IntRange(0, 30).Draw(t, "sent")
			took := rapid.IntRange(0, 12).Draw(t, "took")
			c := audit.Claim{
				User: firstcome.UserID(fmt.Sprint(number)), Sent: time.Duration(sent), Received: time.Duration(sent + took),
				Outcome: firstcome.Issued, Number: int64(number + 1), Code: code(int64(number + 1)),
			}
			h.Claims = append(h.Claims, c)
			h.Coupons = append(h.Coupons, firstcome.Coupon{Number: c.Number, User: c.User, Code: c.Code})
		}
		h.Claims = rapid.Permutation(h.Claims).Draw(t, "claims")
		want := int64(0)
		for _, a := range h.Claims {
			if slices.ContainsFunc(h.Claims, func(b audit.Claim) bool { return a.Received < b.Sent && a.Number > b.Number }) {
				want++
			}
		}
		if found := audit.Answers(h); found.Total != want || found.Count["P4"] != want {
			t.Fatalf("found %v, by definition %d", found, want)
		}
	})
}
