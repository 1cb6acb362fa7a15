package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// TestACouponIsIssuedToOneUserWithAReason issues during a pause, to a user who already has a coupon, after that coupon was voided, without stock, and
// after the close.
func TestACouponIsIssuedToOneUserWithAReason(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, change func(*house)) *house{
		"the ledger decides": func(t *testing.T, change func(*house)) *house { return openHouse(t, change) },
		"a gate decides":     func(t *testing.T, change func(*house)) *house { return openFar(t, change) },
	} {
		t.Run(name, func(t *testing.T) {
			var counted []firstcome.Outcome
			h := open(t, func(h *house) {
				withKeys(h)
				h.config.Decided = func(_ firstcome.CampaignID, o firstcome.Outcome) { counted = append(counted, o) }
				if h.gate != nil {
					h.gate.Records = true
				}
			})
			id := h.campaign("spring", 2)
			plain, key := h.key(firstcome.Operator)
			b := h.login(plain)
			issue := func(user, reason string) shown {
				return b.post("/console/customer/issue", url.Values{"campaign": {"spring"}, "user_id": {user}, "reason": {reason}})
			}
			says := func(got shown, status int, want string) {
				t.Helper()
				if got.status != status || !strings.Contains(got.text(), want) {
					t.Errorf("it is %d, want %d and %q: %s", got.status, status, want, got.text())
				}
			}
			if got := b.get("/console/customer?campaign=spring&user_id=mina"); !strings.Contains(got.body, `action="/console/customer/issue"`) {
				t.Errorf("there is no form: %s", got.text())
			}
			stage.Must(t, stage.Err(h.config.Operator.ChangeState(t.Context(), "a test", id, 0, firstcome.ChangePause)))
			says(issue("mina", "our mistake"), http.StatusOK, "Coupon issued.")
			says(b.get("/console/customer?campaign=spring&user_id=mina"), http.StatusOK, "was issued number 1 directly")
			says(b.get("/console/customer?campaign=spring&user_id=mina"), http.StatusOK, key.Name+": our mistake")
			says(issue("mina", "again"), http.StatusConflict, "No coupon was issued: the customer holds one already.")
			if h.gate != nil {
				h.gate.Record(t, h.ledger.Recorder, id)
			}
			stage.Must(t, stage.Err(h.config.Operator.Void(t.Context(), "a test", id, 1, "wrong benefit")))
			says(issue("mina", "the right benefit"), http.StatusOK, "was issued number 2 directly")
			says(issue("jun", "r"), http.StatusOK, "Coupon issued.")
			says(issue("sua", "r"), http.StatusConflict, "No coupon was issued: none is left. Raise the quantity first.")
			says(issue(" ", "r"), http.StatusUnprocessableEntity, "")
			says(issue("sua", " "), http.StatusUnprocessableEntity, "reason: must have 1 to")
			stage.Must(t, stage.Err(h.config.Operator.ChangeState(t.Context(), "a test", id, 0, firstcome.ChangeClose)))
			says(issue("sua", "r"), http.StatusConflict, "No coupon was issued: the campaign is closed.")
			stage.Same(t, "what is counted", []firstcome.Outcome{
				firstcome.Issued, firstcome.AlreadyIssued, firstcome.Issued, firstcome.Issued, firstcome.SoldOut, firstcome.Closed,
			}, counted)
			if h.gate == nil {
				says(b.get("/console/audit-log"), http.StatusOK, "the right benefit")
			}
			support, _ := h.key(firstcome.Support)
			if got := h.login(support).get("/console/customer?campaign=spring&user_id=mina"); strings.Contains(got.body, "/console/customer/issue") {
				t.Error("support is shown the form")
			}
		})
	}
}
