package console_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/test/stage"
)

// A counted body counts how many of its bytes were read.
type counted struct {
	io.Reader
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

// TestALargeBodyIsNotRead sends a mebibyte to pages without a login, and to a page that needs one.
func TestALargeBodyIsNotRead(t *testing.T) {
	h := openHouse(t, withKeys)
	pages := console.New(h.configWithAuth()).Handler()
	var parts bytes.Buffer
	form := multipart.NewWriter(&parts)
	field, err := form.CreateFormField("key")
	stage.Must(t, err)
	_, err = field.Write(make([]byte, 1<<20))
	stage.Must(t, err)
	stage.Must(t, form.Close())
	plain := "key=" + strings.Repeat("a", 1<<20)
	for _, c := range []struct {
		method, path, media, body string
		want                      int
	}{
		{"POST", "/console/login", form.FormDataContentType(), parts.String(), http.StatusUnsupportedMediaType},
		{"GET", "/console/login", form.FormDataContentType(), parts.String(), http.StatusOK},
		{"POST", "/console/login", "application/x-www-form-urlencoded", plain, http.StatusRequestEntityTooLarge},
		{"GET", "/console/login", "application/x-www-form-urlencoded", plain, http.StatusOK},
		{"POST", "/console/login", "application/x-www-form-urlencoded", "key=%zz", http.StatusUnsupportedMediaType},
		{"POST", "/console/keys", form.FormDataContentType(), parts.String(), http.StatusSeeOther},
	} {
		body := &counted{Reader: strings.NewReader(c.body)}
		r := httptest.NewRequest(c.method, c.path, body)
		r.Header.Set("Content-Type", c.media)
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		if w.Code != c.want || body.read > 64<<10+1 {
			t.Errorf("%s %s of %s: %d behind %d bytes, want %d", c.method, c.path, c.media, w.Code, body.read, c.want)
		}
	}
}

// TestTheLongestFormIsTaken sends the largest benefit. A form escapes each of its bytes as three.
func TestTheLongestFormIsTaken(t *testing.T) {
	h := openHouse(t)
	benefit := `"` + strings.Repeat("혜", (firstcome.MaxBenefit-2)/3) + `"`
	form := url.Values{"id": {"spring"}, "name": {"추석"}, "benefit": {benefit}, "answer": {"recorded"}, "step": {"create"}}
	if got := h.browser().post("/console/campaigns", form); got.path != "/console/campaigns/spring" {
		t.Errorf("got %d: %.200s", got.status, got.text())
	}
}

// TestTextThatALedgerCannotKeepIsRefused sends such text in forms and in queries. SQLite would keep it, but PostgreSQL would not.
func TestTextThatALedgerCannotKeepIsRefused(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 10)
	h.claim(id, "a")
	b := h.browser()
	for _, bad := range []string{"\xff", "a\x00b", "\xed\xa0\x80"} {
		for path, form := range map[string]url.Values{
			"/console/campaigns/spring/coupons/1/void": {"reason": {bad}},
			"/console/campaigns/spring/coupons/void":   {"reason": {bad}, "numbers": {"1"}, "typed": {"spring"}, "version": {"1"}},
			"/console/campaigns":                       {"name": {bad}, "id": {"other"}, "answer": {"recorded"}, "step": {"create"}},
		} {
			if got := b.post(path, form); got.status != http.StatusUnprocessableEntity {
				t.Errorf("%q in a form of %s: %d", bad, path, got.status)
			}
		}
		for _, path := range []string{"/console?q=", "/console/customer?user_id=", "/console/audit-log?user_id=", "/console/recording?campaign=", "/console/login?next=", "/console?done="} {
			if got := b.get(path + url.QueryEscape(bad)); got.status != http.StatusUnprocessableEntity {
				t.Errorf("%s%q: %d", path, bad, got.status)
			}
		}
	}
	if found, err := h.prove(t.Context(), id, nil); err != nil || found.Breaches() != 0 || h.openLetters() != 0 {
		t.Errorf("the audit says %+v, %v", found, err)
	}
	if s, err := h.ledger.Reads.Campaign(t.Context(), id); err != nil || s.InForce != 1 {
		t.Errorf("%d are in force, %v", s.InForce, err)
	}
}

// TestABenefitIsWhatEveryReaderReadsAlike: the console accepts the same benefits as the API.
func TestABenefitIsWhatEveryReaderReadsAlike(t *testing.T) {
	h := openHouse(t)
	for n, c := range []struct {
		benefit string
		kept    string // empty if the benefit is refused
	}{
		{`{"percent":20}`, `{"percent":20}`},
		{`20 percent off`, `"20 percent off"`},
		{strings.Repeat("[", 32) + strings.Repeat("]", 32), strings.Repeat("[", 32) + strings.Repeat("]", 32)},
		{strings.Repeat("[", 33) + strings.Repeat("]", 33), ""},
		{`{"percent":20,"percent":90}`, ""},
		{`"\ud800"`, ""},
	} {
		id := fmt.Sprint("c-", n)
		form := url.Values{"id": {id}, "name": {"추석"}, "benefit": {c.benefit}, "answer": {"recorded"}, "step": {"create"}}
		got := h.browser().post("/console/campaigns", form)
		s, err := h.ledger.Reads.Campaign(t.Context(), firstcome.CampaignID(id))
		if c.kept == "" && got.status != http.StatusUnprocessableEntity || string(s.Terms.Benefit) != c.kept {
			t.Errorf("%s: %d, and kept is %s, %v", c.benefit, got.status, s.Terms.Benefit, err)
		}
	}
}

// TestAWrongFieldSaysWhatTheFormTakes: a form has no null, and its longest user id is that of firstcome.
func TestAWrongFieldSaysWhatTheFormTakes(t *testing.T) {
	h := openHouse(t)
	b := h.browser()
	form := url.Values{"name": {"n"}, "quantity": {"-4"}, "answer": {"recorded"}, "line": {"none"}, "step": {"check"}}
	if got := b.post("/console/campaigns", form).text(); !strings.Contains(got, "or empty for no limit") || strings.Contains(got, "null") {
		t.Errorf("the form says %s", got)
	}
	b.lang = "ko"
	if got := b.get("/console/customer?user_id=%01").text(); !strings.Contains(got, fmt.Sprintf("%d바이트", firstcome.MaxUserID)) {
		t.Errorf("the page says %s", got)
	}
}

// TestAnAddressThatAsksTooOftenIsToldSo refuses a page, a form and a stream in both languages. The refusal still looks like a page of the console.
func TestAnAddressThatAsksTooOftenIsToldSo(t *testing.T) {
	h := openHouse(t, func(h *house) {
		h.config.AllowAddress = func(*http.Request) (time.Duration, bool) { return 1500 * time.Millisecond, false }
	})
	for lang, head := range map[string]string{"en": "Too many requests", "ko": "요청이 너무 많습니다"} {
		b := h.browser()
		b.lang = lang
		for _, got := range []shown{b.get("/console/login"), b.post("/console/login", url.Values{"key": {"x"}}), b.get("/console/campaigns/spring/events"), b.get("/console/nowhere")} {
			if got.status != http.StatusTooManyRequests || got.head.Get("Retry-After") != "2" || !strings.Contains(got.text(), head) {
				t.Errorf("%s %s: %d, Retry-After %s: %s", got.method, got.path, got.status, got.head.Get("Retry-After"), got.text())
			}
			for _, asset := range regexp.MustCompile(`/console/assets/[^"]+`).FindAllString(got.body, -1) {
				if looks := b.get(asset); looks.status != http.StatusOK {
					t.Errorf("%s: %d", asset, looks.status)
				}
			}
		}
	}
}
