package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fragileGate loses every campaign when it restarts.
type fragileGate struct {
	recovery.Gate
	restarted atomic.Bool
	takes     time.Duration // to say that it has lost a campaign
	lost      atomic.Int64  // how often it said so
}

func (g *fragileGate) Runs(context.Context) ([]recovery.Run, error) {
	return []recovery.Run{{ID: fmt.Sprint("restarted: ", g.restarted.Load())}}, nil
}

func (g *fragileGate) Rename(context.Context) error { return nil }

func (g *fragileGate) Named(context.Context) (bool, error) { return true, nil }

func (g *fragileGate) Inspect(context.Context, gate.Revision) error {
	if g.restarted.Load() {
		time.Sleep(g.takes)
		g.lost.Add(1)
		return gate.ErrGone
	}
	return nil
}

func (g *fragileGate) GateState(context.Context, gate.Revision) (recovery.GateState, error) {
	return recovery.GateState{}, gate.ErrGone
}

// A slowBook has campaigns. A rebuild that it begins never ends until its context does.
type slowBook struct {
	recovery.Records
	recovery.Ledger
	active []gate.Revision
	begun  chan firstcome.CampaignID
}

func (b *slowBook) SeeRun(context.Context, recovery.Run) error      { return nil }
func (b *slowBook) Active(context.Context) ([]gate.Revision, error) { return b.active, nil }

func (b *slowBook) LineHistory(context.Context, firstcome.CampaignID) (recovery.LineHistory, error) {
	return recovery.LineHistory{}, nil
}

func (b *slowBook) BeginRebuild(ctx context.Context, _ string, id firstcome.CampaignID, _ int64) (recovery.Rebuild, error) {
	select {
	case b.begun <- id:
		<-ctx.Done()
	case <-ctx.Done():
	}
	return recovery.Rebuild{}, ctx.Err()
}

// TestF01OpenCampaignsAreRebuiltFirst restarts a gate with a thousand campaigns. The four that a node rebuilds at once are open, and one of them is
// the campaign that a call has reported. No rebuild waits until the look has checked the other campaigns, and the look waits for no rebuild.
func TestF01OpenCampaignsAreRebuiltFirst(t *testing.T) {
	for name, c := range map[string]struct {
		open, want []int
		noticed    int
	}{
		"few are open":  {open: []int{700, 800, 999}, noticed: 400, want: []int{400, 700, 800, 999}},
		"many are open": {open: []int{100, 200, 300, 700, 800}, noticed: 800, want: []int{100, 200, 300, 800}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, g := &slowBook{begun: make(chan firstcome.CampaignID)}, &fragileGate{takes: time.Second}
				id := func(n int) firstcome.CampaignID { return firstcome.CampaignID(fmt.Sprintf("c-%03d", n)) }
				for n := range 1000 {
					b.active = append(b.active, gate.Revision{Campaign: id(n), Epoch: 1, Open: slices.Contains(c.open, n)})
				}
				r := recovery.New(b, b, g, recovery.NewWatch(nil), nil)
				ctx, end := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- r.Run(ctx) }()
				synctest.Wait()
				g.restarted.Store(true)
				at := time.Now()
				r.Suspect(id(c.noticed), gate.ErrUnverified)
				var got, want []firstcome.CampaignID
				for _, n := range c.want {
					got, want = append(got, <-b.begun), append(want, id(n))
				}
				slices.Sort(got)
				stage.Same(t, "rebuilds at once", want, got)
				stage.Same(t, "how long until they begin", 4*time.Second, time.Since(at))
				time.Sleep(time.Hour)
				stage.Same(t, "campaigns that the gate was asked about while these are rebuilt", int64(1000), g.lost.Load())
				end()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A loggedBook has one campaign, whose line has a log.
type loggedBook struct{ slowBook }

func (b *loggedBook) LineHistory(context.Context, firstcome.CampaignID) (recovery.LineHistory, error) {
	return recovery.LineHistory{Log: &firstcome.LineLog{Topic: "lines"}}, nil
}

// TestANodeWithoutTheLogOfALineTellsSoAndBeginsNoAttempt loses a campaign at the gate of a node that cannot read the log of its line.
func TestANodeWithoutTheLogOfALineTellsSoAndBeginsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, g := &loggedBook{slowBook{active: []gate.Revision{{Campaign: "c", Epoch: 1}}, begun: make(chan firstcome.CampaignID, 1)}}, &fragileGate{}
		told := make(chan recovery.Rebuilt, 1)
		r := recovery.New(b, b, g, recovery.NewWatch(nil), func(one recovery.Rebuilt) {
			select {
			case told <- one:
			default:
			}
		})
		g.restarted.Store(true)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		select {
		case one := <-told:
			if one.Campaign != "c" || !errors.Is(one.Err, firstcome.ErrLineLogAway) || !errors.Is(one.Why, gate.ErrGone) {
				t.Errorf("it tells %+v", one)
			}
			stage.Same(t, "attempts", 0, len(b.begun))
		case <-b.begun:
			t.Error("an attempt begins")
		case <-time.After(time.Minute):
			t.Error("it tells nothing within a minute")
		}
		end()
		stage.Must(t, <-ended)
	})
}

// A crampedGate has no memory for a second copy of keys.
type crampedGate struct {
	fragileGate
	asked, answer chan bool
}

func (g *crampedGate) Room(context.Context, recovery.Rebuild) error {
	g.asked <- true
	<-g.answer
	return errFull
}

var errFull = errors.New("full")

// A plainBook begins each rebuild at once.
type plainBook struct{ slowBook }

func (b *plainBook) BeginRebuild(_ context.Context, _ string, id firstcome.CampaignID, _ int64) (recovery.Rebuild, error) {
	return recovery.Rebuild{Campaign: id}, nil
}

func (b *plainBook) Heartbeat(context.Context, recovery.Rebuild) error     { return nil }
func (b *plainBook) GiveUpRebuild(context.Context, recovery.Rebuild) error { return nil }

func TestF05ARebuildThatIsUnderWayIsKnownAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, g := &plainBook{}, &crampedGate{asked: make(chan bool), answer: make(chan bool)}
		r := recovery.New(b, b, g, recovery.NewWatch(nil), nil)
		knows := func(when string, broken, rebuilding int, why error) {
			t.Helper()
			s, trouble := r.Stats(), r.Troubles()["c"]
			if s.Broken != broken || s.Rebuilding != rebuilding || !errors.Is(trouble, why) {
				t.Errorf("%s: %d broken, %d being rebuilt, %v; want %d, %d, %v", when, s.Broken, s.Rebuilding, trouble, broken, rebuilding, why)
			}
		}
		ended := make(chan error)
		go func() {
			_, err := r.Rebuild(t.Context(), "op", "c", recovery.Order{})
			ended <- err
		}()
		<-g.asked
		knows("under way", 1, 1, record.ErrRebuilding)
		g.answer <- true
		if err := <-ended; !errors.Is(err, errFull) {
			t.Errorf("%v, want %v", err, errFull)
		}
		knows("failed", 1, 0, gate.ErrUnverified)
	})
}

func TestF18ARebuildOfAnotherNodeIsKnownAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &slowBook{active: []gate.Revision{{Campaign: "c", Epoch: 1, Rebuilding: true}}, begun: make(chan firstcome.CampaignID)}
		r := recovery.New(b, b, &fragileGate{}, recovery.NewWatch(nil), nil)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		<-b.begun // the look has ended
		if s := r.Stats(); s.Rebuilding != 1 || !errors.Is(r.Troubles()["c"], record.ErrRebuilding) {
			t.Errorf("%+v, %v", s, r.Troubles())
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A lateGate is switched by another node's rebuild after this node's first look.
type lateGate struct {
	fragileGate
	looks    atomic.Int64
	switched atomic.Bool // before the first look, too
	frozen   int64       // how many looks find it frozen
}

func (g *lateGate) Inspect(context.Context, gate.Revision) error {
	switch looks := g.looks.Add(1); {
	case looks <= g.frozen:
		return gate.ErrUnverified
	case looks == 1 && g.frozen == 0 && !g.switched.Load():
		return gate.ErrGone
	}
	return nil
}

func (g *lateGate) GateState(context.Context, gate.Revision) (recovery.GateState, error) {
	return recovery.GateState{Frozen: true}, nil
}

func (g *lateGate) Room(context.Context, recovery.Rebuild) error { return errFull }

// A countingBook counts the attempts that were given up.
type countingBook struct {
	plainBook
	left    bool // the attempt before each one was left
	givenUp atomic.Int64
}

func (b *countingBook) BeginRebuild(_ context.Context, _ string, id firstcome.CampaignID, _ int64) (recovery.Rebuild, error) {
	return recovery.Rebuild{Campaign: id, Left: b.left}, nil
}

func (b *countingBook) LastRebuild(context.Context, firstcome.CampaignID) (recovery.Rebuilt, error) {
	return recovery.Rebuilt{Epoch: 7}, nil
}

func (b *countingBook) GiveUpRebuild(context.Context, recovery.Rebuild) error {
	b.givenUp.Add(1)
	return nil
}

// TestF05AGateThatIsSwitchedBehindALookIsNotRebuiltAgain lets a node look after another node's rebuild has ended in the ledger and before it switches
// the gate. In a second case another node finds the first node's attempt, which is then given up.
func TestF05AGateThatIsSwitchedBehindALookIsNotRebuiltAgain(t *testing.T) {
	for name, c := range map[string]struct {
		as          gate.Revision
		left        bool
		frozen      int64 // looks
		begun       int64 // rebuilds
		looks, gave int64
	}{
		"it was lost, at the look":                 {as: gate.Revision{Epoch: 2}, looks: 2, gave: 1},
		"it was frozen, at the look and behind it": {as: gate.Revision{Epoch: 2}, frozen: 5, looks: 6, gave: 1},
		"it stays frozen, as its owner has died":   {as: gate.Revision{Epoch: 2}, frozen: 1000, begun: 1, looks: 21, gave: 1},
		"another node's look has begun a rebuild":  {as: gate.Revision{Epoch: 2, Rebuilding: true}, looks: 1, gave: 1},
		"the owner of a rebuild has died":          {as: gate.Revision{Epoch: 2, Rebuilding: true}, left: true, begun: 1, gave: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.as.Campaign = "c"
				b, g := &countingBook{left: c.left}, &lateGate{frozen: c.frozen}
				g.switched.Store(c.as.Rebuilding)
				b.active = []gate.Revision{c.as}
				r := recovery.New(b, b, g, recovery.NewWatch(nil), nil)
				ctx, end := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- r.Run(ctx) }()
				time.Sleep(900 * time.Millisecond) // less than a second, when it looks again
				synctest.Wait()
				if s := r.Stats(); s.Begun != c.begun || int64(s.Broken) != c.begun || b.givenUp.Load() != c.gave || g.looks.Load() != c.looks {
					t.Errorf("%+v: %d attempts were given up, behind %d looks", s, b.givenUp.Load(), g.looks.Load())
				}
				end()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestF05WhoWantsALostGateRebuiltIsNotMisledByAnAttemptThatIsGivenUp lets the order find another node's attempt, which then finds that the gate has
// lost nothing.
func TestF05WhoWantsALostGateRebuiltIsNotMisledByAnAttemptThatIsGivenUp(t *testing.T) {
	b, g := &countingBook{}, &lateGate{}
	g.switched.Store(true)
	b.active = []gate.Revision{{Campaign: "c", Epoch: 2, Rebuilding: true}}
	r := recovery.New(b, b, g, recovery.NewWatch(nil), nil)
	done, err := r.Rebuild(t.Context(), "op", "c", recovery.Order{IfLost: true})
	if err != nil || done.Epoch != 7 || r.Stats().Begun != 0 {
		t.Errorf("%+v, %v; %+v", done, err, r.Stats())
	}
}

// A shyGate does not answer the first look after a restart.
type shyGate struct {
	fragileGate
	asked atomic.Int64 // behind the restart
}

func (g *shyGate) Inspect(ctx context.Context, a gate.Revision) error {
	if g.restarted.Load() && g.asked.Add(1) == 1 {
		return errors.New("connection reset by peer")
	}
	return g.fragileGate.Inspect(ctx, a)
}

// TestF01ACampaignOfWhichTheGateSaysNothingIsAskedAboutAgain breaks the gate's connection after a look has found a new run of the server and before
// it checks the campaigns. All campaigns are checked once a minute, but this one again a second later.
func TestF01ACampaignOfWhichTheGateSaysNothingIsAskedAboutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, g := &slowBook{active: []gate.Revision{{Campaign: "c", Epoch: 1}}, begun: make(chan firstcome.CampaignID)}, &shyGate{}
		r := recovery.New(b, b, g, recovery.NewWatch(nil), nil)
		stop := stage.Run(t, r.Run)
		defer stop()
		synctest.Wait()
		g.restarted.Store(true)
		select {
		case <-b.begun:
		case <-time.After(3 * time.Second):
			t.Errorf("no rebuild has begun; it was asked %d times", g.asked.Load())
		}
	})
}

// A fencedBook records nothing, because a rebuild is under way.
type fencedBook struct{ slowBook }

func (b *fencedBook) Record(context.Context, record.Batch) (record.Result, error) {
	return record.Result{}, record.ErrRebuilding
}

// TestF18ARecorderThatMeetsARebuildHasTheCampaignLookedAt lets the owner of a rebuild die after the last look. The next look at all campaigns is due
// in a minute, but the recorder's node begins another rebuild within a second.
func TestF18ARecorderThatMeetsARebuildHasTheCampaignLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fencedBook{slowBook{active: []gate.Revision{{Campaign: "c", Epoch: 1}}, begun: make(chan firstcome.CampaignID)}}
		r := recovery.New(b, b, &fragileGate{}, recovery.NewWatch(nil), nil)
		defer stage.Run(t, r.Run)()
		synctest.Wait()
		b.active = []gate.Revision{{Campaign: "c", Epoch: 1, Rebuilding: true}}
		if _, err := r.Guard(b).Record(t.Context(), record.Batch{Campaign: "c"}); !errors.Is(err, record.ErrRebuilding) {
			t.Errorf("the recorder hears %v", err)
		}
		select {
		case <-b.begun:
		case <-time.After(time.Second):
			t.Error("no rebuild has begun a second later")
		}
	})
}
