package issue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/test/stage"
)

// A board is a gate whose drained numbers the test sets.
type board struct {
	mu       sync.Mutex
	drained  map[firstcome.CampaignID]int64
	not      []int64 // numbers that are dead letters, or somebody else's
	reads    int
	asked    int
	down     error // of readings
	away     error // of watches
	mute     error // of questions whose a number is
	messages chan message
	cut      chan struct{}
	// during, if not nil, is called in the middle of a reading.
	during func()
}

type message struct {
	id      firstcome.CampaignID
	through int64
}

func newBoard() *board {
	return &board{drained: map[firstcome.CampaignID]int64{}, messages: make(chan message), cut: make(chan struct{})}
}

func (b *board) DrainedThrough(_ context.Context, id firstcome.CampaignID) (int64, error) {
	b.mu.Lock()
	b.reads++
	through, err, during := b.drained[id], b.down, b.during
	b.mu.Unlock()
	if during != nil {
		during()
	}
	return through, err
}

// Has reports true for all coupons but those in not.
func (b *board) Has(_ context.Context, _ firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	has := make([]bool, len(coupons))
	for n, c := range coupons {
		has[n] = !slices.Contains(b.not, c.Number)
	}
	return has, b.mute
}

func (b *board) WatchDrained(ctx context.Context, ready func(), each func(firstcome.CampaignID, int64)) error {
	b.mu.Lock()
	away := b.away
	b.mu.Unlock()
	if away != nil {
		return away
	}
	ready()
	for {
		select {
		case m := <-b.messages:
			each(m.id, m.through)
		case <-b.cut:
			return errors.New("the connection is lost")
		case <-ctx.Done():
			return nil
		}
	}
}

// set changes the board under its lock.
func (b *board) set(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
}

// settle sets how far a campaign is drained, without a message. not are numbers that are not recorded.
func (b *board) settle(id firstcome.CampaignID, through int64, not ...int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drained[id] = through
	b.not = append(b.not, not...)
}

// tell sets how far a campaign is drained, and sends a message.
func (b *board) tell(id firstcome.CampaignID, through int64, not ...int64) {
	b.settle(id, through, not...)
	b.say(id, through)
}

// say sends a message about how far a campaign is drained, which may be out of date.
func (b *board) say(id firstcome.CampaignID, through int64) {
	b.messages <- message{id, through}
	synctest.Wait() // until it is heard
}

// hold blocks readings in the middle until letGo is called.
func (b *board) hold() (letGo func()) {
	held := make(chan struct{})
	b.set(func() { b.during = func() { <-held } })
	return sync.OnceFunc(func() { close(held) })
}

func (b *board) readings() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads
}

// waiter runs a Waiter until the test ends.
func waiter(t *testing.T, b *board) *issue.Waiter {
	t.Helper()
	r := issue.NewWaiter(b)
	t.Cleanup(func() {
		if left := r.Waiting(); left != 0 {
			t.Errorf("%d calls still wait", left)
		}
	})
	stage.Run(t, r.Run)
	synctest.Wait()
	return r
}

// An answer is the result of one call of Wait, once it comes.
type answer struct {
	err  error
	took time.Duration
	done chan struct{}
}

func wait(r *issue.Waiter, id firstcome.CampaignID, number int64) *answer {
	a, start := &answer{done: make(chan struct{})}, time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		a.err = r.Wait(ctx, nil, firstcome.Coupon{Campaign: id, Number: number})
		a.took = time.Since(start)
		close(a.done)
	}()
	synctest.Wait()
	return a
}

// is reports the state of an answer now: waiting, recorded, unrecorded or unknown.
func (a *answer) is() string {
	synctest.Wait()
	select {
	case <-a.done:
	default:
		return "waiting"
	}
	switch {
	case a.err == nil:
		return "recorded"
	case errors.Is(a.err, issue.ErrUnrecorded):
		return "unrecorded"
	}
	return "unknown"
}

func all(answers ...*answer) (words []string) {
	for _, a := range answers {
		words = append(words, a.is())
	}
	return words
}

func TestAClaimWaitsUntilItsNumberIsDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.settle("c", 10, 7)
		r := waiter(t, b)
		before, letter, next, later := wait(r, "c", 10), wait(r, "c", 7), wait(r, "c", 11), wait(r, "c", 13)
		stage.Same(t, "at first", []string{"recorded", "unrecorded", "waiting", "waiting"}, all(before, letter, next, later))
		b.tell("c", 12, 12)
		stage.Same(t, "after a message", []string{"recorded", "waiting"}, all(next, later))
		stage.Same(t, "what is known at once", []string{"recorded"}, all(wait(r, "c", 9)))
		late := wait(r, "c", 12)
		time.Sleep(60 * time.Millisecond)
		stage.Same(t, "after a reading", []string{"unrecorded", "waiting"}, all(late, later))
		b.tell("d", 100)
		stage.Same(t, "after one of another campaign", []string{"waiting"}, all(later))
		b.settle("c", 13)
		time.Sleep(60 * time.Millisecond)
		stage.Same(t, "after a reading", []string{"recorded"}, all(later))
	})
}

// TestAForgedMessageAnswersNobody sends a message with far too high a number. A claim waits until the gate itself reports what happened to its
// number.
func TestAForgedMessageAnswersNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.settle("c", 0, 5)
		r := waiter(t, b)
		before := wait(r, "c", 5)
		b.say("c", 1_000_000)
		after := wait(r, "c", 5)
		time.Sleep(time.Second)
		stage.Same(t, "after the message", []string{"waiting", "waiting"}, all(before, after))
		b.set(func() { b.drained["c"], b.not = 5, nil })
		time.Sleep(60 * time.Millisecond)
		stage.Same(t, "once it is recorded", []string{"recorded", "recorded"}, all(before, after))
	})
}

// TestWhoWaitsNeedNotHearFromTheGateOfWhatThisProcessRecorded has a gate that reports nothing. If a number was recorded for another user, because the
// gate issued it twice, no call is answered.
func TestWhoWaitsNeedNotHearFromTheGateOfWhatThisProcessRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		r := waiter(t, b)
		mine, others, later := wait(r, "c", 3), wait(r, "c", 4), wait(r, "c", 9)
		recorded := stage.Coupons("c", 1, 5)
		recorded[2].User, recorded[3].User = "", "somebody else" // those who wait here have no names
		r.Recorded("d", recorded)
		stage.Same(t, "after another campaign's", []string{"waiting", "waiting", "waiting"}, all(mine, others, later))
		r.Recorded("c", recorded)
		stage.Same(t, "after the recording", []string{"recorded", "waiting", "waiting"}, all(mine, others, later))
		stage.Same(t, "calls that wait", 2, r.Waiting())
		b.settle("c", 9, 4)
		time.Sleep(time.Second)
		stage.Same(t, "once the gate tells", []string{"unrecorded", "recorded"}, all(others, later))
	})
}

func TestNobodyWaitsNothingIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		r := waiter(t, b)
		time.Sleep(time.Hour)
		stage.Same(t, "readings while nobody waits", 0, b.readings())
		a := wait(r, "c", 1)
		time.Sleep(time.Second)
		if n := b.readings(); n < 19 || n > 22 {
			t.Errorf("%d readings in a second of waiting", n)
		}
		b.settle("c", 1)
		time.Sleep(time.Second)
		stage.Same(t, "the answer", "recorded", a.is())
		n := b.readings()
		time.Sleep(time.Hour)
		stage.Same(t, "readings since", n, b.readings())
	})
}

func TestWhoWaitsTooLongIsToldThatItIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.down = errors.New("connection refused")
		r := waiter(t, b)
		a := wait(r, "c", 1)
		time.Sleep(9 * time.Second)
		stage.Same(t, "before", "waiting", a.is())
		time.Sleep(2 * time.Second)
		stage.Same(t, "the answer", "unknown", a.is())
	})
}

func TestWhoseNumberTheGateDidNotSayWaitsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.mute = errors.New("connection refused")
		r := waiter(t, b)
		b.settle("c", 2)
		first, other := wait(r, "c", 1), wait(r, "c", 2)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { left <- r.Wait(ctx, nil, firstcome.Coupon{Campaign: "c", Number: 2}) }()
		time.Sleep(time.Second)
		stage.Same(t, "meanwhile", []string{"waiting", "waiting"}, all(first, other))
		stage.Same(t, "calls that wait", 3, r.Waiting())
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left was told %v", err)
		}
		b.set(func() { b.mute = nil })
		time.Sleep(60 * time.Millisecond)
		stage.Same(t, "when it says it", []string{"recorded", "recorded"}, all(first, other))
	})
}

// TestWhoseNumberAGateThatWentBackDidNotSayIsAskedForAgain has a gate that does not answer whose a number is, and after a fail-over has less than it
// reported before.
func TestWhoseNumberAGateThatWentBackDidNotSayIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.settle("c", 2)
		b.mute = errors.New("connection refused")
		r := waiter(t, b)
		a, later := wait(r, "c", 5), wait(r, "c", 6)
		b.tell("c", 5)
		time.Sleep(time.Second)
		stage.Same(t, "meanwhile", []string{"waiting", "waiting"}, all(a, later))
		b.set(func() { b.mute = nil })
		time.Sleep(60 * time.Millisecond)
		stage.Same(t, "when it says it", []string{"recorded", "waiting"}, all(a, later))
		b.tell("c", 6)
		stage.Same(t, "at last", "recorded", later.is())
	})
}

func TestAMissedMessageCostsAReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		r := waiter(t, b)
		letter, next := wait(r, "c", 5), wait(r, "c", 12)
		b.set(func() { b.down = errors.New("the gate is failing over") })
		b.cut <- struct{}{}
		b.settle("c", 9, 5)
		time.Sleep(time.Second) // the subscription is back, and has missed the messages since
		stage.Same(t, "meanwhile", []string{"waiting", "waiting"}, all(letter, next))
		b.set(func() { b.down = nil })
		time.Sleep(60 * time.Millisecond)
		stage.Same(t, "after a reading", []string{"unrecorded", "waiting"}, all(letter, next))
		b.say("c", 7) // an earlier message that was delayed
		b.tell("c", 12)
		stage.Same(t, "at last", []string{"recorded"}, all(next))
	})
}

// TestAMessageDuringAReadingIsNotForgotten sends a message during a reading that sees the state before it.
func TestAMessageDuringAReadingIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		letGo := b.hold()
		r := waiter(t, b)
		first, letter, later := wait(r, "c", 1), wait(r, "c", 2), wait(r, "c", 9)
		b.tell("c", 2, 2)
		letGo()
		stage.Same(t, "after both", []string{"recorded", "waiting", "waiting"}, all(first, letter, later))
		stage.Same(t, "who comes later", "recorded", wait(r, "c", 1).is())
		stage.Same(t, "readings", 1, b.readings())
		time.Sleep(60 * time.Millisecond)
		stage.Same(t, "after the next reading", []string{"unrecorded", "waiting"}, all(letter, later))
		b.tell("c", 9)
		stage.Same(t, "at last", []string{"recorded"}, all(later))
	})
}

// TestACampaignWhoseGateHangsKeepsNobodyElseWaiting has one campaign on a node of a Redis Cluster that hangs.
func TestACampaignWhoseGateHangsKeepsNobodyElseWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		letGo := b.hold()
		defer letGo()
		r := waiter(t, b)
		hangs := wait(r, "hangs", 1)
		b.set(func() { b.during = nil })
		a := wait(r, "c", 1)
		b.tell("c", 1)
		stage.Same(t, "meanwhile", []string{"waiting", "recorded"}, all(hangs, a))
		b.settle("hangs", 1)
		letGo()
		time.Sleep(60 * time.Millisecond)
		stage.Same(t, "when it goes on", "recorded", hangs.is())
	})
}

func TestAWatchThatIsAwayIsTriedAgainAndReadingsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.away = errors.New("connection refused")
		r := waiter(t, b)
		a := wait(r, "c", 1)
		time.Sleep(time.Second)
		b.settle("c", 1)
		time.Sleep(60 * time.Millisecond)
		stage.Same(t, "without a watch", "recorded", a.is())
		b.set(func() { b.away = nil })
		time.Sleep(4 * time.Second) // the longest wait between two tries, and half of it
		a = wait(r, "c", 2)
		b.tell("c", 2)
		stage.Same(t, "with one", "recorded", a.is())
	})
}

func TestThousandsWaitForAFewReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const claims = 5000
		b := newBoard()
		r := waiter(t, b)
		var answered sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for n := range int64(claims) {
			answered.Go(func() {
				err := r.Wait(ctx, nil, firstcome.Coupon{Campaign: "c", Number: claims - n})
				if late := claims-n > claims-1000; late != (err != nil) {
					t.Errorf("number %d: %v", claims-n, err)
				}
			})
		}
		synctest.Wait()
		waiting := r.Waiting()
		stage.Same(t, "waiting", claims, waiting)
		for through := int64(1); through <= claims-1000; through++ {
			b.tell("c", through)
		}
		synctest.Wait()
		waiting = r.Waiting()
		stage.Same(t, "waiting for the rest", 1000, waiting)
		cancel()
		answered.Wait()
		stage.Same(t, "readings", 1, b.readings())
	})
}
