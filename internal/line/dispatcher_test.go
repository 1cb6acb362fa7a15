package line_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/test/stage"
)

// pace sets the pace of campaigns at a gate, without calling Changed as an operator's change does.
func pace(g *stage.Gate, perSecond int64, ids ...firstcome.CampaignID) {
	g.Set(func() {
		for _, id := range ids {
			g.Course(id).Pace = &firstcome.Pace{PerSecond: perSecond}
		}
	})
}

// join claims for users, and fails unless each must wait.
func join(t testing.TB, g *stage.Gate, id firstcome.CampaignID, users ...firstcome.UserID) {
	t.Helper()
	decisions, err := g.Claim(t.Context(), id, users)
	stage.Must(t, err)
	for _, d := range decisions {
		if d.Outcome != firstcome.Waiting {
			t.Fatalf("a claim got %v, and should wait", d.Outcome)
		}
	}
}

// dispatch runs a Dispatcher that serves lines. stop ends it, and need not be called: the test's end does so too.
func dispatch(t testing.TB, served gate.Line, limits line.Options) (d *line.Dispatcher, stop func()) {
	d = line.NewDispatcher(served, limits)
	return d, stage.Run(t, d.Run)
}

// issued returns how many coupons a gate has issued of a campaign.
func issued(g *stage.Gate, id firstcome.CampaignID) (n int64) {
	g.Set(func() { n = g.Course(id).Last })
	return n
}

// inOrder fails unless the numbers of a campaign's coupons follow the order of their tickets.
func inOrder(t testing.TB, g *stage.Gate, id firstcome.CampaignID) {
	t.Helper()
	for _, c := range g.Take(id) {
		if c.Number != c.Ticket {
			t.Errorf("number %d of %s is ticket %d's", c.Number, id, c.Ticket)
		}
	}
}

func TestALineIsServedInOrderAtItsPaceByAnyNumberOfNodes(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		for _, perSecond := range []int64{7, 500} {
			t.Run(fmt.Sprint(nodes, " nodes, ", perSecond, " a second"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const seconds = 20
					g := stage.NewLedgerGate(firstcome.Unlimited, "c")
					pace(g, perSecond, "c")
					join(t, g, "c", stage.Users("u-", 1, int(perSecond)*(seconds+1)+200)...)
					for range nodes {
						dispatch(t, g, line.Options{})
					}
					began := time.Now()
					for range 10 * seconds {
						time.Sleep(time.Second / 10)
						synctest.Wait()
						most := int64(time.Since(began).Seconds()*float64(perSecond)) + max(1, perSecond/10)
						if got := issued(g, "c"); got > most {
							t.Fatalf("%d coupons after %v, and at most %d", got, time.Since(began), most)
						}
					}
					if got, least := issued(g, "c"), perSecond*seconds*98/100; got < least {
						t.Errorf("%d coupons after %d s, and at least %d", got, seconds, least)
					}
					inOrder(t, g, "c")
				})
			})
		}
	}
}

// TestAnEmptyLineCostsALookASecond begins without a line, fills and serves one, and is without a line again.
func TestAnEmptyLineCostsALookASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stage.NewLedgerGate(10, "c")
		pace(g, 0, "c")
		served := &watched{Gate: g}
		d, _ := dispatch(t, served, line.Options{})
		rest := func(what string, calls int64) {
			t.Helper()
			served.looks.Store(0)
			served.serves.Store(0)
			time.Sleep(time.Minute)
			synctest.Wait()
			if looks, serves := served.looks.Load(), served.serves.Load(); looks > 60 || looks < 45 || serves != calls {
				t.Errorf("%s, a minute costs %d looks and %d calls", what, looks, serves)
			}
		}
		rest("with no line", 0)
		join(t, g, "c", "a", "b") // at another node
		rest("with a line that another node found", 1)
		rest("with an empty line", 0)
		if s := d.Stats(); s != (line.Stats{Served: 2}) {
			t.Errorf("counted %+v", s)
		}
	})
}

// A watched line counts its calls.
type watched struct {
	*stage.Gate
	looks, serves, most, now atomic.Int64
}

func (w *watched) Lines(ctx context.Context, each func(firstcome.CampaignID)) error {
	w.looks.Add(1)
	return w.Gate.Lines(ctx, each)
}

func (w *watched) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	w.serves.Add(1)
	w.most.Store(max(w.most.Load(), w.now.Add(1)))
	defer w.now.Add(-1)
	return w.Gate.Serve(ctx, id, limit)
}

// TestWhoJoinsAnEmptyLineIsServedAtOnce covers users who join an empty line, and those who join while the last user is served.
func TestWhoJoinsAnEmptyLineIsServedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stage.NewLedgerGate(firstcome.Unlimited, "c")
		pace(g, 1000, "c")
		d, _ := dispatch(t, g, line.Options{})
		i := stage.Issuer(t, g, issue.Options{OnJoin: d.Joined})
		synctest.Wait()
		began := time.Now()
		for n := range 100 {
			user := firstcome.UserID(fmt.Sprint("u-", n))
			stage.Claim(t, i, "c", user, firstcome.Waiting)
			synctest.Wait()
			stage.Claim(t, i, "c", user, firstcome.AlreadyIssued)
		}
		if took := time.Since(began); took != 0 { // within the bucket
			t.Errorf("it took %v", took)
		}
	})
}

// In a crossed line another user joins after a service has ended and before the Dispatcher gets its answer.
type crossed struct {
	*stage.Gate
	join func()
}

func (l *crossed) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	served, err := l.Gate.Serve(ctx, id, limit)
	if join := l.join; join != nil {
		l.join = nil
		join()
	}
	return served, err
}

// A slowLook is a gate whose Lines call takes a minute.
type slowLook struct{ gate.Line }

func (slowLook) Lines(ctx context.Context, _ func(firstcome.CampaignID)) error {
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
	}
	return ctx.Err()
}

func TestALookThatTakesLongHoldsUpNobodyWhoJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stage.NewGate(2, "c")
		pace(g, 10, "c")
		d, _ := dispatch(t, slowLook{g}, line.Options{})
		synctest.Wait()
		join(t, g, "c", "a")
		d.Joined("c")
		synctest.Wait()
		if n := issued(g, "c"); n != 1 {
			t.Errorf("%d coupons are issued while a look is under way", n)
		}
	})
}

func TestWhoJoinsWhileTheLastOneIsServedIsServedNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stage.NewLedgerGate(firstcome.Unlimited, "c")
		pace(g, 1000, "c")
		served := &crossed{Gate: g}
		d, _ := dispatch(t, served, line.Options{})
		i := stage.Issuer(t, g, issue.Options{OnJoin: d.Joined})
		synctest.Wait()
		served.join = func() { stage.Claim(t, i, "c", "second", firstcome.Waiting) }
		stage.Claim(t, i, "c", "first", firstcome.Waiting)
		synctest.Wait()
		if got := issued(g, "c"); got != 2 {
			t.Errorf("%d coupons", got)
		}
	})
}

func TestAChangeOfTheCampaignWakesItsLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stage.NewLedgerGate(10, "c")
		pace(g, 1, "c")
		served := &watched{Gate: g}
		d, _ := dispatch(t, served, line.Options{})
		i := stage.Issuer(t, g, issue.Options{OnJoin: d.Joined, OnChange: d.Changed})
		version := int64(1)
		change := func(kind firstcome.ChangeKind, terms firstcome.Terms) {
			version++
			stage.Must(t, i.Change("c", func() error {
				return stage.Err(g.Apply(t.Context(), firstcome.Change{Campaign: "c", Version: version, Kind: kind, Terms: terms}))
			}))
			synctest.Wait()
		}
		for _, user := range stage.Users("u-", 1, 5) {
			stage.Claim(t, i, "c", user, firstcome.Waiting)
		}
		change(firstcome.ChangePause, firstcome.Terms{})
		served.serves.Store(0)
		time.Sleep(10500 * time.Millisecond)
		synctest.Wait()
		if calls := served.serves.Load(); calls < 8 || calls > 9 { // one each 1.06 to 1.19 s
			t.Errorf("%d calls in 10.5 s of the pause", calls)
		}
		if got := issued(g, "c"); got > 1 {
			t.Fatalf("%d coupons during the pause", got)
		}
		before := issued(g, "c")
		change(firstcome.ChangeResume, firstcome.Terms{})
		if got := issued(g, "c"); got != before+1 {
			t.Errorf("%d coupons at once after the pause, want %d", got, before+1)
		}
		// Without a pace the old line is served as fast as the gate takes it.
		change(firstcome.ChangeTerms, firstcome.Terms{Quantity: 10})
		if got := issued(g, "c"); got != 5 {
			t.Errorf("%d coupons at once without a pace, want 5", got)
		}
		stage.Claim(t, i, "c", "late", firstcome.Issued)
		inOrderUntil := int64(5)
		for _, c := range g.Take("c") {
			if c.Number <= inOrderUntil && c.Ticket != c.Number {
				t.Errorf("number %d is ticket %d's", c.Number, c.Ticket)
			}
		}
	})
}

// A flaky line fails until it is well. If it loses only its answers, its calls take effect all the same.
type flaky struct {
	*watched
	does bool
	well atomic.Bool
}

func (f *flaky) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (served gate.Served, err error) {
	well := f.well.Load()
	if well || f.does {
		served, err = f.watched.Serve(ctx, id, limit)
	} else {
		f.serves.Add(1)
	}
	if !well {
		return gate.Served{}, errors.New("unknown")
	}
	return served, err
}

func TestF71AServiceWhoseAnswerIsLostIsDoneOnceAndTheLineGoesOn(t *testing.T) {
	for _, does := range []bool{false, true} {
		t.Run(fmt.Sprint("done ", does), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := stage.NewLedgerGate(firstcome.Unlimited, "c")
				pace(g, 100, "c")
				join(t, g, "c", stage.Users("u-", 1, 500)...)
				served := &flaky{watched: &watched{Gate: g}, does: does}
				var failures atomic.Int64
				d, _ := dispatch(t, served, line.Options{OnServe: func(_ firstcome.CampaignID, _ gate.Served, _ time.Duration, err error) {
					if err != nil {
						failures.Add(1)
					}
				}})
				time.Sleep(time.Minute)
				synctest.Wait()
				// 50, 100, … 3,200 ms and then 5 s, each plus or minus half.
				if calls := served.serves.Load(); calls < 12 || calls > 40 || failures.Load() != calls || d.Stats().Failed != calls {
					t.Errorf("%d calls of a line that fails for a minute, %d heard of, %d counted", calls, failures.Load(), d.Stats().Failed)
				}
				served.well.Store(true)
				time.Sleep(15 * time.Second)
				synctest.Wait()
				if got := issued(g, "c"); got != 500 {
					t.Errorf("%d coupons", got)
				}
				inOrder(t, g, "c")
			})
		})
	}
}

func TestManyLinesAreServedWithFewCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lines, people = 200, 30
		g := stage.NewLedgerGate(firstcome.Unlimited)
		for n := range lines {
			id := firstcome.CampaignID(fmt.Sprint("c-", n))
			g.Make(firstcome.Unlimited, id)
			pace(g, 10, id)
			join(t, g, id, stage.Users("u-", 1, people)...)
		}
		g.Before = func(context.Context, firstcome.CampaignID) error {
			time.Sleep(time.Millisecond) // of the bubble's clock: what a call takes
			return nil
		}
		served := &watched{Gate: g}
		d, _ := dispatch(t, served, line.Options{Calls: 3})
		time.Sleep(time.Second)
		if s := d.Stats(); s.Lines != lines || s.Waiting < lines*(people-12) {
			t.Errorf("it knows %+v", s)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		for n := range lines {
			id := firstcome.CampaignID(fmt.Sprint("c-", n))
			if got := issued(g, id); got != people {
				t.Errorf("%d coupons of %s", got, id)
			}
			inOrder(t, g, id)
		}
		if most := served.most.Load(); most != 3 {
			t.Errorf("%d calls at once", most)
		}
		if s := d.Stats(); s.Lines != 0 || s.Waiting != 0 {
			t.Errorf("it still knows %+v", s)
		}
	})
}

func TestALineThatEndsIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stage.NewLedgerGate(3, "c")
		pace(g, 10, "c")
		join(t, g, "c", stage.Users("u-", 1, 9)...)
		d, _ := dispatch(t, g, line.Options{})
		d.Changed("nowhere") // such as one whose creation failed
		time.Sleep(time.Second)
		synctest.Wait()
		if s := d.Stats(); s != (line.Stats{Served: 3, Ended: 1}) {
			t.Errorf("counted %+v", s)
		}
		past := g.Course("c").Past
		if len(past) != 1 || past[0].Reason != "sold_out" || past[0].Waiting != 6 || past[0].ServedThrough != 3 {
			t.Errorf("the line's past is %+v", past)
		}
	})
}

// TestADispatcherStopsWhenItsCallsHaveEnded stops a Dispatcher during a call, which continues up to its time-out.
func TestADispatcherStopsWhenItsCallsHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stage.NewLedgerGate(9, "quick", "hung")
		pace(g, 0, "quick", "hung")
		join(t, g, "quick", "a")
		join(t, g, "hung", "a")
		g.Before = func(ctx context.Context, id firstcome.CampaignID) error {
			if id == "hung" {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(time.Second) // of the bubble's clock
			return ctx.Err()
		}
		_, stop := dispatch(t, g, line.Options{Gate: 5 * time.Second})
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the stop took %v", took)
		}
		if issued(g, "quick") != 1 || issued(g, "hung") != 0 {
			t.Errorf("%d and %d coupons", issued(g, "quick"), issued(g, "hung"))
		}
	})
}

func TestADirectIssueIsABatchOfItsOwnAndPassesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stage.NewLedgerGate(100, "c")
		pace(g, 1, "c")
		letGo := stage.Hold(g, "c")
		i := stage.Issuer(t, g, issue.Options{})
		var all sync.WaitGroup
		claim := func(user firstcome.UserID, outcome firstcome.Outcome) {
			all.Go(func() { stage.Claim(t, i, "c", user, outcome) })
			synctest.Wait()
		}
		issue := func(actor string, users ...firstcome.UserID) {
			all.Go(func() {
				decisions, err := i.Issue(t.Context(), gate.Order{Actor: actor}, "c", users)
				if err != nil || decisions[0].Outcome != firstcome.Issued || decisions[0].InLine == 0 {
					t.Errorf("the direct issue got %+v, %v", decisions, err)
				}
			})
			synctest.Wait()
		}
		claim("first", firstcome.Waiting)
		claim("a", firstcome.Waiting)
		claim("b", firstcome.Waiting)
		issue("op", "x", "a")
		issue("other", "y")
		claim("a", firstcome.AlreadyIssued)
		claim("d", firstcome.Waiting)
		letGo()
		all.Wait()
		batches := [][]firstcome.UserID{{"first"}, {"a", "b"}, {"x", "a"}, {"y"}, {"d"}}
		if diff := cmp.Diff(batches, g.Seen()); diff != "" {
			t.Errorf("the gate got other batches (-want +got):\n%s", diff)
		}
		if c := g.Course("c"); len(c.People) != 3 || c.TicketOf("a") != 0 {
			t.Errorf("in line are %v", c.People)
		}
	})
}

// A leasing line wrongly grants a lease for a place.
type leasing struct{ *stage.Gate }

func (l leasing) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := l.Gate.Claim(ctx, id, users)
	for n := range decisions {
		decisions[n].Lease = time.Hour
	}
	return decisions, err
}

func TestAPlaceInLineIsNeverRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stage.NewLedgerGate(100, "c")
		pace(g, 1, "c")
		i := stage.Issuer(t, leasing{g}, issue.Options{})
		for n, user := range []firstcome.UserID{"a", "b", "a", "c"} {
			if d := stage.Claim(t, i, "c", user, firstcome.Waiting); d.Place.Ticket != []int64{1, 2, 1, 3}[n] {
				t.Errorf("%s has ticket %d", user, d.Place.Ticket)
			}
			synctest.Wait() // a filter would be read
		}
	})
}

// TestF75ALineThatAnotherNodeOpensIsServedAfterALook moves the opening an hour later and back, on nodes that stop before they serve.
func TestF75ALineThatAnotherNodeOpensIsServedAfterALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stage.NewLedgerGate(10, "c")
		pace(g, 0, "c")
		join(t, g, "c", "a", "b")
		opens := func(version int64, at time.Time) {
			terms := firstcome.Terms{Quantity: 10, OpensAt: at, Pace: &firstcome.Pace{}}
			stage.Must(t, stage.Err(g.Apply(t.Context(), firstcome.Change{Campaign: "c", Version: version, Kind: firstcome.ChangeTerms, Terms: terms})))
		}
		opens(2, time.Now().Add(time.Hour))
		served := &watched{Gate: g}
		dispatch(t, served, line.Options{})
		time.Sleep(time.Minute)
		synctest.Wait()
		if calls := served.serves.Load(); issued(g, "c") != 0 || calls > 61 {
			t.Errorf("before it opens: %d coupons, %d calls in a minute", issued(g, "c"), calls)
		}
		opens(3, time.Now())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := issued(g, "c"); got != 2 {
			t.Errorf("%d coupons two seconds after another node opened it", got)
		}
	})
}
