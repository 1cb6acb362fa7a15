package console_test

import (
	"net/http"
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// BenchmarkAPageOfAMillionCoupons requests pages of a campaign with a million coupons, of which every thousandth is void, on each kind of ledger.
func BenchmarkAPageOfAMillionCoupons(b *testing.B) {
	for kind, of := range services.Ledgers {
		b.Run(kind, func(b *testing.B) { pagesOfAMillion(b, of(b)) })
	}
}

func pagesOfAMillion(b *testing.B, ledger string) {
	h := openHouseOn(b, ledger)
	id := h.campaign("big", 1_000_000)
	h.claim(id, "first")
	_, err := services.Beside(b, ledger).ExecContext(b.Context(), million)
	stage.Must(b, err)
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

// million adds the missing coupons to a campaign that has one.
const million = `INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position, voided_at, void_reason)
		SELECT c.campaign_id, n.value, concat('user-', n.value), concat('CODE-', n.value), c.terms_version, c.issued_at + n.value, c.recorded_at + n.value, c.position + n.value,
		CASE WHEN n.value % 1000 = 0 THEN c.issued_at + n.value END, CASE WHEN n.value % 1000 = 0 THEN 'a test' END
		FROM coupons c, (WITH d AS (SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)
			SELECT 1 + a.n + 10*b.n + 100*c.n + 1000*d.n + 10000*e.n + 100000*f.n AS value FROM d a, d b, d c, d, d e, d f) n
		WHERE c.number = 1 AND n.value > 1`
