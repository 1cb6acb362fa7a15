//go:build !check

package services_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/test/services"
)

// TestWhatAPrimaryHadItsReplicaHasWhenItTakesOver has each of a pair take over in turn. Clients reach whoever is the primary by one URL.
func TestWhatAPrimaryHadItsReplicaHasWhenItTakesOver(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (*services.Pair, string){
		"Sentinel": func(t *testing.T) (*services.Pair, string) { return services.SentinelPair(t) },
		"a Cluster": func(t *testing.T) (*services.Pair, string) {
			c := services.PairedRedisCluster(t, 3)
			p, err := c.Pair(t.Context(), "a")
			must(t, err)
			return p, c.URL()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair, at := start(t)
			option, err := rueidis.ParseURL(at)
			must(t, err)
			option.DisableCache, option.Sentinel.TopologyRefreshInterval = true, time.Second // what a Sentinel says may be missed
			client, err := rueidis.NewClient(option)
			must(t, err)
			t.Cleanup(client.Close)
			ctx := t.Context()
			must(t, client.Dedicated(func(c rueidis.DedicatedClient) error { // until the replica has it
				must(t, c.Do(ctx, c.B().Set().Key("a").Value("one").Build()).Error())
				return c.Do(ctx, c.B().Wait().Numreplicas(1).Timeout(60_000).Build()).Error()
			}))
			for range 2 { // who leads then is for them to say: on a busy machine they may promote once more
				must(t, pair.Settle(ctx))
				must(t, pair.TakeOver(ctx))
				must(t, pair.Rejoin(ctx))
			}
			within, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			got, err := "", errors.New("nobody was asked")
			for err != nil && within.Err() == nil { // the client may not have heard yet
				got, err = client.Do(within, client.B().Get().Key("a").Build()).ToString()
			}
			if err != nil || got != "one" {
				t.Errorf("the key is %q, %v", got, err)
			}
		})
	}
}
