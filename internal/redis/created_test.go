//go:build !check

package redis_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// anotherSecret makes a gate create other codes.
func anotherSecret(t testing.TB) func(*redis.Options) {
	t.Helper()
	made, err := firstcome.NewSecret([]byte("another secret of thirty-two bytes"))
	stage.Must(t, err)
	return func(o *redis.Options) { o.Secret = made }
}

// TestF54ACampaignIsNotMadeUnderAnIDThatItsLedgerHasForgotten lets a restored ledger create a campaign again that it had created after the backup:
// its codes would be those of coupons that people hold. Another ledger, or another secret, gives other codes.
func TestF54ACampaignIsNotMadeUnderAnIDThatItsLedgerHasForgotten(t *testing.T) {
	url := services.Redis.Database(t)
	before := newShop(t, url, 3, of("one", "1"))
	before.issue(0, 3)
	again := open(t, url, of("one", "2"))
	refused := func(when string) {
		t.Helper()
		if _, err := again.Apply(t.Context(), first); !errors.Is(err, gate.ErrLedgerForgot) {
			t.Errorf("%s the campaign is made: %v", when, err)
		}
		if n, err := before.do(append([]string{"EXISTS"}, redis.Keys("c", "one.2")...)...).AsInt64(); err != nil || n > 0 {
			t.Errorf("%s it has %d keys, %v", when, n, err)
		}
	}
	refused("beside that one")
	before.do(append([]string{"DEL"}, redis.Keys("c", "one.1")...)...)
	refused("when that one has lost its keys,")
	for what, other := range map[string]*node{
		"another ledger": open(t, url, of("other", "1")),
		"another secret": open(t, url, of("one", "2"), anotherSecret(t)),
	} {
		if _, err := other.Apply(t.Context(), first); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	var made []firstcome.CampaignID
	stage.Must(t, again.EachCreated(t.Context(), func(id firstcome.CampaignID) error {
		made = append(made, id)
		return nil
	}))
	if diff := cmp.Diff([]firstcome.CampaignID{"c", "c"}, made); diff != "" {
		t.Errorf("the ledger has made (-want +got):\n%s", diff)
	}
	for id, want := range map[firstcome.CampaignID]bool{"c": true, "d": false} {
		if is, err := again.Created(t.Context(), id); err != nil || is != want {
			t.Errorf("%s was made: %v, %v", id, is, err)
		}
	}
}
