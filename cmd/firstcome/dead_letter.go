package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/firstcome/firstcome/client"
)

type deadLetterCmd struct {
	List   deadListCmd   `cmd:"" help:"List dead letters: coupons and journal entries that the ledger refused."`
	Causes deadCausesCmd `cmd:"" help:"Count the open dead letters by campaign and cause."`
	Replay deadReplayCmd `cmd:"" help:"Record the coupon of one dead letter, or of all with a cause, after the cause is fixed."`
	Void   deadVoidCmd   `cmd:"" help:"Give up one dead letter, or all with a cause, permanently: the stock returns, and the users may claim again."`
}

type deadListCmd struct {
	serverFlags
	Campaign string `placeholder:"ID" help:"List only dead letters of this campaign."`
	Cause    string `placeholder:"CAUSE" help:"List only dead letters with this cause, as printed by dead-letter causes."`
	Resolved bool   `help:"Also list dead letters that were replayed or voided."`
}

func (c *deadListCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	all, err := client.All(func(after string) (client.List[client.DeadLetter], error) {
		return calls.Operator().DeadLetters(ctx, client.LetterFilter{Campaign: c.Campaign, Cause: c.Cause, Resolved: c.Resolved, After: after})
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

type deadCausesCmd struct {
	serverFlags
	Campaign string `placeholder:"ID" help:"Count only dead letters of this campaign."`
}

func (c *deadCausesCmd) Run(ctx context.Context, t terminal) error {
	return answered(t, func(t terminal, found client.List[client.DeadLetterCause]) error {
		return c.print(t, found.Items, func(w io.Writer) {
			fmt.Fprintln(w, "CAMPAIGN\tCAUSE\tOPEN\tTHROUGH")
			for _, d := range found.Items {
				fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", d.CampaignID, d.CauseCode, d.Open, d.Through)
			}
		})
	})(c.client(t).Operator().DeadLetterCauses(ctx, c.Campaign))
}

// chosenLetters has the flags of a command about one dead letter, or about all with a campaign and a cause.
type chosenLetters struct {
	serverFlags
	ID       int64  `arg:"" optional:"" help:"The dead letter's id, as printed by dead-letter list."`
	Campaign string `placeholder:"ID" help:"Instead of an id: all open dead letters of this campaign with the cause in --cause."`
	Cause    string `placeholder:"CAUSE" help:"With --campaign: the cause, as printed by dead-letter causes, like over_quantity."`
	Yes      bool   `variable:"none" help:"With --campaign: do not ask for confirmation."`
}

// check returns an error unless the flags name one letter, or a campaign and a cause.
func (c *chosenLetters) check(terminal) []error {
	if many := c.Campaign != "" && c.Cause != ""; (c.ID != 0) == many || !many && (c.Campaign != "" || c.Cause != "" || c.Yes) {
		return []error{errors.New("name one dead letter by its id, or all with a cause by --campaign and --cause")}
	}
	return nil
}

type deadReplayCmd struct{ chosenLetters }

func (c *deadReplayCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	if c.ID != 0 {
		return answered(t, c.printLetter)(calls.Operator().ReplayDeadLetter(ctx, c.ID))
	}
	return c.all(ctx, t, calls, "These dead letters will be recorded.", calls.Operator().ReplayDeadLetters)
}

type deadVoidCmd struct {
	chosenLetters
	Reason string `required:"" placeholder:"TEXT" help:"The reason, for the audit log."`
}

func (c *deadVoidCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	if c.ID != 0 {
		return answered(t, c.printLetter)(calls.Operator().VoidDeadLetter(ctx, c.ID, c.Reason))
	}
	return c.all(ctx, t, calls, "These dead letters will be given up permanently.", func(ctx context.Context, of client.LetterChoice) (client.ResolvedLetters, error) {
		return calls.Operator().VoidDeadLetters(ctx, of, c.Reason)
	})
}

// all resolves the dead letters of a campaign and cause that are open now, one call after another, if the caller confirms.
func (c *chosenLetters) all(ctx context.Context, t terminal, calls *client.Client, what string, resolve func(context.Context, client.LetterChoice) (client.ResolvedLetters, error)) error {
	const few = 3
	of := client.LetterChoice{CampaignID: c.Campaign, CauseCode: c.Cause}
	first, err := calls.Operator().DeadLetters(ctx, client.LetterFilter{Campaign: c.Campaign, Cause: c.Cause, Limit: few})
	if err != nil {
		return explain(err)
	}
	causes, err := calls.Operator().DeadLetterCauses(ctx, c.Campaign)
	if err != nil {
		return explain(err)
	}
	open := int64(0)
	for _, found := range causes.Items {
		if found.CauseCode == c.Cause {
			open, of.Through = found.Open, found.Through
		}
	}
	total := client.ResolvedLetters{Refused: []int64{}}
	if open > 0 {
		fmt.Fprintf(t.err, "%s of %s, %s:\n", counted(open, "open dead letter", "s"), c.Campaign, c.Cause)
		for _, d := range first.Items {
			fmt.Fprintf(t.err, "  %d: %s\n", d.ID, cell(d.Cause))
		}
		if !c.Yes {
			if err := t.confirm(ctx, what, c.Campaign); err != nil {
				return err
			}
		}
		for more := true; more && err == nil; {
			var got client.ResolvedLetters
			if got, err = resolve(ctx, of); err == nil {
				total.Done, total.Refused, total.Remaining = total.Done+got.Done, append(total.Refused, got.Refused...), got.Remaining
				if total.Next, more = got.Next, got.Next != nil; more {
					of.After = *got.Next
				}
				total.Stopped = got.Stopped
			}
		}
	}
	// Show the letters that are resolved so far, even if a later call failed.
	shown := c.print(t, total, func(w io.Writer) {
		fmt.Fprintf(w, "%s resolved, %d refused as before, %d not tried.\n", counted(int64(total.Done), "dead letter", "s"), len(total.Refused), total.Remaining)
	})
	switch {
	case err == nil && total.Stopped != nil:
		err = errors.New(*total.Stopped)
	case err == nil && len(total.Refused) > 0:
		err = fmt.Errorf("the ledger still refuses %s: see firstcome dead-letter list", counted(int64(len(total.Refused)), "dead letter", "s"))
	case err == nil:
		err = shown
	}
	return explain(err)
}

// printLetter prints the state of a dead letter.
func (c *chosenLetters) printLetter(t terminal, d client.DeadLetter) error {
	return c.print(t, d, func(w io.Writer) { fmt.Fprintf(w, "Dead letter %d is %s.\n", d.ID, letterState(d)) })
}

func letterState(d client.DeadLetter) string {
	if d.ResolvedBy == nil {
		return "open"
	}
	return *d.ResolvedBy
}

// orNone returns a value as text, or - if value is nil.
func orNone[T any](value *T) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprint(*value)
}
