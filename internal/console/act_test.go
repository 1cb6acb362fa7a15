package console_test

import (
	"net/http"
	"net/url"
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
	for _, want := range []string{"Before it opens", "2026-12-01 10:00:00 KST = 2026-12-01 01:00:00 UTC", "in 8 days", "100 a second: 50 s"} {
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
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `class="wrong"`) {
			t.Errorf("%s %q: %d %s", field, value, got.status, got.text())
		}
	}
	found, err := h.ledger.Reads.Campaigns(t.Context(), "", 9)
	if stage.Must(t, err); len(found) != 0 {
		t.Errorf("%d are made", len(found))
	}
}

// TestClosingSaysFromWhichState: the confirmation shows the campaign's state, which need not be open.
func TestClosingSaysFromWhichState(t *testing.T) {
	h := openHouse(t)
	h.campaign("open", 1)
	h.campaign("gone", 1)
	h.claim("gone", "mina")
	h.campaign("held", 1)
	stage.Must(t, stage.Err(h.config.Operator.Switch(t.Context(), "a test", "held", 0, ledger.Pause)))
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
			stage.Must(t, stage.Err(h.config.Operator.Switch(t.Context(), "a test", "spring", 0, ledger.Close)))
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
