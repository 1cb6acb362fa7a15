package main

import (
	"context"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/firstcome/firstcome/client"
)

type deadCmd struct {
	List   deadListCmd   `cmd:"" help:"List what the ledger would not take."`
	Replay deadReplayCmd `cmd:"" help:"Record a dead letter's coupon, once its cause is mended."`
	Void   deadVoidCmd   `cmd:"" help:"Settle a dead letter for good: its stock returns, and its user may claim again."`
}

type deadListCmd struct {
	serverFlags
	Campaign string `placeholder:"ID" help:"Only those of this campaign."`
	Settled  bool   `help:"Those too that were replayed or voided."`
}

// Run lists dead letters.
func (c *deadListCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	all := []client.DeadLetter{}
	filter := client.LetterFilter{Campaign: c.Campaign, Settled: c.Settled}
	for {
		page, err := calls.DeadLetters(ctx, filter)
		if err != nil {
			return explain(err)
		}
		all = append(all, page.Items...)
		if page.Next == nil {
			break
		}
		filter.After = *page.Next
	}
	if c.json() {
		return printJSON(t, all)
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tCAMPAIGN\tNUMBER\tUSER\tCREATED\tCAUSE")
	for _, d := range all {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, letterState(d), orNone(d.CampaignID), numberText(d.Number),
			orNone(d.UserID), c.TZ.text(&d.CreatedAt), cell(d.Cause))
	}
	return w.Flush()
}

// oneLetter is what a command about one dead letter takes.
type oneLetter struct {
	serverFlags
	ID int64 `arg:"" help:"The dead letter's id, as dead list prints it."`
}

type deadReplayCmd struct{ oneLetter }

// Run replays a dead letter.
func (c *deadReplayCmd) Run(ctx context.Context, t terminal) error {
	settled, err := c.client(t).ReplayDeadLetter(ctx, c.ID)
	return c.print(t, settled, err)
}

type deadVoidCmd struct {
	oneLetter
	Reason string `required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run voids a dead letter.
func (c *deadVoidCmd) Run(ctx context.Context, t terminal) error {
	settled, err := c.client(t).VoidDeadLetter(ctx, c.ID, c.Reason)
	return c.print(t, settled, err)
}

// print prints the dead letter that the server answered with, or explains the error.
func (c *oneLetter) print(t terminal, d client.DeadLetter, err error) error {
	if err != nil {
		return explain(err)
	}
	if c.json() {
		return printJSON(t, d)
	}
	_, err = fmt.Fprintf(t.out, "Dead letter %d is %s.\n", d.ID, letterState(d))
	return err
}

func letterState(d client.DeadLetter) string {
	if d.SettledBy == nil {
		return "open"
	}
	return *d.SettledBy
}

func orNone(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}

func numberText(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}
