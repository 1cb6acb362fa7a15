package audit

import (
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
)

// row holds the campaign's row against what the changes make of it.
func (h *history) row() {
	c := h.campaign
	if !c.CreatedAt.Equal(h.changes[0].at) {
		h.add("changes", "the campaign was made at %s, its first change is of %s", text(c.CreatedAt), text(h.changes[0].at))
	}
	if c.Paused != h.paused || c.Closed != h.closed {
		h.add("changes", "the campaign is %s, by its changes it is %s", phaseOf(c.Paused, c.Closed), phaseOf(h.paused, h.closed))
	}
	if len(h.terms) > 0 {
		h.rowTerms(h.terms[h.effective])
	}
	if applied := c.Applied; applied != c.Version && (!c.Remote || applied != c.Version-1) {
		h.add("changes", "the gate has the changes up to %d of %d, and it lacks one at most, a remote one", applied, c.Version)
	}
	if !c.Remote && c.Epoch != 1 || c.Epoch < 1 {
		h.add("changes", "the epoch is %d, and only a remote gate leaves the first one", c.Epoch)
	}
	if c.Remote && c.Epoch < 1+h.rebuilds {
		h.add("changes", "the epoch is %d, and the gate was rebuilt %d times", c.Epoch, h.rebuilds)
	}
	h.rowOver()
}

func phaseOf(paused, closed bool) string {
	return map[[2]bool]string{{}: "neither paused nor closed", {true}: "paused", {false, true}: "closed", {true, true}: "paused and closed"}[[2]bool{paused, closed}]
}

func (h *history) rowTerms(t termsFrom) {
	c := h.campaign
	if c.Row.TermsVersion != t.version {
		h.add("changes", "the campaign has the terms of version %d, by its changes those of %d", c.Row.TermsVersion, t.version)
	}
	if c.Quantity != t.quantity {
		h.add("changes", "the campaign's quantity is %s, that of its terms %s", quantityText(c.Quantity), quantityText(t.quantity))
	}
	if is, want := paceText(c.Pace, c.Waitlist), paceText(t.pace, t.waitlist); is != want {
		h.add("changes", "the campaign has %s, by its terms %s", is, want)
	}
	if is, want := feedText(c.Feed), feedText(t.feed); is != want && (c.Feed == nil || c.Feed.Partition >= 0 || t.feed == nil) {
		h.add("changes", "the campaign's line is %s, by its terms %s", is, want)
	}
	if !c.OpensAt.Equal(t.opensAt) || !c.ClosesAt.Equal(t.closesAt) {
		h.add("changes", "the campaign's window is from %s to %s, that of its terms from %s to %s", text(c.OpensAt), text(c.ClosesAt), text(t.opensAt), text(t.closesAt))
	}
}

func paceText(p *firstcome.Pace, waitlist bool) string {
	text := "no pace"
	if p != nil {
		text = fmt.Sprintf("the pace %d", p.PerSecond)
	}
	if waitlist {
		text += " and waitlist"
	}
	return text
}

func feedText(f *firstcome.Feed) string {
	if f == nil {
		return "at its gate"
	}
	return fmt.Sprintf("in the partition %d of the topic %s", f.Partition, f.Topic)
}

func quantityText(n int64) string {
	if n == firstcome.Unlimited {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

// rowOver checks what the row says of a campaign that is over for long.
func (h *history) rowOver() {
	c, retired := h.campaign, h.campaign.Row.RetiredAt
	closed := c.Closed || !c.ClosesAt.IsZero() && !c.ClosesAt.After(retired)
	if !retired.IsZero() && (!c.Remote || !closed) {
		h.add("changes", "the campaign was retired at %s, and only one that is closed is, of a remote gate", text(retired))
	}
	if f := c.Row.ForgottenAt; !f.IsZero() && (retired.IsZero() || f.Before(retired)) {
		h.add("changes", "its gate has forgotten the campaign at %s, before it was retired", text(f))
	}
}

// decided compares the row's last decision with the newest instant in its records. They are equal, unless the window opened
// or closed in between.
func (h *history) decided(lastIssue time.Time) {
	if len(h.changes) == 0 || h.campaign.Row == nil {
		return
	}
	known := lastIssue
	for _, at := range []time.Time{h.changes[len(h.changes)-1].at, h.campaign.Row.RetiredAt, h.campaign.OpenedAt} {
		if at.After(known) {
			known = at
		}
	}
	at := h.campaign.Row.DecidedAt
	if at.Before(known) {
		h.add("counters", "the gate's last instant is %s, and something is of %s", text(at), text(known))
	} else if at.After(known) && !h.turned(known, at) {
		h.add("counters", "the gate's last instant is %s, and nothing is of later than %s", text(at), text(known))
	}
}

// turned tells whether a window, of any terms, opened or closed after one instant, up to another.
func (h *history) turned(from, to time.Time) bool {
	for _, t := range h.terms {
		for _, edge := range []time.Time{t.opensAt, t.closesAt} {
			if edge.After(from) && !edge.After(to) {
				return true
			}
		}
	}
	return false
}
