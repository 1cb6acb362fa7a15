package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/firstcome/firstcome/client"
)

type gateReconcileCmd struct {
	chosenGates `set:"all=of which the ledger is older than the gate"`
	DryRun      bool `help:"Say which campaigns these are, and what would be brought back, about. It changes nothing."`
}

func (c *gateReconcileCmd) Help() string {
	return `Where the ledger's database was restored from a backup, or failed over to a replica that lagged, Redis knows
more than the ledger. Nodes notice that, and decide and change nothing of such a campaign. This brings back
what Redis still has: the coupons of its holders and its journal with their numbers, instants and codes, and
quantity, window, pace, pause and close. Then the gate is made anew, in a new epoch. Numbers that nobody has
are lost, and are never given again. What Redis does not keep is as in the backup: the campaign's name, its
benefit, who voided what and why, and dead letters. If the newer database still exists, bring that back instead.`
}

func (c *gateReconcileCmd) check(terminal) []error {
	return c.oneOrAll("of which the ledger is older than the gate")
}

func (c *gateReconcileCmd) Run(ctx context.Context, t terminal) (err error) {
	calls := c.client(t)
	defer calls.CloseIdle()
	ids := []string{c.ID}
	if c.All || c.DryRun {
		if ids, err = c.in(ctx, calls, gateAhead); err != nil {
			return explain(err)
		}
	}
	if c.DryRun || len(ids) == 0 {
		return c.estimate(ctx, t, calls, ids)
	}
	return mendEach(ctx, t, c.outputFlag, ids, calls.Operator().Reconcile, tellReconciled)
}

// estimate says what a reconcile of each campaign would come to.
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
			fmt.Fprintln(w, "The ledger is older than the gate of no such campaign.")
		}
		for _, e := range all {
			tellEstimate(w, e)
		}
	})
}

func tellEstimate(w io.Writer, e client.Estimate) {
	fmt.Fprintf(w, "%s: the ledger is older than the gate, which is at version %d of epoch %d; the ledger is at version %d of %d.\n", e.CampaignID, e.GateVersion, e.GateEpoch, e.LedgerVersion, e.LedgerEpoch)
	fmt.Fprintf(w, "The gate has %s that the ledger lacks. In the backup and not at the gate: %s. Forgotten: %s.\n",
		plural(e.Recovered, "coupon", "coupons"), plural(e.Voided+e.Unexplained, "coupon", "coupons"), plural(max(0, e.GateVersion-e.LedgerVersion), "change", "changes"))
	if e.Unexplained > 0 {
		fmt.Fprintln(w, "The forgotten changes cannot have voided so many: those coupons would stay in force.")
	}
	fmt.Fprintf(w, "To bring back what the gate has: firstcome gate reconcile %s\n", e.CampaignID)
}

func tellReconciled(w io.Writer, id string, done client.Reconciled) {
	fmt.Fprintf(w, "%s is decided again, in epoch %d; %s brought back from the gate.\n", id, done.Epoch, plural(done.Recovered, "coupon was", "coupons were"))
	if forgotten := done.GateVersion - done.LedgerVersion; forgotten > 0 {
		fmt.Fprintf(w, "The ledger had forgotten %s, from version %d on: who made them, and why, is not known. Quantity, window, pause and close are now the gate's; name and benefit are as in the backup.\n",
			plural(forgotten, "change", "changes"), done.LedgerVersion+1)
	}
	tell := func(n int64, text string, args ...any) {
		if n > 0 {
			fmt.Fprintf(w, text+"\n", args...)
		}
	}
	tell(done.Lost, "%s nobody's: voided after the backup, or lost. No number is given again.", plural(done.Lost, "number is", "numbers are"))
	tell(done.Voided, "%s in the backup and not at the gate, so void.", plural(done.Voided, "coupon is", "coupons are"))
	tell(done.Unexplained, "%s in the backup and not at the gate, and the forgotten changes do not explain it: in force again.", plural(done.Unexplained, "coupon is", "coupons are"))
	tell(done.DeadLetters, "%s refused by the ledger: see firstcome dead-letter list.", plural(done.DeadLetters, "coupon was", "coupons were"))
	tell(done.Carried, "%s in line kept their places.", plural(done.Carried, "person", "people"))
	tell(done.LostPlaces, "At least %s in line lost their places: they hear so, and may claim again.", plural(done.LostPlaces, "person", "people"))
	from := max(done.FactsFrom, 1)
	fmt.Fprintf(w, "Its facts from position %d on may be others than before: whoever reads them over HTTP reads on after %d once more.\n", from, from-1)
	for _, follower := range done.Followers {
		fmt.Fprintf(w, "%s has stopped with this campaign. To publish its facts there again: firstcome facts replay %s --from %d --ledger URL --facts kafka://HOST:PORT/%s\n",
			follower, id, from, strings.TrimPrefix(follower, "kafka/"))
	}
}

// plural returns a number with the word for one, or for more.
func plural(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
