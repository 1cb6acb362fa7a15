package console_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

func TestACustomerIsToldWhyTheyGotOneOrNone(t *testing.T) {
	now := time.Date(2026, 11, 23, 1, 0, 3, 214_000_000, time.UTC)
	h := openHouse(t, func(h *house) { h.stands(now) })
	id := h.campaign("spring", 3)
	h.claim(id, "mina", "jun", "sua", "late")
	h.config.Operator.Create(t.Context(), "a test", "line", firstcome.Terms{Name: "대기열", Quantity: 1, Answer: firstcome.Recorded, Pace: &firstcome.Pace{}})
	h.claim("line", "first", "second")
	stage.Must(t, stage.Err(h.config.Operator.Void(t.Context(), "a test", id, 2, "asked for it")))
	h.campaign("endless", firstcome.Unlimited)
	code := stage.Secret().Code(id, 3)
	b := h.browser()
	for _, one := range []struct {
		query string
		want  []string
	}{
		{"user_id=mina&campaign=spring", []string{"You got “추석 spring” at 10:00:03 am on 23 November (Seoul time). Your coupon code is ", "was issued number 1", "was recorded in the ledger"}},
		{"user_id=jun&campaign=spring", []string{"Your coupon “추석 spring” was taken back at 10:00:03 am on 23 November (Seoul time). Coupons left now: 1. You may claim one.", "number 2 was voided", "a test: asked for it"}},
		{"user_id=late&campaign=spring", []string{"You have no coupon of “추석 spring”. Coupons left now: 1. You may claim one. Claims that get no coupon leave no record, so we cannot tell when you claimed."}},
		{"code=" + code + "&campaign=spring", []string{"was issued number 3"}},
		{"code=" + strings.ToLower(code[:4]+"-"+code[4:]) + "&campaign=spring", []string{"was issued number 3"}},
		{"user_id=second&campaign=line", []string{"In line now", "You are in line for “대기열”: your ticket is 2, with at most 1 ahead of you. Coupons may run out before your turn."}},
		{"user_id=late&campaign=endless", []string{"You have no coupon of “추석 endless”. It is open, without a limit."}},
		{"user_id=mina", []string{"You got “추석 spring” at "}},
		{"user_id=mina&campaign=spri", []string{"You got “추석 spring” at "}}, // a part of the id or name of one campaign only
		{"user_id=nobody", []string{"Choose the campaign, too: then the gate and the line are asked, and you see why."}},
	} {
		got := b.get("/console/customer?" + one.query)
		for _, want := range one.want {
			if got.status != http.StatusOK || !strings.Contains(got.text(), want) {
				t.Errorf("%s: %d, no %q in %s", one.query, got.status, want, got.text())
			}
		}
	}
	h.claim(id, "again")
	now = now.Add(time.Second) // returned stock must leave its quarantine before it is sold out again
	h.stands(now)
	h.claim(id, "again", "later")
	if got := b.get("/console/customer?user_id=late&campaign=spring").text(); !strings.Contains(got, "You have no coupon of “추석 spring”. It sold out at 10:00:03 am on 23 November (Seoul time). Claims") {
		t.Errorf("sold out: %s", got)
	}
	if got := b.get("/console/customer?user_id=jun&campaign=spring").text(); !strings.Contains(got, "Your coupon “추석 spring” was taken back at 10:00:03 am on 23 November (Seoul time). It sold out at ") {
		t.Errorf("voided, and then sold out again: %s", got)
	}
	for _, query := range []string{"user_id=mina&campaign=%EC%84%A4%EB%82%A0", "user_id=mina&campaign=NO%20ID", "code=nonsense&campaign=spring", "user_id=%01&campaign=spring"} {
		if got := b.get("/console/customer?" + query); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `class="wrong"`) {
			t.Errorf("%s: %d %s", query, got.status, got.text())
		}
	}
}

func TestACouponIsVoidedWithAReasonFromItsCustomersPage(t *testing.T) {
	h := openHouse(t, withKeys)
	id := h.campaign("spring", 3)
	h.claim(id, "mina")
	plain, key := h.key(firstcome.Support)
	b := h.login(plain)
	if got := b.post("/console/campaigns/spring/coupons/1/void", url.Values{"reason": {" "}}); got.status != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: %d", got.status)
	}
	got := b.post("/console/campaigns/spring/coupons/1/void", url.Values{"reason": {"wrong benefit"}, "user_id": {"mina"}})
	if got.path != "/console/customer" || !strings.Contains(got.text(), key.Name+": wrong benefit") {
		t.Errorf("voided: %d at %s: %s", got.status, got.path, got.text())
	}
	if s := h.status(id); s.InForce != 0 {
		t.Errorf("%d are in force", s.InForce)
	}
	if got := b.post("/console/campaigns/spring/coupons/1/void", url.Values{"reason": {"again"}}); got.status != http.StatusConflict {
		t.Errorf("again: %d", got.status)
	}
}

func TestSupportSeesCouponsMasked(t *testing.T) {
	h := openHouse(t, withKeys)
	id := h.campaign("spring", 3)
	h.claim(id, "mina-4711")
	code := stage.Secret().Code(id, 1)
	for role, sees := range map[firstcome.Role]bool{firstcome.Admin: true, firstcome.Operator: true, firstcome.Support: false} {
		plain, _ := h.key(role)
		got := h.login(plain).get("/console/campaigns/spring/coupons").body
		if strings.Contains(got, "mina-4711") != sees || strings.Contains(got, code) != sees {
			t.Errorf("%s sees the user %v", role, !sees)
		}
		for _, query := range []string{"user_id=mina-4711", "code=" + code} {
			got := h.login(plain).get("/console/campaigns/spring/coupons?" + query).body
			if !strings.Contains(got, "<td>mina-4711</td>") && !strings.Contains(got, ">mina-4711</a></td>") || !strings.Contains(got, "<code>"+code) {
				t.Errorf("%s named %s, and does not see it", role, query)
			}
		}
	}
}

func TestCouponsArePagedThroughWithoutAGap(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 1000)
	for n := range 130 {
		h.claim(id, fmt.Sprint("user-", n))
	}
	stage.Must(t, stage.Err(h.config.Operator.Void(t.Context(), "a test", id, 60, "r")))
	b := h.browser()
	for query, want := range map[string]int{"": 129, "?voided=yes": 130, "?from=100": 31, "?from=10&to=99": 89, "?to=2": 2, "?user_id=user-7": 1, "?user_id=user-7&from=9": 0, "?user_id=user-59": 0, "?user_id=user-59&voided=yes": 1, "?voided=only": 1, "?user_id=user-59&voided=only": 1, "?user_id=user-7&voided=only": 0, "?code=" + stage.Secret().Code(id, 90): 1} {
		path, rows := "/console/campaigns/spring/coupons"+query, 0
		for path != "" {
			page := b.get(path)
			rows += strings.Count(page.body, `<th scope="row">`)
			next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(page.body)
			path = ""
			if next != nil {
				path = strings.ReplaceAll(next[1], "&amp;", "&")
			}
		}
		if rows != want {
			t.Errorf("%q: %d rows, want %d", query, rows, want)
		}
	}
}

func TestABulkVoidShowsFirstAndNeedsTheNameTyped(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 100)
	for n := range 20 {
		h.claim(id, fmt.Sprint("user-", n))
	}
	stage.Must(t, stage.Err(h.config.Operator.Void(t.Context(), "a test", id, 5, "r")))
	b := h.browser()
	form := url.Values{"numbers": {"3 4-6\n1,000 4"}, "reason": {"a mistake"}}
	dry := b.post("/console/campaigns/spring/coupons/void", form)
	if dry.status != http.StatusOK || !strings.Contains(dry.text(), "voided 3 coupons") || !strings.Contains(dry.text(), "voided already: 1 · numbers not in the ledger: 1") {
		t.Errorf("shown first: %d %s", dry.status, dry.text())
	}
	if s := h.status(id); s.InForce != 19 {
		t.Fatalf("showing changed it: %d in force", s.InForce)
	}
	form.Set("version", dry.version())
	form.Set("typed", "winter")
	if b.post("/console/campaigns/spring/coupons/void", form); h.status(id).InForce != 19 {
		t.Fatal("another name was taken")
	}
	form.Set("typed", "spring")
	if got := b.post("/console/campaigns/spring/coupons/void", form); got.status != http.StatusOK || h.status(id).InForce != 16 {
		t.Errorf("done: %d, %d in force: %s", got.status, h.status(id).InForce, got.text())
	}
	if got := b.post("/console/campaigns/spring/coupons/void", form); got.status != http.StatusPreconditionFailed {
		t.Errorf("the same form again: %d", got.status)
	}
	for _, numbers := range []string{"", "none", "5-3", "0", "-1", "1-99999", "1;2"} {
		if got := b.post("/console/campaigns/spring/coupons/void", url.Values{"numbers": {numbers}, "reason": {"r"}}); got.status != http.StatusUnprocessableEntity {
			t.Errorf("numbers %q: %d", numbers, got.status)
		}
	}
}

func TestAFilterOfCouponsThatIsNoneIsRefused(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 3)
	b := h.browser()
	if got := b.get("/console/campaigns/spring/coupons"); !strings.Contains(got.text(), "There are no coupons to show.") {
		t.Errorf("without coupons: %s", got.text())
	}
	for _, query := range []string{"from=0", "to=0", "to=x", "user_id=%01", "code=nonsense"} {
		if got := b.get("/console/campaigns/spring/coupons?" + query); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `role="alert"`) {
			t.Errorf("%s: %d %s", query, got.status, got.text())
		}
	}
}

func TestTheBacklogIsOfAllCampaignsOrOfOne(t *testing.T) {
	lag := func(context.Context) ([]record.Lag, error) {
		return []record.Lag{{Campaign: "spring", Numbers: 12, Oldest: time.Second}, {Campaign: "autumn", Numbers: 30, Oldest: time.Minute}}, nil
	}
	h := openHouse(t, func(h *house) {
		h.config.Journal = &console.Journal{Lag: lag, Recorder: func() record.Stats { return record.Stats{Retries: 7, Breaker: "open"} }}
	})
	h.campaign("spring", 3)
	h.campaign("calm", 3)
	b := h.browser()
	for query, want := range map[string]string{"": "Backlog 42 ", "?campaign=spring": "Backlog 12 ", "?campaign=calm": "Backlog 0 "} {
		if got := b.get("/console/recording" + query); got.status != http.StatusOK || !strings.Contains(got.text(), want) {
			t.Errorf("%q: %d, no %q in %s", query, got.status, want, got.text())
		}
	}
	if got := b.get("/console/recording"); !strings.Contains(got.text(), "Retries 7 ") || !strings.Contains(got.text(), "Breaker open: the ledger takes nothing ") {
		t.Errorf("of the recorder: %s", got.text())
	}
	if got := b.get("/console/recording?campaign=" + url.QueryEscape("추석 cal")); got.status != http.StatusOK || !strings.Contains(got.text(), "Backlog 0 ") || !strings.Contains(got.body, `name="campaign" value="calm"`) {
		t.Errorf("by a part of its name: %d %s", got.status, got.text())
	}
	for _, text := range []string{"none", "설날", "NO ID", "추석"} { // both campaigns have the last one in their names
		got := b.get("/console/recording?campaign=" + url.QueryEscape(text))
		if said := "“" + text + "” is no campaign's id. Choose one from the list, or write its id. Below are all campaigns."; got.status != http.StatusUnprocessableEntity || !strings.Contains(html.UnescapeString(got.text()), said) || !strings.Contains(got.body, `name="campaign" value="`+text+`"`) || !strings.Contains(got.text(), "Backlog 42 ") {
			t.Errorf("of no campaign: %d %s", got.status, got.body)
		}
	}
}

// TestCouponsThatWereChosenInTheListAreVoidedTogether sends the form of a browser with two ticked boxes and an empty field.
func TestCouponsThatWereChosenInTheListAreVoidedTogether(t *testing.T) {
	h := openHouse(t)
	h.claim(h.campaign("spring", 5), "a", "b", "c")
	b := h.browser()
	if got := b.get("/console/campaigns/spring/coupons").body; strings.Count(got, `type="checkbox" name="numbers"`) != 3 {
		t.Errorf("the list has no box for each coupon: %s", got)
	}
	form := url.Values{"numbers": {"1", "3", ""}, "reason": {"a mistake"}, "version": {"1"}}
	if got := b.post("/console/campaigns/spring/coupons/void", form).text(); !strings.Contains(got, "in force → voided 2 coupons") {
		t.Errorf("the preview says %s", got)
	}
	form.Set("typed", "spring")
	b.post("/console/campaigns/spring/coupons/void", form)
	if s := h.status("spring"); s.InForce != 1 || s.Issued != 3 {
		t.Errorf("%d of %d coupons are in force", s.InForce, s.Issued)
	}
}

// TestABulkVoidVoidsWhatWasShown issues two more coupons within the typed range after the preview.
func TestABulkVoidVoidsWhatWasShown(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 100)
	for n := range 5 {
		h.claim(id, fmt.Sprint("user-", n))
	}
	r := h.reader()
	r.Go(h.url + "/console/campaigns/spring/coupons")
	r.Type("form[action$='/coupons/void'] textarea", "4-9")
	r.Type("form[action$='/coupons/void'] [name='reason']", "a mistake")
	r.Press("form[action$='/coupons/void'] button")
	r.Await("voided 2 coupons")
	h.claim(id, "late", "later")
	r.Type(".danger [name='typed']", "spring")
	r.Press(".danger button")
	r.Await("Voided.")
	if s := h.status(id); s.Issued != 7 || s.InForce != 5 {
		t.Errorf("%d of %d coupons are in force, and two were shown", s.InForce, s.Issued)
	}
}

// TestACampaignIsChosenFromAList where a form needs one, also if the typed text names none.
func TestACampaignIsChosenFromAList(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	b := h.browser()
	for _, path := range []string{"/console/customer", "/console/customer?campaign=none&user_id=u", "/console/recording", "/console/recording?campaign=none", "/console/audit-log"} {
		got := b.get(path).body
		if !strings.Contains(got, `list="campaigns"`) || !strings.Contains(got, `<option value="spring"`) {
			t.Errorf("%s offers no campaign: %s", path, got)
		}
	}
}

// TestAReasonIsCountedInCharacters, not in bytes: 500 characters of Hangul are 1,500 bytes.
func TestAReasonIsCountedInCharacters(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	b := h.browser()
	for length, status := range map[int]int{firstcome.MaxReason: http.StatusOK, firstcome.MaxReason + 1: http.StatusUnprocessableEntity} {
		user := fmt.Sprint("user-", length)
		got := b.post("/console/customer/issue", url.Values{"campaign": {"spring"}, "user_id": {user}, "reason": {strings.Repeat("가", length)}})
		if got.status != status {
			t.Errorf("a direct issue with a reason of %d characters is answered %d: %s", length, got.status, got.text())
		}
	}
}
