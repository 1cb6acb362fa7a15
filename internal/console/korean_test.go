//go:build !race || soak

package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/test/stage"
)

// inEnglish matches English text that may be in a Korean page: the original of a Korean sentence, the link to the English page, the English announcement, commands and codes,
// text that the test typed, and the names of its keys.
var inEnglish = regexp.MustCompile(`(?s)<details class="original">.*?</details>|<a [^>]*lang="en".*?</a>|<pre class="quote" lang="en".*?</pre>|<code>.*?</code>|<p class="note">.*?</p>|mina of [a-z]+`)

// koreanOnly fails the test if a Korean page has an English sentence.
func koreanOnly(t *testing.T, what string, got shown) {
	t.Helper()
	got.body = inEnglish.ReplaceAllString(got.body, "")
	if said := english.FindString(command.ReplaceAllString(got.text(), "")); said != "" {
		t.Errorf("%s: a Korean page says %q", what, said)
	}
}

// inCode returns what the groups of a pattern match in the code of packages.
func inCode(t *testing.T, pattern string, code ...string) (all []string) {
	t.Helper()
	for _, of := range code {
		files, err := filepath.Glob(of)
		stage.Must(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			stage.Must(t, err)
			for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(source), -1) {
				all = append(all, strings.Join(found[1:], ""))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestWhatIsFoundIsSaidInKorean shows a doctor's finding about each subject, a breach of each promise, and a dead letter of each cause. A Korean page
// has words for each, and operators can open the original. Viewers see no error and no user, in either language.
func TestWhatIsFoundIsSaidInKorean(t *testing.T) {
	whats := inCode(t, `(?:const what(?:, \w+)*|what) :?= "([^"]+)"|(?:OK|Warn|Fail|grade), "([^"%]+)", |want\(s, "([^"]+)"|unknown\("([^"]+)"`,
		"../redis/examine*.go", "../sqldb/*.go", "../kafka/examine.go", "../doctor/*.go")
	var found doctor.Findings
	for _, what := range whats {
		uses := []string{""}
		if strings.HasSuffix(what, " of ") {
			uses = inCode(t, `Use = "([^"]+)"`, "../kafka/examine.go")
		}
		for _, use := range uses {
			found.Add(doctor.Fail, what+use, "do what the message says", "no route to host mars")
		}
	}
	promises := inCode(t, `\.add\("([A-Za-z0-9]+)", `, "../audit/*.go")
	for _, q := range append(audit.Queries(), audit.OfNone()...) {
		if !slices.Contains(promises, q.Breaks) {
			promises = append(promises, q.Breaks)
		}
	}
	broken := audit.Breaches{Count: map[string]int64{}}
	for _, promise := range promises {
		broken.Total++
		broken.Count[promise]++
		broken.Shown = append(broken.Shown, audit.Breach{Promise: promise, Text: "mina-private holds numbers that nobody gave"})
	}
	if len(found) < 40 || len(promises) < 15 {
		t.Fatalf("the code names %d things and %d promises", len(found), len(promises))
	}
	var failed error
	h := openFar(t, withKeys, func(h *house) {
		h.config.Doctor = func(context.Context) doctor.Findings { return found }
		h.config.Prove = func(context.Context, firstcome.CampaignID, *atomic.Int64) (console.Proof, error) {
			return console.Proof{Ledger: audit.Report{Breaches: broken}}, failed
		}
	})
	h.campaign("spring", 100)
	h.campaign("winter", 100)
	for n, cause := range []string{
		"number 1 is of epoch 1, the campaign is in 2", "number 2 is over the quantity of 2", "no route to host mars", "number 4 names another coupon in the ledger: a gate gave it twice",
		"number 5 is of a user who holds number 3", "number 6 is above 5, the highest number that the ledger has granted to the gate", "number 7 has a code of 2 characters", "number 8 has the terms of version 9, the campaign is at 1",
		"number 9 has a rank for which no code was imported",
	} {
		h.bury("spring", fmt.Sprint("user-", n), cause)
	}
	operator, _ := h.key(firstcome.Operator)
	viewer, _ := h.key(firstcome.Viewer)
	runs, sees := h.login(operator), h.login(viewer)
	runs.post("/console/health/examine", url.Values{})
	runs.post("/console/campaigns/spring/proof", url.Values{})
	runs.await("/console/campaigns/spring/proof", "Promises are broken")
	failed = fmt.Errorf("audit winter: %w", errAway)
	runs.post("/console/campaigns/winter/proof", url.Values{})
	runs.await("/console/campaigns/winter/proof", "The verification failed. The ledger or the gate could not be read to the end.")
	const health, proof, report, unproved = "/console/health", "/console/campaigns/spring/proof", "/console/campaigns/spring/report", "/console/campaigns/winter/proof"
	for _, lang := range []string{"ko", "en"} {
		runs.lang, sees.lang = lang, lang
		for _, path := range []string{health, proof, report, unproved, "/console/campaigns/winter/report", "/console/recording", "/console/recording?resolved=yes"} {
			got := runs.get(path)
			shows := strings.Contains(got.body, "no route to host mars") || strings.Contains(got.body, "holds numbers that nobody gave")
			if shows == strings.Contains(path, "winter") || strings.Contains(got.text(), "no route to the database") {
				t.Errorf("%s, %s: who operates sees the original %t: %s", lang, path, shows, got.text())
			}
			if lang == "ko" {
				koreanOnly(t, path, got)
			}
			if lang == "ko" && (strings.Contains(got.text(), "그 밖의 점검") || strings.Contains(got.text(), "서로 맞지 않는 것이 있습니다.")) {
				t.Errorf("%s has no words for something: %s", path, got.text())
			}
			if strings.Contains(path, "recording") {
				continue // viewers do not see this
			}
			if got := sees.get(path); got.status != http.StatusOK || strings.Contains(got.body, "no route") || strings.Contains(got.body, "mina-private") || strings.Contains(got.body, "holds numbers") {
				t.Errorf("%s, %s: who only looks reads %d %s", lang, path, got.status, got.text())
			} else if lang == "ko" {
				koreanOnly(t, path, got)
			}
		}
	}
	runs.lang, sees.lang = "ko", "ko"
	for path, wants := range map[string][]string{
		health: {"문제 디스크 공간 공간이 모자라거나 읽을 수 없습니다.", "문제 Redis 메모리 "}, proof: {"한 사람이 유효한 쿠폰을 두 장 가진 적이 있습니다.", "facts 발급 기록이 쿠폰과 맞지 않습니다."},
		unproved: {"검증하지 못했습니다. 원장이나 게이트를 끝까지 읽지 못했습니다."},
	} {
		for _, want := range wants {
			if got := sees.get(path).text(); !strings.Contains(got, want) {
				t.Errorf("%s does not say %q: %s", path, want, got)
			}
		}
	}
	for _, want := range []string{"다른 에폭의 게이트가 발급", "수량 초과", "그 밖의 원인", "번호가 이미 다른 쿠폰의 것", "고객이 이미 다른 쿠폰을 보유", "허용된 번호보다 큼", "쿠폰의 값이 잘못됨", "캠페인에 없던 조건으로 발급", "가져온 코드가 없는 순위"} {
		if got := runs.get("/console/recording").text(); strings.Count(got, want) < 2 { // in the table of causes, and at the letter
			t.Errorf("a dead letter does not say %q: %s", want, got)
		}
	}
}

// TestNoKoreanPageSaysASentenceInEnglish reads every page, the answer to every wrong field, and every error.
func TestNoKoreanPageSaysASentenceInEnglish(t *testing.T) {
	h := furnished(t)
	plain, _ := h.key(firstcome.Admin)
	b := h.login(plain)
	b.lang = "ko"
	for path, said := range map[string]string{"/console": `class="tag">관리자<`, "/console/keys": `<td data-name="역할">관리자</td>`} {
		if got := b.get(path); !strings.Contains(got.body, said) {
			t.Errorf("%s does not say %s", path, said)
		}
	}
	for _, path := range pagesToLookAt(t, h) {
		koreanOnly(t, path, b.get(path))
	}
	form := url.Values{
		"id": {"NO ID"}, "name": {""}, "quantity": {"-1"}, "opens_at": {"2026-12-02T00:00"}, "closes_at": {"2026-12-01T00:00"}, "answer": {"never"}, "line": {"none"},
		"waitlist": {"on"}, "valid_for": {"99999999"}, "valid_unit": {"days"}, "valid_until": {"2026-12-02T00:00"}, "step": {"check"}, "version": {"1"},
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
		failed = &failing{Reads: h.ledger.Reads}
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
