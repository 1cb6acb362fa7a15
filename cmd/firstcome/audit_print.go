package main

import (
	"fmt"
	"maps"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/sqldb"
)

func (r *auditReport) print(t terminal) {
	for _, wrong := range r.File {
		fmt.Fprintln(t.out, "the file:", wrong)
	}
	if r.Other.Total > 0 {
		fmt.Fprintf(t.out, "without a campaign: %s\n", counted(r.Other.Total, "breach", "es"))
		printBreaches(t, r.Other)
	}
	for _, c := range r.Campaigns {
		fmt.Fprintf(t.out, "%s: %s, %d in force, %d voided, %s, %s\n", c.Campaign, counted(c.Coupons, "coupon", "s"),
			c.InForce, c.Voided, counted(c.Facts, "fact", "s"), counted(c.Breaches.Total, "breach", "es"))
		if c.Lines > 0 {
			fmt.Fprintf(t.out, "  %s of its waiting line lost by its gate: the users in line lost their places\n", counted(c.Lines, "generation", "s"))
		}
		if c.Lost > 0 {
			fmt.Fprintf(t.out, "  %s lost by its gate, and never assigned again: %s\n", counted(c.Lost, "number", "s"), whoWasTold(c.LostTold > 0))
		}
		printBreaches(t, c.Breaches)
	}
	for _, g := range r.Gates {
		if g.Elsewhere != "" {
			fmt.Fprintf(t.out, "%s at its gate: not compared: it is closed, and was decided by %s\n", g.Campaign, g.Elsewhere)
			continue
		}
		if g.Failed != "" {
			fmt.Fprintf(t.out, "%s at its gate: not compared: %s\n", g.Campaign, g.Failed)
			continue
		}
		inLine := ""
		if g.Waiting > 0 {
			inLine = fmt.Sprintf("%d in line, ", g.Waiting)
		}
		fmt.Fprintf(t.out, "%s at its gate: %s, %s%d unrecorded, %s\n", g.Campaign, counted(g.Holders, "holder", "s"), inLine, g.Unrecorded, counted(g.Breaches.Total, "breach", "es"))
		printBreaches(t, g.Breaches)
	}
	for _, c := range r.Topic {
		begins := ""
		if c.First > 1 {
			begins = fmt.Sprintf("from position %d on, ", c.First)
		}
		fmt.Fprintf(t.out, "%s in the topic: %s, %sthrough position %d, %s, %s\n", c.Campaign, counted(c.Events, "event", "s"), begins, c.Through,
			counted(c.Repeats, "repeat", "s"), counted(c.Breaches.Total, "breach", "es"))
		printBreaches(t, c.Breaches)
	}
	switch {
	case r.Codes:
	case sqldb.OnServer(r.Ledger):
		fmt.Fprintln(t.out, "The codes were not checked: set FIRSTCOME_SECRET, or name the file of the secret with --secret-file.")
	default:
		fmt.Fprintln(t.out, "The codes were not checked: there is no secret beside the ledger. Name its file with --secret-file.")
	}
	fmt.Fprintf(t.out, "verdict: %s in %s\n", counted(r.Breaches, "breach", "es"), counted(int64(len(r.Campaigns)), "campaign", "s"))
}

// counted returns a number and the counted noun, with the ending of the plural unless n is 1.
func counted(n int64, one, ending string) string {
	if n == 1 {
		ending = ""
	}
	return fmt.Sprintf("%d %s%s", n, one, ending)
}

func printBreaches(t terminal, b audit.Breaches) {
	left := maps.Clone(b.Count)
	for _, shown := range b.Shown {
		fmt.Fprintln(t.out, " ", breachLine(shown))
		left[shown.Promise]--
	}
	for _, promise := range b.Promises() {
		if more := left[promise]; more > 0 {
			fmt.Fprintf(t.out, "  %s: and %d more\n", promise, more)
		}
	}
}

// breachLine returns a breach as a line of text: the promise, the query that found the breach, and its description.
func breachLine(b audit.Breach) string {
	if b.Query == "" {
		return b.Promise + ": " + b.Text
	}
	return b.Promise + " " + b.Query + ": " + b.Text
}

// printSQL prints the queries of the audit, so that they can be run by hand.
func (c *auditCmd) printSQL(t terminal) error {
	if _, err := firstcome.ParseCampaignID(c.Campaign); err != nil && c.Campaign != "" {
		return usageError{err}
	}
	for _, q := range append(audit.Queries(), audit.OfNone()...) {
		if c.Campaign != "" {
			q.SQL = strings.ReplaceAll(q.SQL, ":campaign", "'"+c.Campaign+"'")
		}
		fmt.Fprintf(t.out, "-- %s %s. %s\n%s;\n\n", q.Breaks, q.Name, q.About, q.SQL)
	}
	return nil
}
