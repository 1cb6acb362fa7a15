package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome/client"
)

// printCampaign prints a campaign as text or JSON.
func (f serverFlags) printCampaign(t terminal, c client.Campaign) error {
	return f.print(t, c, func(w io.Writer) { f.writeCampaign(w, c) })
}

// writeCampaign writes a campaign as lines of text.
func (f serverFlags) writeCampaign(w io.Writer, c client.Campaign) {
	fmt.Fprintf(w, "id\t%s\nname\t%s\nstate\t%s\nversion\t%d\n", c.ID, cell(c.Name), stateText(c), c.Version)
	remaining := countText(c.Remaining)
	if c.Quantity == nil {
		remaining = unlimited
	}
	fmt.Fprintf(w, "quantity\t%s\nin force\t%s\nissued\t%s\nremaining\t%s\n", quantityText(c.Quantity), countText(c.InForce), countText(c.Issued), remaining)
	fmt.Fprintf(w, "opens at\t%s\ncloses at\t%s\nanswer\t%s\n", f.TZ.text(c.OpensAt), f.TZ.text(c.ClosesAt), c.Answer)
	if len(c.Prizes) == 0 {
		fmt.Fprintf(w, "benefit\t%s\n", c.Coupon.Benefit)
	}
	for _, p := range c.Prizes {
		fmt.Fprintf(w, "prize %s\t%s\n", p.ID, f.prizeText(p))
	}
	for _, l := range c.Codes {
		name := "codes"
		if l.Prize != "" {
			name += " of " + l.Prize
		}
		fmt.Fprintf(w, "%s\t%d imported, %d needed\n", name, l.Entries, l.Needed)
	}
	if c.Pace != nil {
		fmt.Fprintf(w, "pace\t%s\nwaitlist\t%v\n", paceText(c.Pace), c.Waitlist)
	}
	if c.LineLog {
		fmt.Fprintf(w, "line\tat the gate, with a copy in Kafka\n")
	}
	if c.Pace != nil || c.Waiting != nil && *c.Waiting > 0 {
		fmt.Fprintf(w, "in line\t%s\n", countText(c.Waiting))
	}
	fmt.Fprintf(w, "opened at\t%s\nfirst sold out\t%s\nclosed at\t%s\n", f.TZ.text(c.OpenedAt), f.TZ.text(c.SoldOutAt), f.TZ.text(c.ClosedAt))
	switch {
	case c.Coupon.ValidUntil != nil:
		fmt.Fprintf(w, "valid until\t%s%s\n", f.TZ.text(c.Coupon.ValidUntil), lapsedText(c))
	case c.Coupon.ValidFor != nil:
		fmt.Fprintf(w, "valid for\t%v\n", time.Duration(*c.Coupon.ValidFor))
	}
}

// prizeText returns a prize of a campaign as text.
func (f serverFlags) prizeText(p client.Prize) string {
	text := fmt.Sprintf("rank %d", p.From)
	switch {
	case p.To == nil:
		text += " and later"
	case *p.To > p.From:
		text = fmt.Sprintf("ranks %d to %d", p.From, *p.To)
	}
	text += fmt.Sprintf(", %s given", countText(p.Given))
	if p.RanOutAt != nil {
		text += ", ran out at " + f.TZ.text(p.RanOutAt)
	}
	text += ": " + cell(p.Name)
	if string(p.Benefit) != "null" {
		text += ", benefit " + string(p.Benefit)
	}
	return text
}

// writeLine writes how fast a line is served, which ticket is next, and how the last generation ended.
func (f serverFlags) writeLine(w io.Writer, l client.Line, rate string) {
	if l.Waiting > 0 {
		fmt.Fprintf(w, "serving rate\t%s\n", rate)
	}
	if l.NextJoinedAt != nil {
		fmt.Fprintf(w, "next in line\tticket %d or later, has waited for %v\n", l.Serving, l.ServerTime.Sub(l.NextJoinedAt.Time).Round(time.Second))
	}
	if len(l.Ended) > 0 {
		last := l.Ended[0]
		fmt.Fprintf(w, "last line\tended %s at %s, served through ticket %d\n", last.Reason, f.TZ.text(&last.EndedAt), last.LastTicketServed)
	}
}

// lapsedText returns a warning if coupons issued now are already expired.
func lapsedText(c client.Campaign) string {
	if c.State == client.Closed || c.ServerTime.Before(c.Coupon.ValidUntil.Time) {
		return ""
	}
	return " (it has passed, so coupons issued now are already expired: set a later time, or close the campaign)"
}

// stateText returns a campaign's state, and the trouble with its gate if there is any.
func stateText(c client.Campaign) string {
	switch c.GateState {
	case "unverified":
		return c.State + " (Redis restarted or went back to an older state, another server took over, or a rebuild is under way: nodes verify or rebuild it within seconds)"
	case "lost":
		return c.State + " (the gate has lost it)"
	case "mismatch":
		return c.State + " (the server has another gate or ledger)"
	case "ledger_rolled_back":
		return c.State + " (the ledger is older than the gate: run firstcome gate reconcile " + c.ID + ")"
	case "stale_epoch":
		return c.State + " (the gate's epoch has ended, because another Redis replaced it; if this Redis should decide, run firstcome gate rebuild " + c.ID + ")"
	case "unknown":
		return c.State + " (the gate does not answer)"
	}
	return c.State
}

// paceText returns how fast a line is served.
func paceText(p *client.Pace) string {
	if p.PerSecond == nil {
		return unlimited
	}
	return strconv.FormatInt(*p.PerSecond, 10) + " a second"
}

// countText returns a count as text, or - if it is unknown.
func countText(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func quantityText(n *int64) string {
	if n == nil {
		return unlimited
	}
	return strconv.FormatInt(*n, 10)
}

func timeText(at *client.Time) string {
	if at == nil {
		return "-"
	}
	return strings.Replace(at.UTC().Format(client.TimeLayout), ".000000Z", "Z", 1)
}
