//go:build !check && (!race || soak)

package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

// TestEveryNodeShowsTheLastProof has two nodes with one ledger. One of them verifies.
func TestEveryNodeShowsTheLastProof(t *testing.T) {
	name := services.PostgreSQL.Database(t)
	one, other := openHouseOn(t, name), openHouseOn(t, name)
	id := one.campaign("spring", 3)
	one.claim(id, "a", "b")
	here, there := one.browser(), other.browser()
	there.await("/console/campaigns/spring/proof", "not been verified yet")
	if got := here.post("/console/campaigns/spring/proof", url.Values{}); got.status != http.StatusOK {
		t.Fatalf("started: %d %s", got.status, got.text())
	}
	for _, b := range []*visitor{here, there} {
		b.await("/console/campaigns/spring/proof", "was kept: P1, P3, P4, P5, P10 · 2 coupons")
		b.await("/console", "no breach")
		b.await("/console/campaigns/spring/report", "Every promise that was checked was kept")
	}
}
