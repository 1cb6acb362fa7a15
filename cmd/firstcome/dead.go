package main

import (
	"context"
	"fmt"
	"io"

	"github.com/firstcome/firstcome/client"
)

type deadCmd struct {
	List   deadListCmd   `cmd:"" help:"List what the ledger would not take."`
	Replay deadReplayCmd `cmd:"" help:"Record a dead letter's coupon, once its cause is mended."`
	Void   deadVoidCmd   `cmd:"" help:"Give a dead letter up for good: its stock returns, and its user may claim again."`
}

type deadListCmd struct {
	serverFlags
	Campaign string `placeholder:"ID" help:"Only those of this campaign."`
	Resolved bool   `help:"Those too that were replayed or voided."`
}

func (c *deadListCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	all, err := client.All(func(after string) (client.List[client.DeadLetter], error) {
		return calls.DeadLetters(ctx, client.LetterFilter{Campaign: c.Campaign, Resolved: c.Resolved, After: after})
	})
	if err != nil {
		return explain(err)
	}
	return c.print(t, all, func(w io.Writer) {
		fmt.Fprintln(w, "ID\tSTATE\tCAMPAIGN\tNUMBER\tUSER\tCREATED\tCAUSE")
		for _, d := range all {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, letterState(d), orNone(d.CampaignID), orNone(d.Number),
				orNone(d.UserID), c.TZ.text(&d.CreatedAt), cell(d.Cause))
		}
	})
}

// oneLetter is what a command about one dead letter takes.
type oneLetter struct {
	serverFlags
	ID int64 `arg:"" help:"The dead letter's id, as dead list prints it."`
}

type deadReplayCmd struct{ oneLetter }

func (c *deadReplayCmd) Run(ctx context.Context, t terminal) error {
	return answered(t, c.printLetter)(c.client(t).ReplayDeadLetter(ctx, c.ID))
}

type deadVoidCmd struct {
	oneLetter
	Reason string `required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

func (c *deadVoidCmd) Run(ctx context.Context, t terminal) error {
	return answered(t, c.printLetter)(c.client(t).VoidDeadLetter(ctx, c.ID, c.Reason))
}

// printLetter says what became of a dead letter.
func (c *oneLetter) printLetter(t terminal, d client.DeadLetter) error {
	return c.print(t, d, func(w io.Writer) { fmt.Fprintf(w, "Dead letter %d is %s.\n", d.ID, letterState(d)) })
}

func letterState(d client.DeadLetter) string {
	if d.ResolvedBy == nil {
		return "open"
	}
	return *d.ResolvedBy
}

// orNone returns the text of a value, - where there is none.
func orNone[T any](value *T) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprint(*value)
}
