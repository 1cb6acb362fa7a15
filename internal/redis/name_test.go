//go:build !check

package redis_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestNodesThatStartAtOnceGiveANewRedisOneName opens several gates at once. Every second of them may not give Redis a name.
func TestNodesThatStartAtOnceGiveANewRedisOneName(t *testing.T) {
	t.Parallel()
	for range 20 {
		url := services.Redis.Database(t)
		var gates [8]*node
		var opening sync.WaitGroup
		for n := range gates {
			opening.Go(func() {
				g, err := redis.Open(t.Context(), redis.Options{URL: url, Secret: secret(t), KeepUnnamed: n%2 == 1})
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(g.Close)
				gates[n] = nodeOf(g)
			})
		}
		opening.Wait()
		if t.Failed() {
			return
		}
		name := open(t, url, func(o *redis.Options) { o.KeepUnnamed = true }).Name()
		for n, g := range gates {
			if got := g.Name(); got != name && (got != "" || n%2 == 0) || name == "" {
				t.Fatalf("node %d says %q, and Redis is %q", n, got, name)
			}
		}
	}
}

// TestAGateWithoutANameMakesNothing opens a gate that may not give Redis a name. It creates no campaign, neither before nor after another gate has
// named Redis.
func TestAGateWithoutANameMakesNothing(t *testing.T) {
	t.Parallel()
	url := services.Redis.Database(t)
	unnamed := open(t, url, func(o *redis.Options) { o.KeepUnnamed = true })
	makes := func(when string) {
		t.Helper()
		if _, err := unnamed.Apply(t.Context(), first); !errors.Is(err, gate.ErrGone) {
			t.Errorf("%s it makes a campaign: %v", when, err)
		}
	}
	makes("without a name")
	c := connect(t, url)
	keys, err := c.Do(t.Context(), c.B().Dbsize().Build()).AsInt64()
	if keys != 0 || err != nil {
		t.Errorf("it wrote %d keys: %v", keys, err)
	}
	named := open(t, url)
	makes("with a name that it has not read")
	_, err = named.Apply(t.Context(), first)
	stage.Must(t, err)
}
