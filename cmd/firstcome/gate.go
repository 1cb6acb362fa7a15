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
	Rebuild   gateRebuildCmd   `cmd:"" help:"Rebuild the gate of a campaign, or of all campaigns that need it, from the ledger."`
	Reconcile gateReconcileCmd `cmd:"" help:"Copy coupons and terms that a restored ledger has forgotten from Redis back into the ledger, for a campaign or for all."`
}

// States that a server reports for campaigns whose gate decides nothing: see docs/api.md.
const (
	gateLost       = "lost"
	gateRolledBack = "ledger_rolled_back"
	gateStaleEpoch = "stale_epoch"
)

// chosenGates has the flags of a command about the gate of one campaign, or of all campaigns in some state.
type chosenGates struct {
	serverFlags
	ID  string `arg:"" optional:"" placeholder:"CAMPAIGN" help:"The campaign's id."`
	All bool   `variable:"none" help:"Every campaign ${all}."`
}

// oneOrAll refuses a command that has neither a campaign nor --all, or both.
func (c *chosenGates) oneOrAll(all string) []error {
	if (c.ID == "") != c.All {
		return []error{errors.New("name a campaign, or --all for every campaign " + all)}
	}
	return nil
}

// in returns the ids of the chosen campaigns that are in one of these states.
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

// forEachGate calls fix for each campaign in turn, and prints each result. After a failure it continues with the next campaign.
func forEachGate[T any](ctx context.Context, t terminal, as outputFlag, ids []string, fix func(context.Context, string) (T, error), tell func(io.Writer, string, T)) error {
	var failed error
	for _, id := range ids {
		done, err := fix(ctx, id)
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
	WithoutLineLog bool `help:"Rebuild the waiting line from Redis, although the line is logged in Kafka, and log it again. For use if the topic was truncated or recreated, or if Kafka is gone."`
}

func (c *gateRebuildCmd) Help() string {
	return `If Redis restarted or a replica was promoted, nodes verify or rebuild the gate by themselves. Run this command if
Redis was emptied or replaced, or if an address leads back to an older Redis. First make sure that all nodes reach the
Redis that should decide from now on. The gate gets the ledger's coupons in force and open dead letters, in a new epoch.
Every other number that any Redis may have assigned is lost: it is reported, and never assigned again. Users in line
keep their places if the line is logged in Kafka (serve --line), or otherwise if this Redis has them. The other users
must claim again.`
}

func (c *gateRebuildCmd) check(terminal) []error {
	return c.oneOrAll("that the gate has lost, or whose epoch has ended there")
}

func (c *gateRebuildCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	if !c.All {
		return forEachGate(ctx, t, c.outputFlag, []string{c.ID}, c.rebuild(calls, false), tellRebuilt(ctx, calls))
	}
	ids, err := c.in(ctx, calls, gateLost, gateStaleEpoch)
	if err != nil {
		return explain(err)
	}
	if len(ids) == 0 {
		return c.print(t, ids, func(w io.Writer) { fmt.Fprintln(w, "The gate has lost no campaign, and no epoch has ended there.") })
	}
	// Rebuild each only if it is lost: after the first rebuild has given Redis its name again, nodes also rebuild campaigns.
	return forEachGate(ctx, t, c.outputFlag, ids, c.rebuild(calls, true), tellRebuilt(ctx, calls))
}

// rebuild returns the call that rebuilds the gate of a campaign.
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
			fmt.Fprintf(w, "Numbers that are lost, and never assigned again: %d. %s.\n", done.Lost, strings.ToUpper(told[:1])+told[1:])
		}
		if done.Carried > 0 {
			fmt.Fprintf(w, "%d users in line kept their places.\n", done.Carried)
		}
		if done.LostPlaces > 0 {
			fmt.Fprintf(w, "At least %d users in line lost their places: the API tells them, and they may claim again.\n", done.LostPlaces)
		}
	}
}

// whoWasTold returns how many users were answered with lost numbers. If claims were answered before their coupons were recorded, only the count of
// lost numbers bounds it.
func whoWasTold(decided bool) string {
	if decided {
		return `at most so many users got one in an answer, with "recorded": false`
	}
	return "no user got one in an answer, because claims are answered when their coupons are recorded"
}

// everDecided reports whether claims of a campaign were, or may have been, answered before their coupons were recorded.
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
