//go:build !check && (!race || soak)

package console_test

import (
	"context"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// realGates are the real gates beside the ledger.
var realGates = map[string]func(t *testing.T, change func(*house)) *house{"Redis decides": openRedis}

// openRedis opens a house whose campaigns a Redis decides. A recorder records its coupons.
func openRedis(t *testing.T, change func(*house)) *house {
	t.Helper()
	h := &house{t: t, file: services.Ledgers[services.SQLite](t)}
	var err error
	h.ledger, err = ledger.Open(context.Background(), h.file, ledger.Options{Owner: "a test", Secret: stage.Secret(), Clock: h.clock})
	stage.Must(t, err)
	g, err := redis.Open(t.Context(), redis.Options{
		URL: services.Redis.Database(t), Secret: stage.Secret(), Clock: h.clock, Ledger: h.ledger.Identity,
		CampaignUID: func(ctx context.Context, id firstcome.CampaignID) (string, error) {
			c, err := h.ledger.Reads.Campaign(ctx, id)
			return c.CampaignUID, err
		},
		OnUnknown: func(ctx context.Context, id firstcome.CampaignID) error {
			if c, err := h.ledger.Reads.Campaign(ctx, id); err != nil || c.RetiredAt.IsZero() {
				return err
			}
			return gate.ErrRetired
		},
	})
	stage.Must(t, err)
	t.Cleanup(g.Close)
	stage.Must(t, h.ledger.UseGate(t.Context(), ledger.RemoteGate{Gate: g.Name()}))
	stage.Serve(t, h.ledger)
	stage.Run(t, record.NewRecorder(g.Journal.Consumer(redis.ConsumerOptions{Active: h.ledger.Recorder.Active}), h.ledger.Recorder, record.Options{}).Run)
	far := struct {
		gate.Gate
		*redis.Recovery
	}{g.AsGate(), g.Recovery}
	h.remote, h.eyes = far, &eyes{farGate: far}
	h.record = func() {
		t.Helper()
		stage.Await(t, "the ledger has what Redis issued", true, func() bool {
			state, err := far.State(t.Context(), "spring")
			return err == nil && state.DrainedThrough == state.LastNumber
		})
	}
	over := &gate.Router{Gate: h.eyes, Retired: h.ledger.Gate, Ledger: h.ledger.Recorder, Watch: &h.mender}
	h.decides, h.coupons, h.over, h.issuer = over, over, over, issue.NewIssuer(over, issue.Options{})
	claims := &issue.Answerer{Issuer: h.issuer, Coupons: over}
	operator := operate.NewRemote(operate.Ledger{Campaigns: h.ledger.Campaigns, Letters: h.ledger.Recorder, Reads: h.ledger.Reads}, h.issuer, claims, gate.NewChanger(h.ledger.Campaigns, over, nil), over, &h.mender)
	lag := func(context.Context) ([]record.Lag, error) { return nil, nil }
	recorder := func() record.Stats { return record.Stats{Breaker: "closed"} }
	h.config = console.Options{Places: over, Operator: operator, Gate: over, Journal: &console.Journal{Gate: g.Name(), Lag: lag, Recorder: recorder, Troubles: h.mender.all}}
	return h.open(over, change)
}
