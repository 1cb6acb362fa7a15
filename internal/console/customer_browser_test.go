//go:build !check && (!race || soak)

package console_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/zone"
	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/stage"
)

// TestInTheBrowserEachAnswerToACustomerIsReadable also copies a sentence by its button. A screen reader meets no fault that axe finds.
func TestInTheBrowserEachAnswerToACustomerIsReadable(t *testing.T) {
	t.Parallel()
	newYork, err := zone.Load("America/New_York")
	stage.Must(t, err)
	for _, l := range []browser.Look{{Language: "ko", Width: 360}, {Language: "ko", Width: 1920, Dark: true}, {Language: "en", Width: 360, Dark: true}, {Language: "en", Width: 1920}} {
		t.Run(l.String(), func(t *testing.T) {
			h := openHouse(t, func(h *house) {
				if l.Width == 1920 && !l.Dark {
					h.config.Zone = newYork
				}
			})
			h.customersToLookUp()
			p := browser.Open(t).Page(t, l)
			for name, query := range map[string]string{
				"coupon": "q=mina&campaign=winter", "voided": "q=jun&campaign=winter", "none": "q=late&campaign=winter", "wallet": "q=mina&campaign=",
				"in-line": "q=second&campaign=line", "sent-away": "q=third&campaign=ended", "campaign": "q=winter", "no-code": "q=0123456789ABCDEF&campaign=", "wrong": "q=mina&campaign=none", "empty": "",
			} {
				p.Go(h.url + "/console/customer?" + query)
				for _, what := range append(p.Overflows(), p.Violations()...) {
					t.Errorf("%s: %s", name, what)
				}
				p.Screenshot("customer-" + name)
			}
		})
	}
}

// customersToLookUp makes customers with coupons, without, in line and sent away.
func (h *house) customersToLookUp() {
	h.t.Helper()
	create := func(id firstcome.CampaignID, terms firstcome.Terms) {
		terms.Answer = firstcome.Recorded
		stage.Must(h.t, stage.Err(h.config.Operator.Create(h.t.Context(), "a test", id, terms)))
	}
	create("winter", firstcome.Terms{Name: "겨울 선착순 쿠폰", Quantity: 3, Benefit: json.RawMessage(`"전 상품 10% 할인"`), ValidFor: 30 * 24 * time.Hour})
	create("spring", firstcome.Terms{Name: "봄맞이 무료 배송", Quantity: firstcome.Unlimited})
	create("line", firstcome.Terms{Name: "한정판 예약", Quantity: 1, Pace: &firstcome.Pace{}})
	create("ended", firstcome.Terms{Name: "여름 한정판", Quantity: 1, Pace: &firstcome.Pace{}})
	h.claim("winter", "mina", "jun", "sua")
	h.claim("spring", "mina")
	h.claim("line", "first", "second")
	h.claim("ended", "first", "second", "third")
	stage.Must(h.t, stage.Err(h.config.Operator.Void(h.t.Context(), "a test", "winter", 2, "고객 요청")))
	stage.Must(h.t, stage.Err(h.decides.Serve(h.t.Context(), "ended", 1)))
}
