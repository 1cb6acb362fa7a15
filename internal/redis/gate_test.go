package redis_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

func TestF16TheRedisGateConforms(t *testing.T) {
	conform.Gate(t, func(t *testing.T) conform.Subject {
		s := newSubject(t, services.Redis.Database(t), 1, true)
		s.SetClock(conform.Epoch)
		return s
	})
}

func TestTheRedisGatesLinesConform(t *testing.T) {
	conform.Line(t, func(t *testing.T) conform.Subject {
		s := newSubject(t, services.Redis.Database(t), 1, true)
		s.SetClock(conform.Epoch)
		return s
	})
}

func TestTheRedisGatesLinesOfFeedsConform(t *testing.T) {
	conform.Fed(t, func(t *testing.T) conform.Subject {
		s := newSubject(t, services.Redis.Database(t), 1, true)
		s.SetClock(conform.Epoch)
		return s
	})
}

// TestTheLinesOfAClusterConform has all subjects of the suite on one Cluster, as ledgers of their own.
func TestTheLinesOfAClusterConform(t *testing.T) {
	at, subjects := services.RedisCluster(t, 3).URL(), 0
	fresh := func(t *testing.T) conform.Subject {
		subjects++
		name := "conform-" + strconv.Itoa(subjects)
		s := subject{stage.NewOperator()}
		s.Gates = append(s.Gates, open(t, at, of(name, "1"), func(o *redis.Options) { o.Clock, o.Lined = s.Now, s.Lined }))
		s.SetClock(conform.Epoch)
		return s
	}
	t.Run("at the gate", func(t *testing.T) { conform.Line(t, fresh) })
	t.Run("of feeds", func(t *testing.T) { conform.Fed(t, fresh) })
}

func TestF61ClaimsAndChangesThroughAnIssuerAreLinearizable(t *testing.T) {
	conform.Linearizable(t, func(t *testing.T) conform.Subject { return newSubject(t, services.Redis.Database(t), 1, false) })
}

func TestF61ClaimsAndChangesThroughThreeNodesAreLinearizable(t *testing.T) {
	conform.Linearizable(t, func(t *testing.T) conform.Subject {
		return cluster{newSubject(t, services.Redis.Database(t), 3, false)}
	})
}

// secret returns the secret of the tests.
func secret(t testing.TB) firstcome.Secret {
	t.Helper()
	return stage.Secret()
}

// open opens a gate that is closed when the test ends.
func open(t testing.TB, url string, edit ...func(*redis.Options)) *redis.Gate {
	t.Helper()
	options := redis.Options{URL: url, Secret: secret(t)}
	for _, e := range edit {
		e(&options)
	}
	g, err := redis.Open(t.Context(), options)
	stage.Must(t, err)
	t.Cleanup(g.Close)
	return g
}

// A subject is an operator of gates on one Redis.
type subject struct{ *stage.Operator }

func newSubject(t testing.TB, url string, nodes int, still bool) subject {
	s := subject{stage.NewOperator()}
	for range nodes {
		s.Gates = append(s.Gates, open(t, url, func(o *redis.Options) {
			if still {
				o.Clock = s.Now
			}
			o.Lined = s.Lined
		}))
	}
	return s
}

func (subject) Cools() time.Duration { return 250 * time.Millisecond }

// A cluster has an Issuer for each node.
type cluster struct{ subject }

func (c cluster) Nodes() []flow.Gate { return c.Telling() }
