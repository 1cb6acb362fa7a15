//go:build !check

package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/recovery"
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
				b := &base{ledger: l, secret: stage.Secret(), flags: &serveCmd{gateFlags: gateFlags{Gate: gateName(url), NewGate: c.isNew(n)}}, log: slog.New(slog.DiscardHandler)}
				starting.Go(func() {
					var err error
					if nodes[n], err = openRemoteGate(t.Context(), b, gateName(url).kind()); err != nil {
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
	over := &gate.Router{Gate: d.remote.gate, Retired: d.ledger.Gate, Ledger: d.ledger.Recorder}
	issuer := issue.NewIssuer(over, issue.Options{})
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

// TestF01ANodeThatStartsWhileRedisIsAwayWaitsForIt starts the gate of a node while its Redis is killed, and brings Redis back once the node says that it
// waits. Then Redis reads its file slowly, so the node hears LOADING, too.
func TestF01ANodeThatStartsWhileRedisIsAwayWaitsForIt(t *testing.T) {
	t.Parallel()
	server := services.Redis.Server(t, "--appendfsync", "always", "--key-load-delay", "300")
	d := newDesk(t, server.URL(), t.TempDir()+"/firstcome.db", nil, "c")
	d.do("EVAL", "for i = 1, 10000 do redis.call('SET', 'filler:' .. i, i) end return 1", "0")
	stage.Must(t, server.Kill())
	var told atomic.Int64
	waits := make(chan struct{})
	log := slog.New(onLog(func(text string) {
		if strings.Contains(text, "this start waits for it") && told.Add(1) == 1 {
			close(waits)
		}
	}))
	b := &base{ledger: d.ledger, secret: stage.Secret(), flags: &serveCmd{gateFlags: gateFlags{Gate: gateName(server.URL())}}, log: log}
	back := make(chan error, 1)
	go func() {
		<-waits
		back <- server.Restart(context.Background())
	}()
	r, err := openRemoteGate(t.Context(), b, gateName(server.URL()).kind())
	stage.Must(t, err)
	defer r.close()
	stage.Must(t, <-back)
	stage.Same(t, "the gate's name", d.far.Name(), r.gate.Name())
}

// onLog is a handler that passes each message on.
type onLog func(text string)

func (onLog) Enabled(context.Context, slog.Level) bool { return true }
func (l onLog) Handle(_ context.Context, r slog.Record) error {
	l(r.Message)
	return nil
}
func (l onLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l onLog) WithGroup(string) slog.Handler      { return l }

// A lateGate cannot be opened for a time.
type lateGate struct {
	redisKind
	until time.Time
	fails error
	tries int
}

func (g *lateGate) open(context.Context, *base, *recovery.Watch, []ledger.OtherGate) (servingGate, error) {
	if g.tries++; time.Now().Before(g.until) {
		return servingGate{}, g.fails
	}
	return servingGate{}, nil
}

// TestAStartWaitsForItsGateForAMinute opens gates that are away for a time, for too long, or need an operator.
func TestAStartWaitsForItsGateForAMinute(t *testing.T) {
	wrong := errors.New("a wrong password")
	for what, row := range map[string]struct {
		fails      error
		away, took time.Duration // took: at most
		want       error
	}{
		"away":             {firstcome.ErrBusy, 40 * time.Second, 50 * time.Second, nil},
		"away for ever":    {firstcome.ErrBusy, time.Hour, 70 * time.Second, firstcome.ErrBusy},
		"needs a password": {wrong, time.Hour, 0, wrong},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, began := &base{log: slog.New(slog.DiscardHandler)}, time.Now()
				g := &lateGate{until: began.Add(row.away), fails: row.fails}
				_, err := b.reach(t.Context(), g, nil, nil)
				if took := time.Since(began); !errors.Is(err, row.want) || took > row.took || g.tries > 40 {
					t.Errorf("after %v and %d tries: %v", took, g.tries, err)
				}
			})
		})
	}
}
