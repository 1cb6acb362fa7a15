//go:build linux

package e2e_test

import (
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
)

// TestF14ACampaignWhoseSlotMovesUnderLoadIsLateAtMost moves the slot of a campaign
// from master to master of a Redis Cluster while coupons are issued.
func TestF14ACampaignWhoseSlotMovesUnderLoadIsLateAtMost(t *testing.T) {
	t.Parallel()
	cluster := services.RedisCluster(t, 3)
	f := newFleet(t, services.PostgreSQL.Database(t), cluster.URL())
	f.create("spring", 10_000_000, firstcome.Recorded)
	crowd := newCrowd("spring")
	stop := f.claimUntil(crowd, 12)
	defer stop()
	for range rounds(9, 300) {
		crowd.awaitAnswers(t, 50)
		if err := cluster.Move(t.Context(), "firstcome:{spring}:campaign"); err != nil {
			t.Fatal(err)
		}
	}
	crowd.awaitAnswers(t, 50)
	stop()
	unavailable(t, crowd.errs)
	t.Logf("drained in %v", f.drained("spring"))
	f.verdict(crowd)
}
