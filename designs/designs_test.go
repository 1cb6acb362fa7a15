//go:build !check

package designs_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/firstcome/firstcome/designs"
	"github.com/firstcome/firstcome/test/stage"
)

// A promise is what a design tells 200 people who ask one after the other for 100 coupons, and what becomes of that.
type promise struct {
	queued bool              // all are told that the result comes later; otherwise 100 that they have one, and 100 that all are gone
	places bool              // winners are told their number
	again  []designs.Outcome // what a user who has a coupon may be told who asks again
	// passed is how many of the first 100 may go without, since the other process takes the next from the queue before this one stores the last.
	passed int
}

var (
	duplicate = []designs.Outcome{designs.Duplicate}
	queued    = []designs.Outcome{designs.Queued}

	promises = map[string]promise{
		"zset-queue":           {queued: true, again: duplicate, passed: 1},
		"zset-queue-fast":      {queued: true, again: duplicate, passed: 1},
		"zadd-decr-list":       {again: duplicate},
		"list-lock-kafka":      {queued: true, again: queued, passed: 1},
		"list-kafka-lua":       {queued: true, again: queued},
		"apply-issue":          {queued: true, again: []designs.Outcome{designs.Duplicate, designs.Queued}}, // the mark may have ended
		"zset-rank":            {places: true, again: duplicate},
		"zset-rank-watch":      {places: true, again: duplicate},
		"zset-rank-lua":        {places: true, again: duplicate},
		"row-lock":             {again: duplicate},
		"distributed-lock":     {again: duplicate},
		"atomic-update":        {again: []designs.Outcome{designs.SoldOut}},
		"lua-list":             {places: true, again: duplicate},
		"lua-stream-pipelined": {places: true, again: duplicate},
	}
)

func TestADesignDoesWhatItsDescriptionSays(t *testing.T) {
	const people, limit = 200, 100
	for _, name := range tested {
		for _, database := range databases {
			t.Run(fmt.Sprintf("%s/%s", name, database), func(t *testing.T) {
				promise := promises[name]
				town := newTown(t, name, limit, database)
				a, b := town.two(t)
				users := make([]string, people)
				for n := range users {
					users[n] = fmt.Sprintf("u%03d", n)
					process, want := []*process{a, b}[n%2], designs.Issued
					switch {
					case promise.queued:
						want = designs.Queued
					case n >= limit:
						want = designs.SoldOut
					}
					answer := process.apply(t, users[n], want)
					if place := int64(n + 1); promise.places && n < limit && answer.Place != place {
						t.Errorf("%s is told number %d, want %d", users[n], answer.Place, place)
					}
					if !promise.places && answer.Place != 0 {
						t.Errorf("%s is told number %d, want none", users[n], answer.Place)
					}
				}
				stage.Run(t, a.Work, b.Work)
				town.stored(t, limit)
				rows := town.rows(t)
				if promise.queued {
					for n, user := range users {
						want := designs.SoldOut
						if slices.Contains(rows, user) {
							want = designs.Issued
						}
						stage.Await(t, "what "+user+" is told", want, func() designs.Outcome {
							answer, err := []*process{a, b}[n%2].Result(t.Context(), user)
							stage.Must(t, err)
							return answer.Outcome
						})
					}
				}
				if answer, err := b.Apply(t.Context(), rows[0]); err != nil || !slices.Contains(promise.again, answer.Outcome) {
					t.Errorf("%s has a coupon, asks again and is told %s, %v; want %s", rows[0], answer.Outcome, err, promise.again)
				}
				rows = town.rows(t)
				slices.Sort(rows)
				if len(slices.Compact(slices.Clone(rows))) != limit || len(rows) != limit {
					t.Fatalf("there are %d rows, want %d of different users", len(rows), limit)
				}
				firsts := 0
				for _, user := range users[:limit] {
					if slices.Contains(rows, user) {
						firsts++
					}
				}
				if firsts < limit-promise.passed || rows[limit-1] > users[limit-1+promise.passed] {
					t.Errorf("%d of the first %d have a coupon, and the last who has one is %s", firsts, limit, rows[limit-1])
				}
			})
		}
	}
}
