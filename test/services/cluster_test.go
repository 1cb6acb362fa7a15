//go:build !check

package services_test

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/test/services"
)

func TestTheKeysOfAClusterAreThereWhereverTheirSlotMoves(t *testing.T) {
	c := services.RedisCluster(t, 3)
	option, err := rueidis.ParseURL(c.URL())
	must(t, err)
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	must(t, err)
	t.Cleanup(client.Close)
	ctx := t.Context()
	must(t, client.Do(ctx, client.B().Set().Key("{a}1").Value("one").Build()).Error())
	must(t, client.Do(ctx, client.B().Set().Key("{a}2").Value("two").Build()).Error())
	if n := len(client.Nodes()); n != 3 {
		t.Errorf("the cluster has %d masters, want 3", n)
	}
	for range 4 { // once around all masters, and one more
		must(t, c.Move(ctx, "{a}1"))
		for key, want := range map[string]string{"{a}1": "one", "{a}2": "two"} {
			if got, err := client.Do(ctx, client.B().Get().Key(key).Build()).ToString(); err != nil || got != want {
				t.Errorf("%s is %q, want %q: %v", key, got, want, err)
			}
		}
	}
}
