package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/firstcome/firstcome/client"
)

type gateReconcileCmd struct {
	chosenGates `set:"all=whose ledger is older than its gate"`
	DryRun      bool `help:"Print the campaigns to reconcile, and an estimate of the result. Nothing is changed."`
}

func (c *gateReconcileCmd) Help() string {
	return `If the ledger's database was restored from a backup, or failed over to a replica that lagged, Redis has data that the
ledger lacks. Nodes notice this, and decide and change nothing of such a campaign. reconcile copies the data of Redis
into the ledger: the coupons of its holders and of its journal, with their numbers, times and codes, and the terms that
Redis has, with prizes, pause and close. Then it rebuilds the gate in a new epoch. Numbers that no user has are lost, and
never assigned again. Data that Redis does not have stays as in the backup: who changed what and why, who voided which
coupons and why, and dead letters. If the newer database still exists, restore that instead.`
}

func (c *gateReconcileCmd) check(terminal) []error {
	return c.oneOrAll("whose ledger is older than its gate")
}

func (c *gateReconcileCmd) Run(ctx context.Context, t terminal) (err error) {
	calls := c.client(t)
	defer calls.CloseIdle()
	ids := []string{c.ID}
	if c.All || c.DryRun {
		if ids, err = c.in(ctx, calls, gateRolledBack); err != nil {
			return explain(err)
		}
	}
	if c.DryRun || len(ids) == 0 {
		return c.estimate(ctx, t, calls, ids)
	}
	return forEachGate(ctx, t, c.outputFlag, ids, calls.Operator().Reconcile, tellReconciled)
}

// estimate prints the estimated result of a reconcile of each campaign.
func (c *gateReconcileCmd) estimate(ctx context.Context, t terminal, calls *client.Client, ids []string) error {
	all := make([]client.Estimate, len(ids))
	for n, id := range ids {
		var err error
		if all[n], err = calls.Operator().Estimate(ctx, id); err != nil {
			return fmt.Errorf("%s: %w", id, explain(err))
		}
	}
	return c.print(t, all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "No such campaign has a ledger older than its gate.")
		}
		for _, e := range all {
			tellEstimate(w, e)
		}
	})
}

func tellEstimate(w io.Writer, e client.Estimate) {
	fmt.Fprintf(w, "%s: the ledger is older than the gate, which is at version %d of epoch %d; the ledger is at version %d of epoch %d.\n", e.CampaignID, e.GateVersion, e.GateEpoch, e.LedgerVersion, e.LedgerEpoch)
	fmt.Fprintf(w, "The gate has %s that the ledger lacks. In the backup but not at the gate: %s. Forgotten by the ledger: %s.\n",
		plural(e.Recovered, "coupon", "coupons"), plural(e.Voided+e.Unexplained, "coupon", "coupons"), plural(max(0, e.GateVersion-e.LedgerVersion), "change", "changes"))
	if e.Unexplained > 0 {
		fmt.Fprintln(w, "The forgotten changes cannot have voided so many coupons: those coupons would stay in force.")
	}
	fmt.Fprintf(w, "To copy the gate's data into the ledger: firstcome gate reconcile %s\n", e.CampaignID)
}

func tellReconciled(w io.Writer, id string, done client.Reconciled) {
	fmt.Fprintf(w, "%s is decided again, in epoch %d; %s brought back from the gate.\n", id, done.Epoch, plural(done.Recovered, "coupon was", "coupons were"))
	if forgotten := done.GateVersion - done.LedgerVersion; forgotten > 0 {
		fmt.Fprintf(w, "The ledger had forgotten %s, from version %d on: their actors and reasons are unknown. Quantity, window, pace, waitlist, pause and close are now as at the gate; name and benefit are as in the backup.\n",
			plural(forgotten, "change", "changes"), done.LedgerVersion+1)
	}
	tell := func(n int64, text string, args ...any) {
		if n > 0 {
			fmt.Fprintf(w, text+"\n", args...)
		}
	}
	tell(done.Lost, "%s held by no user: voided after the backup, or lost. No number is assigned again.", plural(done.Lost, "number is", "numbers are"))
	tell(done.Voided, "%s in the backup but not at the gate, and now voided.", plural(done.Voided, "coupon is", "coupons are"))
	tell(done.Unexplained, "%s in the backup but not at the gate, which the forgotten changes do not explain: in force again.", plural(done.Unexplained, "coupon is", "coupons are"))
	tell(done.DeadLetters, "%s refused by the ledger: see firstcome dead-letter list.", plural(done.DeadLetters, "coupon was", "coupons were"))
	tell(done.Carried, "%s in line kept their places.", plural(done.Carried, "user", "users"))
	tell(done.LostPlaces, "At least %s in line lost their places: the API tells them, and they may claim again.", plural(done.LostPlaces, "user", "users"))
	from := max(done.FactsFrom, 1)
	fmt.Fprintf(w, "Its facts from position %d on may differ from before: clients that read facts over HTTP must read again after position %d.\n", from, from-1)
	for _, follower := range done.Followers {
		fmt.Fprintf(w, "%s no longer gets facts of this campaign. To publish its facts there again: firstcome facts replay %s --from %d --ledger URL --facts kafka://HOST:PORT/%s\n",
			follower, id, from, strings.TrimPrefix(follower, "kafka/"))
	}
}

// plural returns a number with the noun in the singular or the plural.
func plural(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
