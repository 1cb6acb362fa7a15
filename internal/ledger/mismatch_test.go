package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestALedgerSaysWhichGatesItsCampaignsName has campaigns of four gates, one of which has only a retired one.
func TestALedgerSaysWhichGatesItsCampaignsName(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remoteAt(t, name)
		db := services.Beside(t, name)
		if others, err := l.OtherGates(t.Context()); err != nil || others != nil {
			t.Errorf("an empty ledger names %v: %v", others, err)
		}
		for id, gate := range map[firstcome.CampaignID]string{
			"a": "redis:test", "b": "redis:gone", "c": "redis:gone", "d": "redis:away", "e": "ledger", "f": "redis:old",
		} {
			create(t, l, id, 3)
			execute(t, db, `UPDATE campaigns SET gate = '`+gate+`' WHERE id = '`+string(id)+`'`)
		}
		execute(t, db, `UPDATE campaigns SET retired_at = 1 WHERE id = 'f'`)
		others, err := l.OtherGates(t.Context())
		if diff := cmp.Diff([]ledger.OtherGate{{Name: "redis:away", Campaigns: 1}, {Name: "redis:gone", Campaigns: 2}}, others); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
		if n, _, err := l.Mismatched(t.Context(), stage.Secret()); n != 1 || err != nil {
			t.Errorf("%d campaigns are decided by the ledger: %v", n, err)
		}
	})
}

// TestACampaignOfAnotherRedisIsLostAndCanBeClosed has a ledger whose campaign c is decided by a Redis that is gone.
func TestACampaignOfAnotherRedisIsLostAndCanBeClosed(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 3)
		ctx, db := t.Context(), services.Beside(t, name)
		stage.Must(t, l.Campaigns.Applied(ctx, firstcome.Change{Campaign: "c", Version: 1}, false))
		execute(t, db, `UPDATE campaigns SET gate = 'redis:gone' WHERE id = 'c'`)
		lost := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, gate.ErrGone) || !errors.Is(err, firstcome.ErrGateMismatch) {
				t.Errorf("%s: %v", what, err)
			}
		}
		c := status(t, l)
		err := l.Reads.Decides(&c)
		lost("it decides", err)
		if text := err.Error(); !strings.Contains(text, "redis:gone") || !strings.Contains(text, "redis:test") {
			t.Errorf("both names are not in %q", text)
		}
		_, err = l.Campaigns.ChangeState(ctx, "test", "c", 0, firstcome.ChangePause)
		lost("pause", err)
		_, err = l.Campaigns.SetTerms(ctx, "test", "c", 0, func(to *firstcome.Terms) { to.Quantity = 9 })
		lost("terms", err)
		_, err = l.Epochs.Retire(ctx, "c", gate.State{}, 0)
		lost("retire", err)
		lost("applied", l.Campaigns.Applied(ctx, firstcome.Change{Campaign: "c", Version: 1}, false))
		if _, err := l.Recorder.Record(ctx, given(stage.Coupon("c", 1))); !errors.Is(err, firstcome.ErrGateMismatch) {
			t.Errorf("record: %v", err)
		}

		version, err := l.Campaigns.ChangeState(ctx, "test", "c", 0, firstcome.ChangeClose)
		if version != 2 || err != nil {
			t.Errorf("closed as version %d: %v", version, err)
		}
		if c := status(t, l); !c.Closed || c.Applied != 1 {
			t.Errorf("it is %+v", c)
		}
		_, err = l.Campaigns.Pending(ctx, "c")
		lost("what its gate lacks", err)
		if all, err := l.Campaigns.Pending(ctx, ""); len(all) > 0 || err != nil {
			t.Errorf("this gate lacks %v: %v", all, err)
		}
		if _, err := l.Campaigns.ChangeState(ctx, "test", "c", 0, firstcome.ChangeClose); !errors.Is(err, firstcome.ErrPending) {
			t.Errorf("closed again: %v", err)
		}

		// A retired campaign is the ledger's, whatever became of its gate.
		execute(t, db, `UPDATE campaigns SET retired_at = 1 WHERE id = 'c'`)
		decisions, err := l.Gate.ClaimRetired(ctx, "c", users("a"))
		if err != nil || len(decisions) != 1 || decisions[0].Outcome != firstcome.Closed {
			t.Errorf("once it is retired, it decides %v: %v", decisions, err)
		}
		execute(t, db, `UPDATE campaigns SET retired_at = NULL WHERE id = 'c'`)

		// The Redis comes back: it hears of the close.
		execute(t, db, `UPDATE campaigns SET gate = 'redis:test' WHERE id = 'c'`)
		if all, err := l.Campaigns.Pending(ctx, "c"); len(all) != 1 || all[0].Kind != firstcome.ChangeClose || err != nil {
			t.Errorf("it lacks %v: %v", all, err)
		}
	})
}

func TestAGateWithoutANameMakesNoCampaign(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 3)
		stage.Must(t, l.UseGate(t.Context(), ledger.RemoteGate{}))
		if err := l.Campaigns.Create(t.Context(), "test", "d", terms(0)); !errors.Is(err, gate.ErrUnnamed) {
			t.Errorf("it makes one: %v", err)
		}
		c := status(t, l)
		if err := l.Reads.Decides(&c); !errors.Is(err, gate.ErrGone) || !strings.Contains(err.Error(), "no name") {
			t.Errorf("it decides: %v", err)
		}
	})
}
