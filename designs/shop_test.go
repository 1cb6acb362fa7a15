//go:build !check

package designs_test

import (
	"context"
	"net/url"
	"runtime"
	"slices"
	"testing"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/designs"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// coupon is what all tests issue.
const coupon = "c"

// haste makes an hour of published intervals last four seconds.
const haste = 1000

// A town is where the processes of a design run: servers, and a coupon.
type town struct {
	contestant      designs.Contestant
	limit           int64
	redis           *services.Server
	database, topic string
	look            *designs.Database // the test's own
	client          rueidis.Client    // the test's own
}

// newTown starts what a design needs, with so many coupons.
func newTown(t *testing.T, name string, limit int64, database services.Kind) *town {
	t.Helper()
	n := slices.IndexFunc(designs.Contestants, func(c designs.Contestant) bool { return c.Name == name })
	town := &town{contestant: designs.Contestants[n], limit: limit, redis: services.Redis.Server(t, services.Redis.Fast()...), database: database.Database(t)}
	if town.contestant.Kafka {
		topic, err := services.MakeTopic(t.Context(), services.Kafka.Database(t), services.Unique("coupon"), 1, nil)
		stage.Must(t, err)
		town.topic = topic
	}
	p := town.process(t, town.database)
	town.look, town.client = p.Database, p.Redis
	stage.Must(t, town.look.MakeTables(t.Context(), coupon, limit))
	town.open(t, p)
	return town
}

// open makes what the design has in Redis before anybody asks.
func (w *town) open(t *testing.T, p *process) {
	t.Helper()
	if w.contestant.Open != nil {
		stage.Must(t, w.contestant.Open(t.Context(), p.Shop))
	}
}

// A process is one of a design's. The test may change its shop before it asks or works.
type process struct {
	*designs.Shop
	designs.Design
}

// process starts a process whose database has a URL. It does not work before the test says so.
func (w *town) process(t *testing.T, database string) *process {
	t.Helper()
	shop := &designs.Shop{Coupon: coupon, Limit: w.limit, Haste: haste}
	var err error
	shop.Redis, err = designs.OpenRedis(w.redis.URL(), w.contestant)
	stage.Must(t, err)
	t.Cleanup(shop.Redis.Close)
	shop.Database, err = designs.OpenDatabase(database, 8)
	stage.Must(t, err)
	t.Cleanup(func() { stage.Must(t, shop.Database.Close()) })
	if w.topic != "" {
		shop.Kafka, err = designs.OpenTopic(w.topic)
		stage.Must(t, err)
		t.Cleanup(shop.Kafka.Close)
	}
	return &process{shop, w.contestant.New(shop)}
}

// two starts two processes.
func (w *town) two(t *testing.T) (a, b *process) {
	return w.process(t, w.database), w.process(t, w.database)
}

// rows returns whom the database has a coupon for, in the order of the rows.
func (w *town) rows(t *testing.T) (users []string) {
	t.Helper()
	rows, err := w.look.Rows(t.Context(), coupon, 0)
	stage.Must(t, err)
	for _, row := range rows {
		users = append(users, row.User)
	}
	return users
}

// stored waits until the database has so many rows.
func (w *town) stored(t *testing.T, rows int) {
	t.Helper()
	stage.Await(t, "rows", rows, func() int { return len(w.rows(t)) })
}

// redisSays returns an integer that Redis answers.
func (w *town) redisSays(t *testing.T, command ...string) int64 {
	t.Helper()
	n, err := w.client.Do(t.Context(), w.client.B().Arbitrary(command...).Build()).AsInt64()
	stage.Must(t, err)
	return n
}

// score returns a user's score in a sorted set; -1: they are not in it.
func (w *town) score(t *testing.T, set, user string) int64 {
	t.Helper()
	score, err := w.client.Do(t.Context(), w.client.B().Zscore().Key(set).Member(user).Build()).AsFloat64()
	if rueidis.IsRedisNil(err) {
		return -1
	}
	stage.Must(t, err)
	return int64(score)
}

// proxy returns a proxy to the database, and the database's URL through it.
func (w *town) proxy(t *testing.T) (*services.Proxy, string) {
	t.Helper()
	at, err := url.Parse(w.database)
	stage.Must(t, err)
	proxy := services.Through(t, at.Host)
	through, err := proxy.URL(w.database)
	stage.Must(t, err)
	return proxy, through
}

// apply asks for a user, and wants to be told something.
func (p *process) apply(t *testing.T, user string, want designs.Outcome) designs.Answer {
	t.Helper()
	answer, err := p.Apply(t.Context(), user)
	stage.Must(t, err)
	if answer.Outcome != want {
		t.Errorf("%s asks and is told %s, want %s", user, answer.Outcome, want)
	}
	return answer
}

// becomes wants that a user is told something who looks for the result.
func (p *process) becomes(t *testing.T, user string, want designs.Outcome) {
	t.Helper()
	answer, err := p.Result(t.Context(), user)
	stage.Must(t, err)
	if answer.Outcome != want {
		t.Errorf("%s looks for the result and is told %s, want %s", user, answer.Outcome, want)
	}
}

// dies has a process die at a point, the first time that it passes it: the goroutine goes no step further, not even to unlock, and the others end. The
// process asks, or it works if there is nothing to ask.
func (p *process) dies(t *testing.T, at point.Point, ask ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	died := false
	p.Passed = func(passed point.Point) {
		if passed == at {
			died = true
			cancel()
			runtime.Goexit()
		}
	}
	ended := make(chan struct{}, 1)
	go func() {
		defer func() { ended <- struct{}{} }()
		for _, user := range ask {
			_, _ = p.Apply(ctx, user)
		}
		if len(ask) == 0 {
			_ = p.Work(ctx)
		}
	}()
	stage.Next(t, "the end of the process", ended)
	if !died {
		t.Fatalf("the process never passed %s", at)
	}
}
