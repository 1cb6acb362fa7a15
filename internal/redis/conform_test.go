//go:build !check && (!race || soak)

package redis_test

import (
	"strconv"
	"testing"

	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

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

// TestTheLinesOfAClusterConform runs every subject of the suite on one Cluster, each as a ledger of its own.
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
	conform.Line(t, fresh)
}
