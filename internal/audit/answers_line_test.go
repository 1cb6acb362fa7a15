package audit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

// wait adds a claim that was answered with a ticket, and the place that its user follows.
func (h *history) wait(user string, ticket int64, end audit.End, number int64) {
	c := h.claim(user, firstcome.Waiting, 0)
	c.Generation, c.Ticket = 1, ticket
	h.Followed = append(h.Followed, audit.Followed{User: firstcome.UserID(user), Generation: 1, Ticket: ticket, End: end, Number: number})
	if end == audit.Served {
		h.claim(user, firstcome.Issued, number).Sent = c.Sent
		h.keep(user, number)
		h.Coupons[len(h.Coupons)-1].Generation, h.Coupons[len(h.Coupons)-1].Ticket = 1, ticket
	}
}

// lined returns a history of a line without a breach. Its places ended in every way, and one answer was lost.
func lined() *history {
	h := &history{History: audit.History{Quantity: 3}}
	h.wait("a", 1, audit.Served, 1)
	h.claim("b", 0, 0)
	h.wait("b", 2, audit.Served, 2)
	h.wait("c", 3, audit.Left, 0)
	h.wait("d", 4, audit.Lost, 0)
	h.wait("e", 5, audit.Served, 3)
	h.wait("f", 6, "sold_out", 0)
	h.wait("g", 7, audit.InLine, 0)
	again := h.claim("f", firstcome.Waiting, 0)
	again.Generation, again.Ticket = 1, 6
	return h
}

func TestWhatMayBecomeOfAPlaceIsNoBreach(t *testing.T) {
	for name, change := range map[string]func(h *history){
		"nothing else":                func(*history) {},
		"nobody followed their place": func(h *history) { h.Followed = nil },
		"one was served behind their last look": func(h *history) {
			h.Quantity = 4
			h.keep("g", 4)
			h.Coupons[3].Generation, h.Coupons[3].Ticket = 1, 7
		},
		"one in line was issued a coupon directly": func(h *history) {
			h.Quantity = 4
			h.Followed[5].End = audit.InLine
			h.keep("f", 4)
		},
		"a place of the next generation": func(h *history) {
			h.Returned, h.Quantity = true, 4
			h.now += time.Second
			c := h.claim("f", firstcome.Waiting, 0)
			c.Generation, c.Ticket = 2, 1
			h.keep("f", 4)
			h.Coupons[3].Generation, h.Coupons[3].Ticket = 2, 1
		},
	} {
		h := lined()
		change(h)
		if found := audit.Answers(h.History); found.Total != 0 {
			t.Errorf("%s: %v", name, found.Shown)
		}
	}
}

func TestEveryBreachOfAPlaceIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(h *history)
		text  string
	}{
		"served out of order": {func(h *history) {
			h.Coupons[0].Ticket, h.Coupons[1].Ticket = 2, 1
			h.Claims[0].Ticket, h.Followed[0].Ticket = 2, 2
			h.Claims[3].Ticket, h.Followed[1].Ticket = 1, 1
			h.Claims[3].Sent, h.Claims[2].Sent = 0, 0 // so that the claims may have come in either order
		}, "the ticket 1.1 was served with number 2, after number 1 of the ticket 1.2"},
		"skipped": {func(h *history) {
			h.Followed[3].End = audit.InLine
		}, `the ticket 1.4 of the user "d" was skipped: the later ticket 1.5 was served with number 3`},
		"sent away before one behind them was served": {func(h *history) {
			h.Followed[3].End = "closed"
		}, `the ticket 1.4 of the user "d" was skipped`},
		"vanished": {func(h *history) {
			h.Followed[6].End = audit.Vanished
		}, `the ticket 1.7 of the user "g" no longer exists`},
		"sent away and served": {func(h *history) {
			h.Quantity = 4
			h.keep("f", 4)
		}, `the ticket 1.6 of the user "f" ended as sold_out, but the server has number 4`},
		"left and served": {func(h *history) {
			h.Quantity = 4
			h.keep("c", 4)
		}, `the ticket 1.3 of the user "c" ended as left, but the server has number 4`},
		"a repeated claim has another ticket": {func(h *history) {
			h.Claims[len(h.Claims)-1].Ticket = 8
		}, `the user "f" was told the tickets 1.6 and 1.8`},
		"two users with one ticket": {func(h *history) {
			h.Claims[len(h.Claims)-1].User = "z"
		}, `the users "f" and "z" were told the ticket 1.6`},
		"a ticket that overtakes": {func(h *history) {
			last := h.claim("z", firstcome.Waiting, 0)
			last.Generation, last.Ticket, h.Followed[6].Ticket = 1, 7, 8
			h.Claims[slices.IndexFunc(h.Claims, func(c audit.Claim) bool { return c.User == "g" })].Ticket = 8
		}, "the ticket 1.8 was answered "},
		"served with another's ticket": {func(h *history) {
			h.Followed[4].Ticket = 9
			h.Coupons[2].Ticket = 5
		}, `the user "e" followed the ticket 1.9, and was served with the ticket 1.5`},
	} {
		h := lined()
		test.spoil(h)
		found := audit.Answers(h.History)
		if !slices.ContainsFunc(found.Shown, func(b audit.Breach) bool { return b.Promise == "P9" && strings.Contains(b.Text, test.text) }) {
			t.Errorf("%s: found %v", name, found.Shown)
		}
		if slices.ContainsFunc(found.Promises(), func(p string) bool { return p != "P9" }) {
			t.Errorf("%s: other promises too: %v", name, found.Shown)
		}
	}
}
