package operate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/test/stage"
)

// logs returns where a line is logged, or an error.
type logs struct{ away error }

var logged = firstcome.LineLog{Topic: "lines", Partition: 3, First: 70}

func (l logs) LogLocation(context.Context, firstcome.CampaignID) (firstcome.LineLog, error) {
	return logged, l.away
}

func TestTheLineOfACampaignThatGetsAPaceIsLogged(t *testing.T) {
	earlier, pace := &firstcome.LineLog{Topic: "lines", First: 7}, &firstcome.Pace{PerSecond: 5}
	paced := func(t *firstcome.Terms) { t.Pace = pace }
	for _, c := range []struct {
		name   string
		before *firstcome.Terms // nil if the campaign is created
		edit   func(*firstcome.Terms)
		remote bool
		want   *firstcome.LineLog
	}{
		{"created with a pace", nil, paced, true, &logged},
		{"created without one", nil, func(*firstcome.Terms) {}, true, nil},
		{"created where the ledger decides", nil, paced, false, nil},
		{"gets a pace", &firstcome.Terms{}, paced, true, &logged},
		{"gets a pace where the ledger decides", &firstcome.Terms{}, paced, false, nil},
		{"had a pace, and no log", &firstcome.Terms{Pace: &firstcome.Pace{PerSecond: 1}}, paced, true, nil},
		{"gets a pace again", &firstcome.Terms{Log: earlier}, paced, true, earlier},
		{"gets more coupons", &firstcome.Terms{}, func(t *firstcome.Terms) { t.Quantity++ }, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &desk{}
			o := d.local()
			if c.remote {
				o = d.remote()
			}
			o.Logs = logs{}
			terms := stage.Terms(9)
			if c.before == nil {
				c.edit(&terms)
				stage.Must(t, stage.Err(o.Create(t.Context(), "test", "c", terms)))
			} else {
				terms.Pace, terms.Log = c.before.Pace, c.before.Log
				d.before = terms
				stage.Must(t, stage.Err(o.SetTerms(t.Context(), "test", "c", 0, c.edit)))
			}
			if diff := cmp.Diff(c.want, d.after.Log); diff != "" {
				t.Errorf("it is logged (-want +got):\n%s", diff)
			}
		})
	}
}

// TestALineKeepsTheLogThatItGotBetweenReadAndChange lets another node give the campaign a pace and a log after this node has read the campaign.
func TestALineKeepsTheLogThatItGotBetweenReadAndChange(t *testing.T) {
	earlier, pace := &firstcome.LineLog{Topic: "lines", First: 7}, &firstcome.Pace{PerSecond: 5}
	terms := stage.Terms(9)
	changed := terms
	changed.Pace, changed.Log = pace, earlier
	d := &desk{before: terms, meanwhile: &changed}
	o := d.remote()
	o.Logs = logs{}
	stage.Must(t, stage.Err(o.SetTerms(t.Context(), "test", "c", 0, func(t *firstcome.Terms) { t.Pace = pace })))
	if diff := cmp.Diff(earlier, d.after.Log); diff != "" {
		t.Errorf("its log (-want +got):\n%s", diff)
	}
}

// TestNothingIsChangedWhileNobodyKnowsWhereALineIsLogged makes the log unavailable. A line that already has a log does not need it.
func TestNothingIsChangedWhileNobodyKnowsWhereALineIsLogged(t *testing.T) {
	d := &desk{before: stage.Terms(9)}
	o := d.remote()
	o.Logs = logs{firstcome.ErrLineLogAway}
	paced := stage.Terms(9)
	paced.Pace = &firstcome.Pace{PerSecond: 5}
	wrong := paced
	wrong.Name = ""
	had := &desk{before: stage.Terms(9)}
	had.before.Log = &firstcome.LineLog{Topic: "lines"}
	again := had.remote()
	again.Logs = o.Logs
	stage.Must(t, stage.Err(again.SetTerms(t.Context(), "test", "c", 0, func(t *firstcome.Terms) { t.Pace = paced.Pace })))
	var field *firstcome.FieldError
	for what, is := range map[string]struct {
		err  error
		want func(error) bool
	}{
		"create":                     {stage.Err(o.Create(t.Context(), "test", "c", paced)), isAway},
		"update":                     {stage.Err(o.SetTerms(t.Context(), "test", "c", 0, func(t *firstcome.Terms) { t.Pace = paced.Pace })), isAway},
		"terms that are not allowed": {stage.Err(o.Create(t.Context(), "test", "c", wrong)), func(err error) bool { return errors.As(err, &field) }},
	} {
		if !is.want(is.err) {
			t.Errorf("%s: %v", what, is.err)
		}
	}
	if len(d.steps) > 0 {
		t.Errorf("it was done: %v", d.steps)
	}
}

func isAway(err error) bool { return errors.Is(err, firstcome.ErrLineLogAway) }

var _ operate.Logs = logs{}
