package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

// modelKind is a new kind of gate: a row of gateKinds, and a constructor of a gate that passes the suite of test/conform.
type modelKind struct{ gateKind }

var _ = func() bool { gateKinds["model"] = modelKind{}; return true }()

func (modelKind) check(string) error { return nil }

func (modelKind) open(context.Context, *base, *recovery.Watch, []ledger.OtherGate) (servingGate, error) {
	g := &modelGate{model: stage.NewGate(0), issued: make(chan struct{}, 1)}
	g.Issued = func(int64) {
		select {
		case g.issued <- struct{}{}:
		default:
		}
	}
	return servingGate{Gate: g, gateConn: g, recovery: g, retires: g, journal: g, source: func(func(context.Context) ([]gate.Revision, error), alarm, bool) record.Source { return g }}, nil
}

type (
	model    = stage.Gate
	recovers = recovery.Gate
)

// A modelGate is a model of a gate with its journal. It never loses data, so recovery finds it in agreement with the ledger.
type modelGate struct {
	*model
	recovers
	issued chan struct{}

	mu   sync.Mutex   // guards hand
	hand record.Batch // given, and not acknowledged
}

func (*modelGate) Name() string { return "model:test" }

func (*modelGate) Warnings() []string { return nil }

func (*modelGate) Ping(context.Context) error                                          { return nil }
func (*modelGate) Close()                                                              {}
func (*modelGate) EachCreated(context.Context, func(firstcome.CampaignID) error) error { return nil }

func (*modelGate) Created(context.Context, firstcome.CampaignID) (bool, error) { return false, nil }

func (*modelGate) Named(context.Context) (bool, error) { return true, nil }

func (*modelGate) Runs(context.Context) ([]recovery.Run, error) { return nil, nil }

func (*modelGate) Inspect(context.Context, gate.Revision) error { return nil }

func (*modelGate) Lag(context.Context, []gate.Revision) ([]record.Lag, error) { return nil, nil }

func (*modelGate) Behind(context.Context, []gate.Revision) ([]record.Undrained, error) {
	return nil, nil
}

func (*modelGate) Missing(context.Context, firstcome.CampaignID) (b record.Batch, e error) {
	return b, nil
}

func (*modelGate) GateState(_ context.Context, r gate.Revision) (recovery.GateState, error) {
	return recovery.GateState{Epoch: r.Epoch, Version: r.Version, DrainedThrough: r.Drained}, nil
}

func (g *modelGate) Settle(_ context.Context, id firstcome.CampaignID, _ string, drained record.Result, _ ...string) (int64, error) {
	g.model.Settle(id, drained)
	return 0, nil
}

func (g *modelGate) Watch(ctx context.Context, ready func(firstcome.CampaignID)) error {
	for {
		select {
		case <-g.issued:
			ready("spring")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (g *modelGate) Next(_ context.Context, id firstcome.CampaignID) (record.Batch, any, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.hand.Coupons) == 0 {
		g.hand = record.Batch{Campaign: id, Epoch: 1, Coupons: g.Take(id)}
	}
	if len(g.hand.Coupons) == 0 {
		return record.Batch{}, nil, nil
	}
	return g.hand, id, nil
}

func (g *modelGate) Ack(_ context.Context, id any, drained record.Result) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hand = record.Batch{}
	g.model.Settle(id.(firstcome.CampaignID), drained)
	return 0, nil
}

// TestANodeServesAGateThatOneConstructorOpens runs a node with a gate that no product file names. Its coupons are recorded before users get them, a change
// reaches the gate, and the ledger notes which gate decides the campaign.
func TestANodeServesAGateThatOneConstructorOpens(t *testing.T) {
	c := demoServe(filepath.Join(t.TempDir(), "firstcome.db"))
	stage.Must(t, c.Gate.UnmarshalText([]byte("model://here")))
	c.Role, c.files.secret = "all", []byte("a secret of the tests, 32 bytes and more")
	n, err := newNode(t.Context(), c, slog.New(slog.DiscardHandler), func(context.Context, *ledger.Ledger) (bool, error) { return true, nil })
	stage.Must(t, err)
	stage.Run(t, n.run)
	calls := client.New("http://"+n.address(), "")
	defer calls.CloseIdle()
	stage.Must(t, stage.Err(calls.CreateCampaign(t.Context(), client.NewCampaign{ID: "spring", Name: "spring", Quantity: new(int64(2))})))
	claims := func(user string) string {
		answer, err := calls.Claim(t.Context(), "spring", user)
		stage.Must(t, err)
		if answer.Coupon != nil && !answer.Coupon.Recorded {
			t.Errorf("%s is told a coupon that is not recorded: %+v", user, answer.Coupon)
		}
		return answer.Outcome
	}
	stage.Same(t, "what users hear", []string{"issued", "already_issued", "issued", "sold_out"}, []string{claims("ann"), claims("ann"), claims("ben"), claims("cho")})
	stage.Must(t, stage.Err(calls.Void(t.Context(), "spring", 1, "a trial")))
	stage.Same(t, "what is heard behind a void", []string{"issued", "sold_out"}, []string{claims("cho"), claims("ann")})
	campaign, err := calls.Campaign(t.Context(), "spring")
	stage.Must(t, err)
	stage.Same(t, "the gate's state, and who counts", "ok 3 recorded, 2 in force", fmt.Sprintf("%s %d recorded, %d in force", campaign.GateState, campaign.Recorded, *campaign.InForce))
	status, err := n.ledger.Reads.Campaign(t.Context(), "spring")
	stage.Must(t, err)
	stage.Same(t, "whose campaign it is", "model:test", status.Gate)
}
