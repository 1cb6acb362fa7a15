package ledger_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/follow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// A clock of a test that is set by hand.
type handClock struct{ micros atomic.Int64 }

func newHandClock() *handClock {
	c := &handClock{}
	c.micros.Store(time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

func (c *handClock) now() time.Time           { return time.UnixMicro(c.micros.Load()) }
func (c *handClock) pass(after time.Duration) { c.micros.Add(after.Microseconds()) }

// TestOneNodeAtATimeFollowsTheFacts has nodes ask for the lease of a follower, and write with leases that they have lost.
func TestOneNodeAtATimeFollowsTheFacts(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		clock := newHandClock()
		l := start(t, name, clock.now)
		create(t, l, "c", 9)
		claim(t, l.Gate, "c", "a", "b", "c")
		take := func(owner string, attempt int64) (f follow.Following) {
			t.Helper()
			f, err := l.Followers.Follow(t.Context(), "topic", owner, time.Minute)
			stage.Must(t, err)
			stage.Same(t, "the attempt of "+owner, attempt, f.Attempt)
			return f
		}
		refused := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, follow.ErrFollowed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		first := take("one", 1)
		_, err := l.Followers.Follow(t.Context(), "topic", "two", time.Minute)
		refused("while another node has the lease", err)
		if _, err := l.Followers.Follow(t.Context(), "another topic", "two", time.Minute); err != nil {
			t.Errorf("another follower: %v", err)
		}
		first.Target, first.Ends = "id", []int64{4, 0}
		clock.pass(50 * time.Second)
		at := follow.Cursor{Campaign: "c", Position: 2}
		for range 2 { // it may be repeated
			stage.Must(t, l.Followers.Followed(t.Context(), first, time.Minute, []follow.Cursor{at}))
		}
		clock.pass(50 * time.Second)
		_, err = l.Followers.Follow(t.Context(), "topic", "two", time.Minute)
		refused("while the lease that was renewed lasts", err)
		clock.pass(11 * time.Second)
		second := take("two", 2)
		stage.Same(t, "what the second is told", fmt.Sprint("id ", []int64{4, 0}), fmt.Sprint(second.Target, " ", second.Ends))
		refused("a lease that was lost", l.Followers.Followed(t.Context(), first, time.Minute, []follow.Cursor{{Campaign: "c", Position: 3}}))
		wantBehind(t, l, follow.Cursor{Campaign: "c", Position: 2, Top: 3})
		stage.Must(t, l.Followers.Followed(t.Context(), second, 0, nil)) // it ends
		take("one", 3)
		clock.pass(-time.Hour)
		take("two", 4) // a clock that was set back makes no lease of an hour
	})
}

func wantBehind(t *testing.T, l *ledger.Ledger, want ...follow.Cursor) {
	t.Helper()
	got, err := l.Followers.Behind(t.Context(), "topic", 9)
	stage.Must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("behind (-want +got):\n%s", diff)
	}
}

// TestAReplayBeginsAgainWhereItIsTold moves cursors back, while somebody has the lease.
func TestAReplayBeginsAgainWhereItIsTold(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		clock := newHandClock()
		l := start(t, name, clock.now)
		for _, id := range []firstcome.CampaignID{"c", "d", "e"} {
			create(t, l, id, 9)
			claim(t, l.Gate, id, "a", "b", "c")
		}
		if err := l.Followers.ReplayFacts(t.Context(), "test", "topic", "c", 1); !errors.Is(err, follow.ErrNoFollower) {
			t.Errorf("a follower that never was: %v", err)
		}
		f, err := l.Followers.Follow(t.Context(), "topic", "one", time.Minute)
		stage.Must(t, err)
		f.Target, f.Ends = "id", []int64{6}
		stage.Must(t, l.Followers.Followed(t.Context(), f, time.Minute, []follow.Cursor{{Campaign: "c", Position: 3}, {Campaign: "d", Position: 7, State: follow.Ahead}}))
		wantBehind(t, l, follow.Cursor{Campaign: "e", Top: 3})
		wantLag(t, l, ledger.Lag{Facts: 3, Since: clock.now().UTC(), Ahead: 1})

		for from, want := range map[int64]error{0: ledger.ErrNoFact, 5: ledger.ErrNoFact} {
			if err := l.Followers.ReplayFacts(t.Context(), "test", "topic", "c", from); !errors.Is(err, want) {
				t.Errorf("from %d: %v", from, err)
			}
		}
		if err := l.Followers.ReplayFacts(t.Context(), "test", "topic", "none", 1); !errors.Is(err, firstcome.ErrNoCampaign) {
			t.Errorf("of no campaign: %v", err)
		}
		stage.Must(t, errors.Join(l.Followers.ReplayFacts(t.Context(), "test", "topic", "c", 2), l.Followers.ReplayFacts(t.Context(), "test", "topic", "d", 3)))
		wantBehind(t, l, follow.Cursor{Campaign: "c", Position: 1, Top: 3, State: follow.Again},
			follow.Cursor{Campaign: "d", Position: 2, Top: 3, State: follow.Again}, follow.Cursor{Campaign: "e", Top: 3})
		if err := l.Followers.Followed(t.Context(), f, time.Minute, []follow.Cursor{{Campaign: "c", Position: 3}}); !errors.Is(err, follow.ErrFollowed) {
			t.Errorf("who had the lease before the replay: %v", err)
		}
		f, err = l.Followers.Follow(t.Context(), "topic", "two", time.Minute) // the lease has ended
		stage.Must(t, err)
		stage.Same(t, "the target", "id", f.Target)
		stage.Must(t, l.Followers.Followed(t.Context(), f, time.Minute, []follow.Cursor{{Campaign: "c", Position: 3}}))
		one, err := l.Followers.CursorOf(t.Context(), "topic", "c")
		stage.Must(t, err)
		stage.Same(t, "a cursor that goes on", follow.Cursor{Campaign: "c", Position: 3, Top: 3}, one)

		stage.Must(t, l.Followers.ReplayAllFacts(t.Context(), "test", "topic"))
		wantBehind(t, l, follow.Cursor{Campaign: "c", Top: 3, State: follow.Again}, follow.Cursor{Campaign: "d", Top: 3, State: follow.Again}, follow.Cursor{Campaign: "e", Top: 3})
		f, err = l.Followers.Follow(t.Context(), "topic", "two", time.Minute)
		stage.Must(t, err)
		stage.Same(t, "a target and ends that are forgotten", " []", fmt.Sprint(f.Target, " ", f.Ends))
		logged, err := l.Reads.AuditLog(t.Context(), ledger.LogFilter{Limit: 99})
		stage.Must(t, err)
		replays := 0
		for _, e := range logged {
			if e.Action == "facts.replay" {
				replays++
			}
		}
		stage.Same(t, "replays in the audit log", 3, replays)
	})
}

func wantLag(t *testing.T, l *ledger.Ledger, want ledger.Lag) {
	t.Helper()
	got, err := l.Followers.FollowerLag(t.Context(), "topic")
	stage.Must(t, err)
	stage.Same(t, "the lag", want, got)
}
