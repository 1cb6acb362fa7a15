//go:build linux && !check

package e2e_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A person reads the pages of a node's console, in English, with a browser that keeps cookies and follows what a form leads to.
type person struct {
	t    *testing.T
	url  string // of the console
	http *http.Client
}

func newPerson(p *process) *person {
	jar, err := cookiejar.New(nil)
	stage.Must(p.t, err)
	visitor := &person{t: p.t, url: p.url + "/console", http: &http.Client{Jar: jar, Transport: p.http.Transport}}
	return visitor
}

// A page is what somebody reads, and its source.
type shownPage struct {
	status     int
	at         string // the path behind all redirects
	text, html string
	head       http.Header
}

var (
	noText = regexp.MustCompile(`(?s)<(style|script|template).*?</(style|script|template)>|<span popover.*?</span>|<[^>]*>`) // a closed popover shows nothing
	blanks = regexp.MustCompile(`\s+`)
)

func (p *person) get(path string) shownPage { return p.send(http.MethodGet, path, nil) }

func (p *person) post(path string, form url.Values) shownPage {
	return p.send(http.MethodPost, path, form)
}

func (p *person) send(method, path string, form url.Values) shownPage {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(form.Encode()))
	stage.Must(p.t, err)
	r.Header.Set("Accept-Language", "en")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w, err := p.http.Do(r)
	stage.Must(p.t, err)
	defer w.Body.Close()
	source, err := io.ReadAll(w.Body)
	stage.Must(p.t, err)
	text := blanks.ReplaceAllString(noText.ReplaceAllString(string(source), " "), " ")
	return shownPage{w.StatusCode, w.Request.URL.Path, html.UnescapeString(text), string(source), w.Header}
}

// sees waits until a page says all of these.
func (p *person) sees(path string, texts ...string) {
	p.t.Helper()
	got := ""
	defer func() {
		if p.t.Failed() {
			p.t.Logf("%s says %s", path, got)
		}
	}()
	waitFor(p.t, fmt.Sprintf("%s to say %q", path, texts), func() bool {
		got = p.get(path).text
		for _, text := range texts {
			if !strings.Contains(got, text) {
				return false
			}
		}
		return true
	})
}

// wants holds an answer against what it has to be and to say.
func (p *person) wants(got shownPage, status int, text string) {
	p.t.Helper()
	if got.status != status || !strings.Contains(got.text, text) {
		p.t.Errorf("%s is %d, want %d and %q: %s", got.at, got.status, status, text, got.text)
	}
}

// A letterShown is a dead letter on a page.
type letterShown struct{ number, path string }

func (s shownPage) letters() (all []letterShown) {
	for _, found := range regexp.MustCompile(`(?s)<h3>[^<]*number (\d+) .*?action="/console(/recording/dead-letters/\d+)/void`).FindAllStringSubmatch(s.html, -1) {
		all = append(all, letterShown{found[1], found[2]})
	}
	return all
}

// TestThePagesTellWhatIsOnItsWayAndWhatDoesNotGetThere has the ledger be away for those who record, refuse two coupons, and be
// away for all. People see the backlog, resolve the dead letters and see the breaker, on the pages of real nodes.
func TestThePagesTellWhatIsOnItsWayAndWhatDoesNotGetThere(t *testing.T) {
	on(t, pagesTellWhatIsOnItsWay, redisOfPostgreSQL)
}

func pagesTellWhatIsOnItsWay(t *testing.T, s setup) {
	d := s.deploy(t)
	db, err := services.Open(d.plain)
	stage.Must(t, err)
	t.Cleanup(func() { stage.Must(t, db.Close()) })
	d.create("spring", 100, firstcome.Decided)
	claim := func(from, to int) {
		p := d.node(0)
		for n := from; n <= to; n++ {
			waitFor(t, fmt.Sprintf("user %d to have a coupon", n), func() bool {
				w, text := p.ask(http.MethodPost, p.url+"/v1/campaigns/spring/claims", fmt.Sprintf(`{"user_id":"user-%d"}`, n))
				if w.StatusCode == http.StatusServiceUnavailable {
					return false
				}
				if w.StatusCode != http.StatusCreated && w.StatusCode != http.StatusOK {
					t.Fatalf("claim %d: %s %s", n, w.Status, text)
				}
				return true
			})
		}
	}
	on := newPerson(d.node(0))
	on.sees("/health", "recorder ") // it said what it is before its ledger goes away
	claim(1, 3)
	on.sees("/recording", "Backlog 0 ", "this node does not record", "There is no dead letter.")
	on.sees("/campaigns/spring", "3 / 100 issued", "Unrecorded 0 ")

	d.recordLedger.Cut()
	claim(4, 10)
	on.sees("/recording", "Backlog 7 ", "spring 7 ")
	on.sees("/health", "backlog 7", "recorder ")
	on.sees("", "10 / 100 ", " 7 ")
	on.sees("/campaigns/spring", "10 / 100 issued", "Left 90 ", "Unrecorded 7 ")
	on.sees("/campaigns/spring/coupons", "On their way to the ledger, and not listed yet: 7", "user-3")
	on.sees("/customer?campaign=spring&user_id=user-9", "You got “spring” at ", "was issued number 9", "is on its way to the ledger")
	void := url.Values{"reason": {"a mistake"}}
	on.wants(on.post("/campaigns/spring/coupons/9/void", void), http.StatusServiceUnavailable, "It is not in the ledger yet")
	on.wants(on.post("/campaigns/spring/coupons/11/void", void), http.StatusNotFound, "Not found")

	// The ledger refuses two of them.
	quantity := func(n int) {
		_, err := db.ExecContext(t.Context(), fmt.Sprintf(`UPDATE campaigns SET quantity = %d`, n))
		stage.Must(t, err)
	}
	quantity(8)
	d.recordLedger.Heal()
	on.sees("/recording", "Backlog 0 ", "over the quantity of 8")
	letters := on.get("/recording").letters() // which two depends on who records first
	if len(letters) != 2 {
		t.Fatalf("the dead letters are %v", letters)
	}
	again, never := letters[0], letters[1]
	on.sees("/customer?campaign=spring&user_id=user-"+again.number, "Your coupon “spring” could not be recorded yet", "was issued number "+again.number)
	on.wants(on.post(again.path+"/replay", url.Values{}), http.StatusConflict, "over the quantity of 8")
	quantity(100)
	on.wants(on.post(again.path+"/replay", url.Values{}), http.StatusOK, "Recorded.")
	on.wants(on.post(again.path+"/replay", url.Values{}), http.StatusConflict, "This cannot be done now")
	on.wants(on.post(never.path+"/void", void), http.StatusOK, "Voided.")
	on.sees("/recording", "There is no dead letter.")
	on.sees("/recording?resolved=yes", "replayed", "voided")
	on.sees("/campaigns/spring", "9 / 100 issued", "Unrecorded 0 ")
	on.sees("/campaigns/spring/coupons", "user-"+again.number)
	on.sees("/audit-log", "replayed a dead letter", "voided a dead letter")
	on.wants(on.post("/campaigns/spring/proof", url.Values{}), http.StatusOK, "spring")
	on.sees("/campaigns/spring/proof", "Every promise that was checked was kept")
	on.sees("/campaigns/spring/report", "Dead letters 0 ")

	_, err = db.ExecContext(t.Context(), `INSERT INTO lost (campaign_id, number, count, epoch) VALUES ('spring', 1000, 3, 1)`)
	stage.Must(t, err)
	on.sees("/recording", "Lost numbers spring : 1,000 (+3)")

	// The only one who records answers, too, and its ledger goes away.
	all := newPerson(d.start())
	for _, r := range d.recorders {
		r.stop()
	}
	all.sees("/recording", "Breaker closed")
	lock, err := db.BeginTx(t.Context(), nil) // so that it has something in hand when the ledger goes
	stage.Must(t, err)
	_, err = lock.ExecContext(t.Context(), `UPDATE campaigns SET quantity = 100`)
	stage.Must(t, err)
	claim(11, 12)
	all.sees("/recording", "Backlog 2 ")
	waitFor(t, "the recorder to have them in hand", func() bool { return s.waiting(t, db) > 0 })
	d.toLedger.Cut()
	stage.Must(t, lock.Rollback())
	all.sees("/recording", "The ledger does not answer", "Breaker open")
	all.sees("/health", "the ledger does not answer")
	all.sees("/campaigns/spring", "The ledger does not answer. This page shows only what this node knows.")
	d.toLedger.Heal()
	all.sees("/recording", "Breaker closed", "Backlog 0 ")
	all.sees("/campaigns/spring", "11 / 100 issued", "Unrecorded 0 ")
}
