package audit

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome"
)

// A FeedSource is the ledger of a campaign whose line a topic keeps, and the topic.
type FeedSource struct {
	Source
	// Records calls each with the users of the offsets from first on, before end, of those that the topic still has, in their order. A record
	// of another campaign or generation is nobody's: its user is empty.
	Records func(ctx context.Context, feed firstcome.Feed, generation, first, end int64, each func(offset int64, user firstcome.UserID)) error
}

// A Leaver is a user who left a line that a topic keeps.
type Leaver struct {
	User                firstcome.UserID
	Generation, Through int64 // their tickets up to this one are passed over
}

// A FeedReport is what an audit found of the line of a campaign in its topic.
type FeedReport struct {
	Campaign firstcome.CampaignID `json:"campaign"`
	Tickets  int64                `json:"tickets"` // that have ended, and that the topic still has
	Over     int64                `json:"over"`    // those of them that were passed over
	Gone     int64                `json:"gone"`    // that have ended, and that the topic does not have any more
	Breaches Breaches             `json:"breaches,omitzero"`
}

// A feedAudit holds the coupons of a campaign against the records of its line.
type feedAudit struct {
	report  FeedReport
	tickets map[turn]firstcome.UserID  // of coupons and dead letters
	coupons map[firstcome.UserID]int64 // how many a user got, voided ones and dead letters too
	left    map[stay]int64
	lost    int64 // numbers
}

// Feed holds the line of a campaign against its topic: each coupon that was issued to a ticket is that of the ticket's user, who had no
// earlier one, and whoever was passed over held a coupon or had left. nil: no topic keeps the line.
func Feed(ctx context.Context, source FeedSource, id firstcome.CampaignID) (*FeedReport, error) {
	campaign, err := source.Campaign(ctx, id)
	if err != nil || campaign.Feed == nil {
		return nil, err
	}
	a := &feedAudit{report: FeedReport{Campaign: id}, tickets: map[turn]firstcome.UserID{}, coupons: map[firstcome.UserID]int64{}, left: map[stay]int64{}}
	if err := a.read(ctx, source, id); err != nil {
		return nil, err
	}
	var lines []firstcome.Line
	err = source.Past(ctx, id, func(p PastLine) {
		if lines = append(lines, p.Line); p.Reason == "lost" { // up to here it was in another partition
			lines = nil
		}
	})
	lines = append(lines, campaign.Line)
	for _, line := range lines {
		if err == nil && line.Begun && campaign.Feed.Partition >= 0 {
			err = a.generation(ctx, source, *campaign.Feed, line)
		}
	}
	return &a.report, err
}

// read reads what the ledger has of users.
func (a *feedAudit) read(ctx context.Context, source FeedSource, id firstcome.CampaignID) error {
	known := func(user firstcome.UserID, generation, ticket int64) {
		if a.coupons[user]++; ticket > 0 {
			a.tickets[turn{generation, ticket}] = user
		}
	}
	err := source.Coupons(ctx, id, func(c firstcome.Coupon) { known(c.User, c.Generation, c.Ticket) })
	if err == nil {
		err = source.Letters(ctx, id, func(l Letter) {
			if l.Number > 0 && (l.Open || l.Voided) {
				known(l.User, l.Generation, l.Ticket)
			}
		})
	}
	if err == nil {
		err = source.Lost(ctx, id, func(r Range) { a.lost += r.Count })
	}
	if err == nil {
		err = source.Leavers(ctx, id, func(l Leaver) { a.left[stay{l.User, l.Generation}] = l.Through })
	}
	return err
}

// generation holds a generation's tickets that have ended against the records.
func (a *feedAudit) generation(ctx context.Context, source FeedSource, feed firstcome.Feed, line firstcome.Line) error {
	next := line.First
	earliest := map[firstcome.UserID]int64{}
	err := source.Records(ctx, feed, line.Generation, line.First, line.First+line.ServedThrough, func(offset int64, user firstcome.UserID) {
		if offset > next {
			a.gap(line, next, offset)
		}
		next = offset + 1
		a.record(line, offset-line.First+1, user, earliest)
	})
	if end := line.First + line.ServedThrough; err == nil && next < end {
		a.gap(line, next, end)
	}
	return err
}

// gap counts tickets that the topic does not have any more, or never had.
func (a *feedAudit) gap(line firstcome.Line, from, end int64) {
	a.report.Gone += end - from
	for t := from; t < end; t++ {
		delete(a.tickets, turn{line.Generation, t - line.First + 1})
	}
}

// record checks one ticket that has ended.
func (a *feedAudit) record(line firstcome.Line, ticket int64, user firstcome.UserID, earliest map[firstcome.UserID]int64) {
	a.report.Tickets++
	g := line.Generation
	got, issued := a.tickets[turn{g, ticket}]
	before, again := earliest[user]
	if user != "" && !again && a.left[stay{user, g}] < ticket {
		earliest[user] = ticket
	}
	switch {
	case issued && got != user:
		a.report.Breaches.add("P9", "the ticket %d.%d of the user %q was served to %q", g, ticket, user, got)
	case issued && again && a.coupons[user] == 1:
		a.report.Breaches.add("P9", "the user %q was served with the ticket %d.%d, and had the ticket %d.%d before it", user, g, ticket, g, before)
	case issued:
		return
	case user != "" && a.coupons[user] == 0 && a.left[stay{user, g}] < ticket && a.lost == 0:
		a.report.Breaches.add("P9", "the ticket %d.%d of the user %q was passed over, and they neither hold a coupon nor left", g, ticket, user)
	}
	a.report.Over++
}

// String is the report in a line.
func (r *FeedReport) String() string {
	gone := ""
	if r.Gone > 0 {
		gone = fmt.Sprintf(", and %d that it does not have any more", r.Gone)
	}
	return fmt.Sprintf("%d tickets that have ended%s, %d passed over", r.Tickets, gone, r.Over)
}
