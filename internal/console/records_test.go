package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

func TestTheAuditLogSaysWhoChangedWhat(t *testing.T) {
	h := openHouse(t, withKeys)
	h.campaign("spring", 10)
	h.campaign("winter", 10)
	plain, key := h.key(firstcome.Operator)
	b := h.login(plain)
	actor := "key:" + key.ID
	stage.Must(t, stage.Err(h.config.Operator.SetTerms(t.Context(), actor, "spring", 0, func(terms *firstcome.Terms) { terms.Quantity = 12345 })))
	for _, path := range []string{"/console/audit-log?campaign=spring", "/console/campaigns/spring/changes"} {
		got := b.get(path).text()
		for _, want := range []string{key.Name, actor, "changed the terms", "quantity 10 → 12,345", "created the campaign"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in %s", path, want, got)
			}
		}
		if strings.Contains(got, "winter") {
			t.Errorf("%s tells of another campaign", path)
		}
		if strings.Contains(got, "null") || strings.Contains(got, "0s") {
			t.Errorf("%s shows what is not set: %s", path, got)
		}
	}
}

// TestTheAuditLogSaysThatCodesWereImported, and not which.
func TestTheAuditLogSaysThatCodesWereImported(t *testing.T) {
	h := openHouse(t)
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "spring", firstcome.Terms{Name: "Spring", Quantity: 2, Answer: firstcome.Recorded, Imported: true})))
	stage.Must(t, stage.Err(h.ledger.Codes.Import(t.Context(), "a test", "spring", "", []string{"COFFEE-1", "COFFEE-2"})))
	if got := h.browser().get("/console/audit-log?campaign=spring").text(); !strings.Contains(got, "imported codes") || strings.Contains(got, "COFFEE") {
		t.Errorf("it says %s", got)
	}
}

// TestAFilterOfTheAuditLogThatIsNoneIsRefusedInItsForm: the form keeps what was typed.
func TestAFilterOfTheAuditLogThatIsNoneIsRefusedInItsForm(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	b := h.browser()
	for query, said := range map[string]string{
		"campaign=%EC%84%A4%EB%82%A0": "“설날” is no campaign's id. Choose one from the list, or write its id.", "campaign=spring&user_id=%01": "a user id",
	} {
		got := b.get("/console/audit-log?" + query)
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(html.UnescapeString(got.text()), said) || !strings.Contains(got.body, `name="user_id"`) || strings.Contains(got.text(), "Nothing is recorded") || strings.Contains(got.text(), "created the campaign") {
			t.Errorf("%s: %d %s", query, got.status, got.text())
		}
	}
	if got := b.get("/console/audit-log?campaign=" + url.QueryEscape("추석 spr")); got.status != http.StatusOK || !strings.Contains(got.text(), "created the campaign") {
		t.Errorf("by a part of its name: %d %s", got.status, got.text())
	}
	if got := b.get("/console/audit-log?campaign=forgotten"); got.status != http.StatusOK || !strings.Contains(got.text(), "Nothing is recorded for this.") {
		t.Errorf("of a campaign that may have been: %d %s", got.status, got.text())
	}
}

func TestTheAuditLogIsPagedThroughWithoutAGapOrARepeat(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	for n := range 120 {
		stage.Must(t, stage.Err(h.config.Operator.SetTerms(t.Context(), "a test", "spring", 0, func(terms *firstcome.Terms) { terms.Quantity = int64(1000 + n) })))
	}
	b, path, lines := h.browser(), "/console/campaigns/spring/changes", 0
	seen := map[string]bool{}
	for path != "" {
		page := b.get(path)
		for _, found := range regexp.MustCompile(`<ins>(1,\d+)</ins>`).FindAllStringSubmatch(page.body, -1) {
			if seen[found[1]] {
				t.Errorf("%s is shown twice", found[1])
			}
			seen[found[1]] = true
			lines++
		}
		next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(page.body)
		path = ""
		if next != nil {
			path = strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	if lines != 120 {
		t.Errorf("%d of 120 lines are shown", lines)
	}
}

func TestAKeyIsShownOnceAndRefusedOnceItIsRevoked(t *testing.T) {
	h := openHouse(t, withKeys)
	plain, _ := h.key(firstcome.Admin)
	b := h.login(plain)
	made := b.post("/console/keys", url.Values{"name": {"jun"}, "role": {"viewer"}})
	found := regexp.MustCompile(`fc_[0-9a-f]{12}_[0-9a-f]{64}`).FindString(made.body)
	if found == "" {
		t.Fatalf("the new key is not shown: %s", made.text())
	}
	if strings.Contains(b.get("/console/keys").body, found) {
		t.Error("the key is shown again")
	}
	stage.Must(t, h.auth.Reload(t.Context()))
	jun := h.login(found)
	if got := b.post("/console/keys/"+found[3:15]+"/revoke", url.Values{}); got.status != http.StatusOK || !strings.Contains(got.text(), "Key revoked") {
		t.Errorf("revoked: %d %s", got.status, got.text())
	}
	stage.Must(t, h.auth.Reload(t.Context()))
	if got := jun.get("/console"); got.path != "/console/login" {
		t.Errorf("its session goes on at %s", got.path)
	}
	if got := b.post("/console/keys", url.Values{"name": {""}, "role": {"viewer"}}); got.status != http.StatusUnprocessableEntity {
		t.Errorf("without a name: %d", got.status)
	}
}
