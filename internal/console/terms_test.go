package console_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// TestTheTermsPageChangesWhatWasTypedAndNothingElse has terms that a form cannot show in full.
func TestTheTermsPageChangesWhatWasTypedAndNothingElse(t *testing.T) {
	h := openHouse(t)
	made := firstcome.Terms{
		Name: "추석", Quantity: 5000, OpensAt: time.Date(2026, 12, 1, 1, 0, 0, 123_000, time.UTC), Answer: firstcome.Recorded,
		Benefit: []byte(`{"off": 30}`), ValidFor: 36*time.Hour + 500*time.Millisecond, Pace: &firstcome.Pace{PerSecond: 5}, Waitlist: true,
	}
	stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "spring", made)))
	want := h.status("spring").Terms
	p, check := h.reader(), "form[action$='/terms'] button"
	p.Go("/console/campaigns/spring/terms")
	p.Press(check)
	p.Await("Nothing is different.")
	p.Type("[name=quantity]", "50000")
	p.Press(check)
	p.Await("quantity 5,000 → 50,000")
	stage.Same(t, "the terms before it was confirmed", want, h.status("spring").Terms)
	p.Type("[name=typed]", "spring")
	p.Press(".card.danger button")
	p.Await("It is changed.")
	want.Quantity = 50000
	stage.Same(t, "the terms", want, h.status("spring").Terms)
	p.Go("/console/campaigns/spring/terms")
	p.Await("local changed the terms")
	p.Await("quantity 5,000 → 50,000")
}

// TestACloneHasAllTermsButTheTimes of opening and closing.
func TestACloneHasAllTermsButTheTimes(t *testing.T) {
	for valid, terms := range map[string]firstcome.Terms{
		"36 hours":      {ValidFor: 36 * time.Hour},
		"12 hours":      {ValidFor: 12 * time.Hour},
		"90 seconds":    {ValidFor: 90 * time.Second},
		"until a night": {ValidUntil: time.Date(2027, 1, 31, 14, 59, 59, 0, time.UTC)},
	} {
		h := openHouse(t)
		terms.Name, terms.Quantity, terms.Answer, terms.Benefit = "추석", 5000, firstcome.Decided, []byte(`"30% 할인"`)
		terms.Pace, terms.Waitlist = &firstcome.Pace{PerSecond: 7}, true
		with := terms
		with.OpensAt, with.ClosesAt = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC)
		stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", "spring", with)))
		p := h.reader()
		p.Go("/console/campaigns/new?clone=spring")
		p.Type("[name=id]", "autumn")
		p.Press("button[value=check]")
		p.Press("button[value=create]")
		p.Await("The campaign is made.")
		stage.Same(t, valid, terms, h.status("autumn").Terms)
	}
}
