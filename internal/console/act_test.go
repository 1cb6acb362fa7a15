package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// status returns the campaign's status from the ledger.
func (h *house) status(id firstcome.CampaignID) ledger.Status {
	h.t.Helper()
	s, err := h.ledger.Reads.Campaign(h.t.Context(), id)
	stage.Must(h.t, err)
	return s
}

func TestAStalePageIsToldWhatChangedMeanwhile(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	b := h.browser()
	old := b.get("/console/campaigns/spring/steer").version()
	b.post("/console/campaigns/spring/quantity", url.Values{"version": {old}, "quantity": {"77"}, "typed": {"spring"}})
	for path, form := range map[string]url.Values{
		"switch":   {"to": {"pause"}},
		"quantity": {"quantity": {"99"}},
		"pace":     {"line": {"fast"}},
	} {
		form.Set("version", old)
		got := b.post("/console/campaigns/spring/"+path, form)
		if got.status != http.StatusPreconditionFailed || !strings.Contains(got.text(), "quantity 10 → 77") || strings.Contains(got.text(), "created the campaign") {
			t.Errorf("%s: %d %s", path, got.status, got.text())
		}
	}
	if s := h.status("spring"); s.Paused || s.Quantity != 77 || s.Pace != nil {
		t.Errorf("a stale form changed it: %+v", s.Terms)
	}
}

func TestWhatCannotBeTakenBackAsksForTheNameTyped(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 10)
	h.claim(id, "a", "b", "c")
	b := h.browser()
	send := func(path string, form url.Values, typed string) shown {
		form = url.Values{"version": {b.get("/console/campaigns/spring/steer").version()}, "typed": {typed}, "quantity": form["quantity"], "to": form["to"]}
		return b.post("/console/campaigns/spring/"+path, form)
	}
	lower, closing := url.Values{"quantity": {"5"}}, url.Values{"to": {"close"}}
	for _, typed := range []string{"", "winter"} {
		if got := send("quantity", lower, typed); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `name="typed"`) {
			t.Errorf("lower with %q: %d %s", typed, got.status, got.text())
		}
		if got := send("switch", closing, typed); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `name="typed"`) {
			t.Errorf("close with %q: %d %s", typed, got.status, got.text())
		}
	}
	if s := h.status(id); s.Quantity != 10 || s.Closed {
		t.Fatalf("changed without the name: %d, closed %v", s.Quantity, s.Closed)
	}
	if got := send("quantity", url.Values{"quantity": {"2"}}, "spring"); got.status != http.StatusConflict {
		t.Errorf("below what is issued: %d %s", got.status, got.text())
	}
	send("quantity", lower, "추석 spring")
	if s := h.status(id); s.Quantity != 5 {
		t.Errorf("lowered by its name: %d", s.Quantity)
	}
	send("switch", closing, "spring")
	if s := h.status(id); !s.Closed {
		t.Error("it is not closed by its id")
	}
}

func TestThePaceIsChangedAndTakenAway(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 10)
	b := h.browser()
	send := func(line, rate string) shown {
		return b.post("/console/campaigns/spring/pace", url.Values{"version": {b.get("/console/campaigns/spring/steer").version()}, "line": {line}, "per_second": {rate}})
	}
	send("paced", "500")
	if s := h.status(id); s.Pace == nil || s.Pace.PerSecond != 500 {
		t.Errorf("paced: %+v", s.Pace)
	}
	for _, rate := range []string{"", "0", "-1", "many", "1e9"} {
		if got := send("paced", rate); got.status != http.StatusUnprocessableEntity {
			t.Errorf("pace %q: %d", rate, got.status)
		}
	}
	send("fast", "")
	if s := h.status(id); s.Pace == nil || s.Pace.PerSecond != 0 {
		t.Errorf("fast: %+v", s.Pace)
	}
	send("none", "")
	if s := h.status(id); s.Pace != nil {
		t.Errorf("none: %+v", s.Pace)
	}
}

// TestWhatWasChangedIsSaid in both languages, also if the language changes after the change.
func TestWhatWasChangedIsSaid(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	b := h.browser()
	for _, c := range []struct {
		path   string
		form   url.Values
		ko, en string
	}{
		{"quantity", url.Values{"quantity": {"5000"}}, "수량을 5,000장으로 변경했습니다.", "The quantity is now 5,000."},
		{"quantity", url.Values{"unlimited": {"yes"}}, "수량을 무제한으로 변경했습니다.", "The quantity is now unlimited."},
		{"pace", url.Values{"line": {"fast"}}, "대기열에 최대한 빠르게 발급하도록 변경했습니다.", "The line is now served as fast as possible."},
		{"pace", url.Values{"line": {"paced"}, "per_second": {"2000"}}, "대기열 속도를 초당 2,000장으로 변경했습니다.", "The pace of the line is now 2,000 coupons a second."},
		{"pace", url.Values{"line": {"none"}}, "대기열을 사용하지 않도록 변경했습니다.", "There is no line now."},
		{"terms", url.Values{"name": {"설날"}, "benefit": {"30%"}, "quantity": {"20"}}, "조건을 변경했습니다: 이름, 수량, 혜택", "Changed: name, quantity, benefit"},
		{"switch", url.Values{"to": {"pause"}}, "일시중지했습니다.", "Paused."},
	} {
		b.lang = "ko"
		c.form.Set("version", b.get("/console/campaigns/spring/steer").version())
		c.form.Set("typed", "spring")
		got := b.post("/console/campaigns/spring/"+c.path, c.form)
		if !strings.Contains(got.text(), c.ko) {
			t.Errorf("%s: no %q in %s", c.path, c.ko, got.text())
		}
		b.lang = "en"
		if got := b.get(got.uri); !strings.Contains(got.text(), c.en) {
			t.Errorf("%s: no %q in %s", c.path, c.en, got.text())
		}
	}
}

// TestTheFormsShowTheLine: the number of users in line comes from the gate, and is unknown while the gate does not answer.
func TestTheFormsShowTheLine(t *testing.T) {
	blind := func(h *house) { h.config.Watcher.Ledger = &failing{Reads: h.ledger.Reads, err: errAway} }
	for source, h := range map[string]*house{"nobody": openHouse(t, blind), "the ledger": openHouse(t), "the gate": openFar(t)} {
		waiting := "2 "
		if source == "nobody" {
			waiting = "– "
		}
		h.paced("line", 9)
		for _, user := range []firstcome.UserID{"first", "second"} {
			stage.Must(t, stage.Err(h.issuer.Claim(t.Context(), "line", user)))
		}
		got := h.browser().get("/console/campaigns/line/steer")
		if !strings.Contains(got.text(), "Users in line keep their places: "+waiting) || !strings.Contains(got.body, `value="5"`) || got.version() != "1" {
			t.Errorf("of %s: no waiting, pace 5 and version 1 in %s", source, got.body)
		}
	}
}

func TestANewCampaignIsCheckedFirstAndMadeOnce(t *testing.T) {
	h := openHouse(t, func(h *house) { h.stands(time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)) })
	b := h.browser()
	form := url.Values{
		"name": {"추석 쿠폰"}, "quantity": {"5,000"}, "opens_at": {"2026-12-01T10:00"}, "answer": {"recorded"}, "line": {"paced"}, "per_second": {"100"}, "waitlist": {"on"},
		"benefit": {"30% 할인"}, "valid_for": {"7"}, "valid_unit": {"days"}, "id": {"chuseok"}, "step": {"check"},
	}
	got := b.post("/console/campaigns", form)
	for _, want := range []string{"Before it opens", "2026-12-01 10:00:00 KST = 2026-12-01 01:00:00 UTC", "in 8 days", "100 a second (about 50 s until all are issued)"} {
		if !strings.Contains(got.text(), want) {
			t.Errorf("no %q in %s", want, got.text())
		}
	}
	if _, err := h.ledger.Reads.Campaign(t.Context(), "chuseok"); err == nil {
		t.Fatal("checking makes it")
	}
	form.Set("step", "create")
	if got := b.post("/console/campaigns", form); got.path != "/console/campaigns/chuseok" {
		t.Fatalf("made: %d at %s: %s", got.status, got.path, got.text())
	}
	s := h.status("chuseok")
	if want := time.Date(2026, 12, 1, 1, 0, 0, 0, time.UTC); !s.OpensAt.Equal(want) || s.Quantity != 5000 || s.Pace.PerSecond != 100 || !s.Waitlist || s.ValidFor != 7*24*time.Hour || string(s.Benefit) != `"30% 할인"` {
		t.Errorf("made %+v", s.Terms)
	}
	if got := b.post("/console/campaigns", form); got.status != http.StatusConflict || !strings.Contains(got.text(), "There is a campaign with this id") {
		t.Errorf("made twice: %d %s", got.status, got.text())
	}
	clone := b.get("/console/campaigns/new?clone=chuseok")
	for _, want := range []string{`value="5000"`, `value="100"`, `name="valid_for" value="7"`, `value="days" selected`, "30% 할인"} {
		if !strings.Contains(clone.body, want) {
			t.Errorf("the clone has no %s", want)
		}
	}
}

func TestWhatIsWrongWithANewCampaignStandsAtItsField(t *testing.T) {
	h := openHouse(t)
	b := h.browser()
	good := url.Values{"name": {"a"}, "answer": {"recorded"}, "step": {"create"}}
	for field, value := range map[string]string{"name": "", "quantity": "many", "opens_at": "tomorrow", "closes_at": "1", "per_second": "0", "valid_for": "-1", "id": "NOT AN ID"} {
		form := url.Values{}
		for name, values := range good {
			form[name] = values
		}
		form.Set(field, value)
		if field == "per_second" {
			form.Set("line", "paced")
		}
		got := b.post("/console/campaigns", form)
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `class="wrong"`) || focused(got) != field {
			t.Errorf("%s %q: %d, the focus is on %q: %s", field, value, got.status, focused(got), got.text())
		}
	}
	found, err := h.ledger.Reads.Campaigns(t.Context(), "", 9)
	if stage.Must(t, err); len(found) != 0 {
		t.Errorf("%d are made", len(found))
	}
}

// focused returns the name of the wrong field that has the focus. It returns something else if there is not one such field.
func focused(page shown) string {
	fields := regexp.MustCompile(`<(?:input|textarea)[^>]*? autofocus[^>]*>`).FindAllString(page.body, -1)
	if len(fields) != 1 || !strings.Contains(fields[0], `aria-invalid="true"`) || !strings.Contains(page.body, `id="`+between(fields[0], `aria-describedby="`)+`"`) {
		return fmt.Sprint(fields)
	}
	return between(fields[0], `name="`)
}

// between returns what follows a text, up to the next quote.
func between(text, after string) string {
	_, rest, _ := strings.Cut(text, after)
	found, _, _ := strings.Cut(rest, `"`)
	return found
}

// TestTheFocusGoesToTheFirstWrongField, and to no other element, on every page with a form.
func TestTheFocusGoesToTheFirstWrongField(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	b := h.browser()
	two := url.Values{"name": {"a"}, "quantity": {"many"}, "closes_at": {"1"}, "answer": {"recorded"}, "step": {"check"}, "version": {"1"}}
	with := func(name, value string, more ...string) url.Values {
		form := url.Values{"version": {"1"}, name: {value}}
		for n := 0; n < len(more); n += 2 {
			form.Set(more[n], more[n+1])
		}
		return form
	}
	for _, c := range []struct {
		path  string
		form  url.Values // nil for a GET
		field string
	}{
		{"/campaigns", two, "quantity"},
		{"/campaigns", with("waitlist", "on", "name", "a", "answer", "recorded"), "waitlist"},
		{"/campaigns/spring/terms", two, "quantity"},
		{"/campaigns/spring/terms", with("name", "another", "typed", "winter"), "typed"},
		{"/campaigns/spring/quantity", with("quantity", "many"), "quantity"},
		{"/campaigns/spring/quantity", with("quantity", "12", "typed", "winter"), "typed"},
		{"/campaigns/spring/pace", with("line", "paced", "per_second", "0"), "per_second"},
		{"/campaigns/spring/switch", with("to", "close", "typed", "winter"), "typed"},
		{"/campaigns/spring/coupons?from=x", nil, "from"},
		{"/campaigns/spring/coupons?to=x", nil, "to"},
		{"/campaigns/spring/coupons?user_id=%01", nil, "user_id"},
		{"/campaigns/spring/coupons?code=x", nil, "code"},
		{"/campaigns/spring/coupons/void", with("numbers", "x", "reason", "r"), "numbers"},
		{"/campaigns/spring/coupons/void", with("numbers", "1"), "reason"},
		{"/recording?campaign=NO+ID", nil, "campaign"},
		{"/audit-log?campaign=NO+ID", nil, "campaign"},
		{"/audit-log?user_id=%01", nil, "user_id"},
		{"/keys", with("role", "viewer"), "name"},
	} {
		got := b.get("/console" + c.path)
		if c.form != nil {
			got = b.post("/console"+c.path, c.form)
		}
		if focused(got) != c.field {
			t.Errorf("%s %v: %d, the focus is on %q, and should be on %s: %s", c.path, c.form, got.status, focused(got), c.field, got.text())
		}
	}
}

// TestClosingSaysFromWhichState: the confirmation shows the campaign's state, which need not be open.
func TestClosingSaysFromWhichState(t *testing.T) {
	h := openHouse(t)
	h.campaign("open", 1)
	h.campaign("gone", 1)
	h.claim("gone", "mina")
	h.campaign("held", 1)
	stage.Must(t, stage.Err(h.config.Operator.ChangeState(t.Context(), "a test", "held", 0, firstcome.ChangePause)))
	b := h.browser()
	for id, state := range map[string]string{"open": "open", "gone": "sold out", "held": "paused"} {
		version := b.get("/console/campaigns/" + id + "/steer").version()
		got := b.post("/console/campaigns/"+id+"/switch", url.Values{"to": {"close"}, "version": {version}})
		if !strings.Contains(got.text(), "Close it? This cannot be undone. "+state+" → closed") {
			t.Errorf("%s: %s", id, got.text())
		}
	}
}

func TestAClosedCampaignIsSaidToStayClosed(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	b := h.browser()
	for _, closed := range []bool{false, true} {
		if closed {
			stage.Must(t, stage.Err(h.config.Operator.ChangeState(t.Context(), "a test", "spring", 0, firstcome.ChangeClose)))
		}
		for path, said := range map[string]string{"steer": "A closed campaign stays closed.", "terms": "The terms of a closed campaign stay."} {
			got := b.get("/console/campaigns/spring/" + path)
			if strings.Contains(got.text(), said) != closed || strings.Contains(got.body, `name="version"`) == closed {
				t.Errorf("%s, closed %t: %s", path, closed, got.text())
			}
		}
	}
}

// TestALinkThatSaysWhatWasDoneIsGoodForItsPageAndForAMoment: a made-up link shows nothing.
func TestALinkThatSaysWhatWasDoneIsGoodForItsPageAndForAMoment(t *testing.T) {
	h := openHouse(t)
	h.campaign("spring", 10)
	h.campaign("autumn", 10)
	now := time.Now()
	h.stands(now)
	b := h.browser()
	const done = "Paused."
	paused := b.post("/console/campaigns/spring/switch", url.Values{"version": {"1"}, "to": {"pause"}})
	if !strings.Contains(paused.text(), done) || !strings.Contains(paused.uri, "done=") {
		t.Fatalf("a pause leads to %s: %s", paused.uri, paused.text())
	}
	if again := b.get(paused.uri).text(); !strings.Contains(again, done) {
		t.Errorf("a page that is loaded again says %s", again)
	}
	_, sealed, _ := strings.Cut(paused.uri, "done=")
	for what, link := range map[string]string{
		"of another campaign": strings.Replace(paused.path, "spring", "autumn", 1) + "?done=" + sealed,
		"with plain words":    paused.path + "?done=paused",
		"that was changed":    paused.path + "?done=" + sealed[:len(sealed)-2] + "AA",
	} {
		if got := b.get(link).text(); strings.Contains(got, done) {
			t.Errorf("a link %s says %s", what, done)
		}
	}
	h.stands(now.Add(time.Minute))
	if late := b.get(paused.uri).text(); strings.Contains(late, done) {
		t.Errorf("a minute later the link says %s", done)
	}
}
