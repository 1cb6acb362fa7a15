package console_test

import (
	"database/sql"
	"net/http"
	"testing"

	"github.com/firstcome/firstcome/test/stage"
)

// BenchmarkAPageOfAMillionCoupons looks at pages of a campaign with a million coupons, of which each thousandth is void.
func BenchmarkAPageOfAMillionCoupons(b *testing.B) {
	h := openHouse(b)
	id := h.campaign("big", 1_000_000)
	h.claim(id, "first")
	db, err := sql.Open("sqlite", h.file)
	stage.Must(b, err)
	_, err = db.Exec(`INSERT INTO coupons SELECT c.campaign_id, n.value, 'user-' || n.value, 'NONE', c.terms_version, c.issued_at + n.value, c.recorded_at + n.value, c.position + n.value,
		CASE WHEN n.value % 1000 = 0 THEN c.issued_at + n.value END, CASE WHEN n.value % 1000 = 0 THEN 'a test' END, NULL, NULL
		FROM coupons c, (WITH RECURSIVE n(value) AS (SELECT 2 UNION ALL SELECT value + 1 FROM n WHERE value < 1000000) SELECT value FROM n) n WHERE c.number = 1`)
	stage.Must(b, err)
	stage.Must(b, db.Close())
	visitor := h.browser()
	for name, query := range map[string]string{
		"first": "", "deep": "?from=900001", "range": "?from=500000&to=500020", "with voided": "?from=900001&voided=yes", "voided only": "?voided=only", "user": "?user_id=user-777777",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got := visitor.get("/console/campaigns/big/coupons" + query); got.status != http.StatusOK {
					b.Fatalf("%d %s", got.status, got.text())
				}
			}
		})
	}
}
