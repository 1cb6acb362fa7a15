//go:build !check

package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestNodesThatStartAtOnceAgreeOnTheNameOfARedis starts four nodes of one ledger at a Redis without a name.
func TestNodesThatStartAtOnceAgreeOnTheNameOfARedis(t *testing.T) {
	for what, c := range map[string]struct {
		campaigns bool             // that another Redis decides
		isNew     func(n int) bool // the value of --new-gate at each node
		unnamed   func(n int) bool // whether the gate may be without a name at each node in the end
	}{
		"a first start": {false, func(int) bool { return false }, func(int) bool { return false }},
		"emptied":       {true, func(int) bool { return false }, func(int) bool { return true }},
		"meant":         {true, func(int) bool { return true }, func(int) bool { return false }},
		"meant by half": {true, func(n int) bool { return n%2 == 0 }, func(n int) bool { return n%2 == 1 }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name, url := services.PostgreSQL.Database(t), services.Redis.Database(t)
			l, err := ledger.Open(t.Context(), name, ledger.Options{Secret: stage.Secret(), Gate: "redis:gone"})
			stage.Must(t, err)
			stop := stage.Serve(t, l)
			if c.campaigns {
				stage.Must(t, l.Campaigns.Create(t.Context(), "test", "c", stage.Terms(1)))
			}
			stop()
			var nodes [4]*remoteGate
			var starting sync.WaitGroup
			for n := range nodes {
				l, err := ledger.Open(t.Context(), name, ledger.Options{Secret: stage.Secret()})
				stage.Must(t, err)
				t.Cleanup(func() { _ = l.Close() })
				nodes[n] = &remoteGate{base: &base{ledger: l, secret: stage.Secret(), flags: &serveCmd{gateFlags: gateFlags{Gate: gateName(url), NewGate: c.isNew(n)}}, log: slog.New(slog.DiscardHandler)}}
				starting.Go(func() {
					if err := nodes[n].dial(t.Context(), gateName(url).kind()); err != nil {
						t.Error(err)
					}
				})
			}
			starting.Wait()
			named := map[string]int{}
			for n, node := range nodes {
				t.Cleanup(node.close)
				name := node.ledger.GateName()
				if named[name]++; name == "" && !c.unnamed(n) {
					t.Errorf("node %d says that Redis has no name", n)
				}
			}
			delete(named, "")
			if (what == "emptied") != (len(named) == 0) || len(named) > 1 {
				t.Errorf("Redis is %v", named)
			}
		})
	}
}

// TestF05NoCampaignIsCreatedAtARedisThatHasLostItsName empties Redis under a running node.
func TestF05NoCampaignIsCreatedAtARedisThatHasLostItsName(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), t.TempDir()+"/firstcome.db", nil, "c")
	over := &gate.Router{Gate: d.remote.gate, Retired: d.ledger.Gate, Kept: d.ledger.Recorder}
	issuer := issue.NewIssuer(over, issue.Limits{})
	t.Cleanup(func() { stage.Must(t, issuer.Stop(context.Background())) })
	machine := d.rebuilder()
	operator := operate.NewRemote(operate.Ledger{Campaigns: d.ledger.Campaigns, Letters: d.ledger.Recorder, Reads: d.ledger.Reads}, issuer, nil, gate.NewChanger(d.ledger.Campaigns, over, nil), over, machine)
	d.do("FLUSHALL")
	if _, err := operator.Create(t.Context(), "op", "d", stage.Terms(5)); !errors.Is(err, gate.ErrUnnamed) || errors.Is(err, gate.ErrUnfinished) || !strings.Contains(err.Error(), "firstcome gate rebuild --all") {
		t.Errorf("the creation is answered %v", err)
	}
	if _, err := d.ledger.Reads.Campaign(t.Context(), "d"); !errors.Is(err, firstcome.ErrNoCampaign) {
		t.Errorf("the ledger has the campaign: %v", err)
	}
	d.rebuilt(machine) // as the error says
	if s, err := operator.Create(t.Context(), "op", "d", stage.Terms(5)); err != nil || s.Creating() {
		t.Errorf("then it is created as %+v, %v", s, err)
	}
}
