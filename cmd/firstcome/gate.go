package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

type gateCmd struct {
	Rebuild   gateRebuildCmd   `cmd:"" help:"Recreate the gate of a campaign, or of all that need it, from what the ledger has."`
	Reconcile gateReconcileCmd `cmd:"" help:"Bring back what Redis has and a ledger that was restored from a backup has forgotten, of a campaign or of all."`
}

// The states that a server names for campaigns of which the gate decides nothing: see docs/api.md.
const (
	gateLost   = "lost"
	gateAhead  = "ahead"
	gateBehind = "behind"
)

// chosenGates are the gate of one campaign, or of all that are in a state.
type chosenGates struct {
	serverFlags
	ID  string `arg:"" optional:"" placeholder:"CAMPAIGN" help:"The campaign's id."`
	All bool   `help:"Every campaign ${all}."`
}

// oneOrAll refuses a command that names no campaign, or one and all.
func (c *chosenGates) oneOrAll(all string) []error {
	if (c.ID == "") != c.All {
		return []error{errors.New("name a campaign, or --all for every campaign " + all)}
	}
	return nil
}

// in returns which of the campaigns are in one of these states.
func (c *chosenGates) in(ctx context.Context, calls *client.Client, states ...string) ([]string, error) {
	all, err := client.All(func(after string) (client.List[client.Campaign], error) { return calls.Campaigns(ctx, after, 0) })
	ids := []string{}
	for _, one := range all {
		if slices.Contains(states, one.GateState) && (c.All || one.ID == c.ID) {
			ids = append(ids, one.ID)
		}
	}
	return ids, err
}

// mendEach mends the gates of campaigns, one after the other, and tells of each. One that fails does not keep the others from it.
func mendEach[T any](ctx context.Context, t terminal, as outputFlag, ids []string, mend func(context.Context, string) (T, error), tell func(io.Writer, string, T)) error {
	var failed error
	for _, id := range ids {
		done, err := mend(ctx, id)
		if err == nil {
			err = as.print(t, done, func(w io.Writer) { tell(w, id, done) })
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", id, explain(err)))
		}
	}
	return failed
}

type gateRebuildCmd struct {
	chosenGates    `set:"all=that the gate has lost, or whose epoch has ended there"`
	WithoutLineLog bool `help:"Take the waiting line from what Redis still has, though it is logged in Kafka, and log it again: where the topic was cut or made again, or Kafka is gone."`
}

func (c *gateRebuildCmd) Help() string {
	return `Where Redis restarted, or a replica was promoted, firstcome does this by itself. Say it where Redis was
emptied or is another one, or where an address leads back to an older Redis, once all nodes reach the one
Redis that is to decide from now on. The ledger's coupons in force and open dead letters become the gate's
again, under a new epoch. Every other number that any Redis may have given is lost, is reported, and is
never given again. People in line keep their places if they are logged in Kafka (serve --line), or else if this Redis has
them; others claim again.`
}

func (c *gateRebuildCmd) check(terminal) []error {
	return c.oneOrAll("that the gate has lost, or whose epoch has ended there")
}

func (c *gateRebuildCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	if !c.All {
		return mendEach(ctx, t, c.outputFlag, []string{c.ID}, c.rebuild(calls, false), tellRebuilt(ctx, calls))
	}
	ids, err := c.in(ctx, calls, gateLost, gateBehind)
	if err != nil {
		return explain(err)
	}
	if len(ids) == 0 {
		return c.print(t, ids, func(w io.Writer) { fmt.Fprintln(w, "The gate has lost no campaign, and no epoch has ended there.") })
	}
	// If lost: nodes rebuild campaigns, too, once the first one here gave Redis its name again.
	return mendEach(ctx, t, c.outputFlag, ids, c.rebuild(calls, true), tellRebuilt(ctx, calls))
}

// rebuild returns what rebuilds the gate of a campaign.
func (c *gateRebuildCmd) rebuild(calls *client.Client, ifLost bool) func(context.Context, string) (client.Rebuilt, error) {
	switch {
	case c.WithoutLineLog:
		return calls.Operator().RebuildWithoutLineLog
	case ifLost:
		return calls.Operator().RebuildIfLost
	}
	return calls.Operator().Rebuild
}

func tellRebuilt(ctx context.Context, calls *client.Client) func(w io.Writer, id string, done client.Rebuilt) {
	return func(w io.Writer, id string, done client.Rebuilt) {
		fmt.Fprintf(w, "%s is decided again, in epoch %d.\n", id, done.Epoch)
		if done.Lost > 0 {
			told := whoWasTold(everDecided(ctx, calls, id))
			fmt.Fprintf(w, "Numbers that are lost, and never given again: %d. %s.\n", done.Lost, strings.ToUpper(told[:1])+told[1:])
		}
		if done.Carried > 0 {
			fmt.Fprintf(w, "%d people in line kept their places.\n", done.Carried)
		}
		if done.LostPlaces > 0 {
			fmt.Fprintf(w, "At least %d people in line lost their places: they hear so, and may claim again.\n", done.LostPlaces)
		}
	}
}

// whoWasTold says who was told lost numbers. Where claims were answered before their coupons were recorded, all that is known is how many
// numbers there are.
func whoWasTold(decided bool) string {
	if decided {
		return `at most so many people were told one, with "recorded": false`
	}
	return "nobody was told one, because claims are answered when their coupons are recorded"
}

// everDecided reports whether terms of a campaign have, or may have had, claims answered before their coupons were recorded.
func everDecided(ctx context.Context, calls *client.Client, id string) bool {
	for after := int64(0); ; {
		page, err := calls.Operator().Changes(ctx, id, after, maxPage)
		if err != nil {
			return true
		}
		for _, c := range page.Items {
			if after = c.Version; c.Kind == string(firstcome.ChangeReconcile) || c.Terms != nil && c.Terms.Answer == string(firstcome.Decided) && !c.Refused {
				return true
			}
		}
		if page.Next == nil {
			return false
		}
	}
}
