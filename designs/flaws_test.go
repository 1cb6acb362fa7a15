//go:build !check

package designs_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome/designs"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// flaws are the known ones of each design, forced. z is a user who asks after the harm is done: when z has a row, nobody before z gets one.
var flaws = map[string]map[string]func(t *testing.T, name string){
	"zset-queue": {
		"forgets a user who was removed and not stored": removedIsForgotten, "asking again is the end of the queue": asksAgain, "clocks with different origins": queuesByTwoClocks,
	},
	"zset-queue-fast": {
		"forgets a user who was removed and not stored": removedIsForgotten, "asking again is the end of the queue": asksAgain, "clocks with different origins": queuesByTwoClocks,
	},
	"zadd-decr-list": {"loses all it popped": poppedAreLost("zadd-decr-list:popped", designs.Issued), "leaves a user marked": markedWithoutACoupon},
	"list-lock-kafka": {
		"loses the winner whose INSERT failed": insertFails, "forgets its tries": triesAreForgotten,
		"loses the winner whom Kafka has not": func(t *testing.T, name string) { lostAlone(t, name, "list-lock-kafka:counted") },
	},
	"list-kafka-lua":  {"loses all it popped": poppedAreLost("list-kafka-lua:popped", designs.Queued)},
	"apply-issue":     {"sends a user back and loses the others of the turn": sentBack},
	"zset-rank":       {"sells too many when requests race": requestsRace, "sells too many by two clocks": ranksByTwoClocks},
	"zset-rank-watch": {"gives up while coupons are left": givesUp, "sells too many by two clocks": ranksByTwoClocks},
	"zset-rank-lua":   {"sells too many by two clocks": ranksByTwoClocks},
	"row-lock":        {"does not tell a winner": winnerIsNotTold("row-lock:committed")},
	"atomic-update":   {"does not tell a winner": winnerIsNotTold("atomic-update:committed")},
	"distributed-lock": {
		"sells too many when a holder is stopped": holderIsStopped,
		"but gives no user two":                   holderIsStoppedForOneUser,
	},
	"lua-list":             {"loses all it popped": poppedAreLost("lua-list:popped", designs.Issued)},
	"lua-stream-pipelined": {"loses nothing that it read": readIsClaimed, "loses what Redis loses": redisForgets},
}

func TestAFlawShowsWhenItIsForced(t *testing.T) {
	for _, name := range tested {
		if len(flaws[name]) == 0 {
			t.Errorf("%s has no flaw", name)
		}
		for flaw, show := range flaws[name] {
			t.Run(name+"/"+flaw, func(t *testing.T) { show(t, name) })
		}
	}
}

func removedIsForgotten(t *testing.T, name string) {
	town := newTown(t, name, 10, services.MariaDB)
	a, b := town.two(t)
	a.apply(t, "a", designs.Queued)
	a.dies(t, "zset-queue:removed")
	b.apply(t, "z", designs.Queued)
	stage.Run(t, b.Work)
	town.stored(t, 1)
	stage.Same(t, "rows", []string{"z"}, town.rows(t))
	b.becomes(t, "a", designs.Queued)
}

func asksAgain(t *testing.T, name string) {
	town := newTown(t, name, 10, services.MariaDB)
	a, b := town.two(t)
	for n, user := range []string{"a", "b", "a"} {
		if rank := []*process{a, b}[n%2].apply(t, user, designs.Queued).Waiting; rank != int64(min(n+1, 2)) {
			t.Errorf("%s is told rank %d", user, rank)
		}
	}
	stage.Run(t, a.Work)
	town.stored(t, 2)
	stage.Same(t, "rows", []string{"b", "a"}, town.rows(t))
}

func queuesByTwoClocks(t *testing.T, name string) {
	town := newTown(t, name, 10, services.MariaDB)
	a, b := town.two(t)
	b.Clock.Origin = -time.Hour
	a.apply(t, "a", designs.Queued)
	b.apply(t, "b", designs.Queued)
	stage.Run(t, a.Work)
	town.stored(t, 2)
	stage.Same(t, "rows", []string{"b", "a"}, town.rows(t))
}

func poppedAreLost(popped point.Point, told designs.Outcome) func(*testing.T, string) {
	return func(t *testing.T, name string) {
		town := newTown(t, name, 10, services.MariaDB)
		a, b := town.two(t)
		for _, user := range []string{"a", "b", "c"} {
			a.apply(t, user, told)
		}
		a.dies(t, popped)
		b.apply(t, "z", told)
		stage.Run(t, b.Work)
		town.stored(t, 1)
		stage.Same(t, "rows", []string{"z"}, town.rows(t))
	}
}

func markedWithoutACoupon(t *testing.T, name string) {
	town := newTown(t, name, 10, services.MariaDB)
	a, b := town.two(t)
	a.dies(t, "zadd-decr-list:marked", "a")
	b.apply(t, "a", designs.Duplicate)
	b.apply(t, "z", designs.Issued)
	stage.Run(t, b.Work)
	town.stored(t, 1)
	stage.Same(t, "rows", []string{"z"}, town.rows(t))
	stage.Same(t, "coupons left", int64(9), town.redisSays(t, "GET", "coupon:stock:"+coupon))
}

// lostAlone: what the process has in its hand when it dies is lost, and counted.
func lostAlone(t *testing.T, name string, at point.Point) {
	town := newTown(t, name, 2, services.MariaDB)
	a, b := town.two(t)
	a.apply(t, "a", designs.Queued)
	a.dies(t, at)
	b.apply(t, "z", designs.Queued)
	b.apply(t, "late", designs.Queued)
	stage.Run(t, b.Work)
	town.stored(t, 1)
	lateIsRefused(t, b)
	stage.Same(t, "rows", []string{"z"}, town.rows(t))
	b.becomes(t, "a", designs.Queued)
}

func lateIsRefused(t *testing.T, p *process) {
	t.Helper()
	stage.Await(t, "what the late user is told", designs.SoldOut, func() designs.Outcome {
		answer, err := p.Result(t.Context(), "late")
		stage.Must(t, err)
		return answer.Outcome
	})
}

// insertFails has the database away for all tries to store the first winner.
func insertFails(t *testing.T, name string) {
	town := newTown(t, name, 2, services.MariaDB)
	proxy, at := town.proxy(t)
	a, b := town.process(t, at), town.process(t, town.database)
	tries := 0
	a.Passed = func(passed point.Point) {
		if passed != "list-lock-kafka:consumed" {
			return
		}
		switch tries++; tries {
		case 1:
			proxy.Cut()
		case 11:
			proxy.Heal()
		}
	}
	for _, user := range []string{"a", "z", "late"} {
		b.apply(t, user, designs.Queued)
	}
	stage.Run(t, a.Work)
	town.stored(t, 1)
	lateIsRefused(t, b)
	stage.Same(t, "rows", []string{"z"}, town.rows(t))
	stage.Same(t, "winners that Redis counts", int64(2), town.redisSays(t, "GET", "coupon:count:"+coupon))
	b.becomes(t, "a", designs.Queued)
}

// triesAreForgotten has the script fail. One process pops a user three times and ends; the other does so four times before it gives up.
func triesAreForgotten(t *testing.T, name string) {
	town := newTown(t, name, 10, services.MariaDB)
	a, b := town.two(t)
	town.redisSays(t, "LPUSH", "coupon:issued:"+coupon, "no set")
	a.apply(t, "a", designs.Queued)
	ctx, end := context.WithCancel(t.Context())
	first := 0
	a.Passed = func(passed point.Point) {
		if passed != "list-lock-kafka:popped" {
			return
		}
		if first++; first == 3 {
			end() // the user goes back to the list: see that the other process pops them
		}
	}
	stage.Must(t, a.Work(ctx))
	var second atomic.Int64
	b.Passed = func(passed point.Point) {
		if passed == "list-lock-kafka:popped" && second.Add(1) == 5 {
			stage.Must(t, town.client.Do(t.Context(), town.client.B().Del().Key("coupon:issued:"+coupon).Build()).Error())
		}
	}
	stage.Run(t, b.Work)
	stage.Await(t, "how often the other process popped a", 4, second.Load)
	b.apply(t, "z", designs.Queued)
	town.stored(t, 1)
	stage.Same(t, "rows", []string{"z"}, town.rows(t))
}

// sentBack has the database away when the first of a turn is stored. a and b are in that turn, c asks a second later.
func sentBack(t *testing.T, name string) {
	town := newTown(t, name, 2, services.MariaDB)
	proxy, at := town.proxy(t)
	a, b := town.process(t, at), town.process(t, town.database)
	b.apply(t, "a", designs.Queued)
	b.apply(t, "b", designs.Queued)
	const requests = "coupon:" + coupon + ":req"
	score := town.score(t, requests, "a")
	town.redisSays(t, "ZADD", requests, strconv.FormatInt(score+1_000_000, 10), "c")
	turns := 0
	a.Passed = func(passed point.Point) {
		switch {
		case passed != "apply-issue:marked":
		case turns == 0:
			turns++
			proxy.Cut()
		default:
			proxy.Heal()
		}
	}
	stage.Run(t, a.Work)
	town.stored(t, 1)
	stage.Same(t, "rows", []string{"c"}, town.rows(t))
	stage.Same(t, "a's score", score+5_000_000, town.score(t, requests, "a"))
	stage.Same(t, "b's score", int64(-1), town.score(t, requests, "b"))
	b.becomes(t, "b", designs.Queued)
}

// requestsRace: a has looked at the clock; b asks and is told; then a is ranked.
func requestsRace(t *testing.T, name string) {
	town := newTown(t, name, 1, services.MariaDB)
	a, b := town.two(t)
	a.Passed = func(passed point.Point) {
		if passed == "zset-rank:scored" {
			b.apply(t, "b", designs.Issued)
		}
	}
	a.apply(t, "a", designs.Issued)
	stage.Same(t, "rows", []string{"b", "a"}, town.rows(t))
}

func ranksByTwoClocks(t *testing.T, name string) {
	town := newTown(t, name, 1, services.MariaDB)
	a, b := town.two(t)
	b.Clock.Ahead = -time.Hour
	a.apply(t, "a", designs.Issued)
	if answer := b.apply(t, "b", designs.Issued); answer.Place != 1 {
		t.Errorf("who asks later is told rank %d, want 1", answer.Place)
	}
	stage.Same(t, "rows", []string{"a", "b"}, town.rows(t))
}

// givesUp has another user served in each of a's attempts.
func givesUp(t *testing.T, name string) {
	town := newTown(t, name, 100, services.MariaDB)
	a, b := town.two(t)
	attempts := 0
	a.Passed = func(passed point.Point) {
		if passed == "zset-rank-watch:watched" {
			attempts++
			b.apply(t, fmt.Sprint("b", attempts), designs.Issued)
		}
	}
	a.apply(t, "a", designs.Conflict)
	stage.Same(t, "rows", []string{"b1", "b2", "b3", "b4", "b5"}, town.rows(t))
}

func winnerIsNotTold(committed point.Point) func(*testing.T, string) {
	return func(t *testing.T, name string) {
		town := newTown(t, name, 10, services.MariaDB)
		a, b := town.two(t)
		a.dies(t, committed, "a")
		b.apply(t, "a", designs.Duplicate)
		stage.Same(t, "rows", []string{"a"}, town.rows(t))
	}
}

// whileStopped has b ask for a user while a holds the lock and is stopped, until b gets the lock, which is when a's lease has ended.
func whileStopped(t *testing.T, a, b *process, user string) {
	a.Passed = func(passed point.Point) {
		if passed == "distributed-lock:checked" {
			stage.Await(t, "what "+user+" is told", designs.Issued, func() designs.Outcome {
				answer, err := b.Apply(t.Context(), user)
				stage.Must(t, err)
				return answer.Outcome
			})
		}
	}
}

func holderIsStopped(t *testing.T, name string) {
	town := newTown(t, name, 1, services.MariaDB)
	a, b := town.two(t)
	whileStopped(t, a, b, "b")
	a.apply(t, "a", designs.Issued)
	stage.Same(t, "rows", []string{"b", "a"}, town.rows(t))
}

func holderIsStoppedForOneUser(t *testing.T, name string) {
	town := newTown(t, name, 1, services.MariaDB)
	a, b := town.two(t)
	whileStopped(t, a, b, "a")
	a.apply(t, "a", designs.Duplicate)
	stage.Same(t, "rows", []string{"a"}, town.rows(t))
}

func readIsClaimed(t *testing.T, name string) {
	town := newTown(t, name, 10, services.MariaDB)
	a, b := town.two(t)
	a.apply(t, "a", designs.Issued)
	a.dies(t, "lua-stream-pipelined:read")
	stage.Same(t, "rows", []string(nil), town.rows(t))
	stage.Run(t, b.Work)
	town.stored(t, 1)
	stage.Same(t, "rows", []string{"a"}, town.rows(t))
}

// redisForgets stands for a Redis whose file is behind: this one has none.
func redisForgets(t *testing.T, name string) {
	town := newTown(t, name, 10, services.MariaDB)
	a, b := town.two(t)
	a.apply(t, "a", designs.Issued)
	stage.Must(t, town.redis.Kill())
	stage.Must(t, town.redis.Restart(t.Context()))
	town.open(t, b)
	b.apply(t, "z", designs.Issued)
	stage.Run(t, b.Work)
	town.stored(t, 1)
	stage.Same(t, "rows", []string{"z"}, town.rows(t))
}
