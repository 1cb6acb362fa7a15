//go:build !race || soak

package console_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
)

// inEnglish is what a Korean page shows as it came from elsewhere, and says so to browsers.
var inEnglish = regexp.MustCompile(`(?s)<(p|span) lang="en">.*?</(p|span)>|<a [^>]*lang="en".*?</a>|<code>.*?</code>|<bdi>.*?</bdi>|<p class="note">.*?</p>|<option[^>]*>[^<]*</option>|mina of [a-z]+`) // the last is a key's name

// koreanOnly fails the test if a page in Korean says a sentence in English.
func koreanOnly(t *testing.T, what string, got shown) {
	t.Helper()
	got.body = inEnglish.ReplaceAllString(got.body, "")
	if said := english.FindString(command.ReplaceAllString(got.text(), "")); said != "" {
		t.Errorf("%s: a Korean page says %q", what, said)
	}
}

// TestNoKoreanPageSaysASentenceInEnglish looks at every page, at what every wrong field is answered, and at every error.
func TestNoKoreanPageSaysASentenceInEnglish(t *testing.T) {
	h := furnished(t)
	plain, _ := h.key(firstcome.Admin)
	b := h.login(plain)
	b.lang = "ko"
	for path, said := range map[string]string{"/console": `class="tag">관리자<`, "/console/keys": `<td>관리자</td>`} {
		if got := b.get(path); !strings.Contains(got.body, said) {
			t.Errorf("%s does not say %s", path, said)
		}
	}
	for _, path := range pagesToLookAt(t, h) {
		koreanOnly(t, path, b.get(path))
	}
	form := url.Values{
		"id": {"NO ID"}, "name": {""}, "quantity": {"-1"}, "opens_at": {"2026-12-02T00:00"}, "closes_at": {"2026-12-01T00:00"}, "answer": {"never"}, "line": {"none"},
		"standby": {"on"}, "valid_for": {"99999999"}, "valid_unit": {"days"}, "valid_until": {"2026-12-02T00:00"}, "step": {"check"}, "version": {"1"},
	}
	for _, path := range []string{"/console/campaigns", "/console/campaigns/spring/terms", "/console/keys"} {
		got := b.post(path, form)
		if got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s is answered %d", path, got.status)
		}
		koreanOnly(t, path, got)
	}
	for _, query := range []string{"customer?user_id=%01", "customer?user_id=a&campaign=NO+ID", "customer?code=x&campaign=spring", "audit-log?campaign=NO+ID", "audit-log?user_id=%01", "campaigns/spring/coupons?user_id=%01", "campaigns?q=%00"} {
		koreanOnly(t, query, b.get("/console/"+query))
	}
	koreanOnly(t, "a void without a reason", b.post("/console/campaigns/spring/coupons/1/void", url.Values{"reason": {" "}}))
}

func TestNoKoreanErrorSaysASentenceInEnglish(t *testing.T) {
	var failed *failing
	b := openFar(t, func(h *house) {
		failed = &failing{Ledger: h.ledger}
		h.config.Ledger = failed
	}).browser()
	b.lang = "ko"
	rows := append(slices.Clone(errings), erring{err: errors.New("a surprise that nobody planned")})
	for _, row := range rows {
		err := row.err
		failed.err = fmt.Errorf("a change of the campaign: %w", err)
		got := b.get("/console/campaigns/spring/steer")
		if got.status < http.StatusBadRequest {
			t.Errorf("%v is answered %d", err, got.status)
		}
		koreanOnly(t, err.Error(), got)
	}
}
