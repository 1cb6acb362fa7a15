package load_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/load"
	"github.com/firstcome/firstcome/test/stage"
)

const markup = `</script><script>alert("x")</script><img src=x onerror=alert(1)>`

// marked is a run whose campaign and whose breaches carry markup.
func marked(t *testing.T) *load.Result {
	server := open(t, &shop{
		id: "launch", name: markup, quantity: 40,
		spoil: func(s *shop, _ string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome {
			if o == firstcome.Issued && s.next == 3 {
				c.Code = "<b>"
			}
			return o
		},
	})
	return run(t, load.Options{Server: server, Users: 100, Prefix: `<i>"'&`})
}

func TestTheReportIsOneFileAndEscapesMarkup(t *testing.T) {
	var report bytes.Buffer
	stage.Must(t, marked(t).WriteReport(&report))
	for _, raw := range []string{markup, "<img", "<b>\"", `<i>"`, "onerror=alert(1)>"} {
		if strings.Contains(report.String(), raw) {
			t.Errorf("the report has %q unescaped", raw)
		}
	}
	for _, want := range []string{"&lt;img src=x onerror=alert(1)&gt;", "1 breach", "uPlot", "default-src 'none'", "const data = {"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if found := regexp.MustCompile(`(?:src|href)\s*=\s*["']?[a-z]+:|url\(|@import`).FindString(report.String()); found != "" {
		t.Errorf("the report asks for something else: %q", found)
	}
}

func TestTheReportOfARunWithoutAnswersOpens(t *testing.T) {
	var report bytes.Buffer
	stage.Must(t, (&load.Result{}).WriteReport(&report))
	if !strings.Contains(report.String(), "Not checked") {
		t.Error("the report does not say that nothing was checked")
	}
}

func TestTheJSONHasItsDocumentedFields(t *testing.T) {
	var text bytes.Buffer
	stage.Must(t, marked(t).WriteJSON(&text))
	var object map[string]any
	stage.Must(t, json.Unmarshal(text.Bytes(), &object))
	for _, field := range []string{
		"campaign", "load", "started", "seconds", "claims", "per_second", "outcomes", "trouble",
		"latency", "latency_of", "lag", "series", "numbers", "verdict",
		"server", "generator", "interrupted", "sold_out_seconds", "unsent", "thresholds", "warnings", "line",
	} {
		if _, ok := object[field]; !ok {
			t.Errorf("no field %q", field)
		}
		delete(object, field)
	}
	if len(object) > 0 {
		t.Errorf("fields that are not documented: %v", object)
	}
	var back load.Result
	stage.Must(t, json.Unmarshal(text.Bytes(), &back))
	if back.Outcomes["issued"] != 40 || back.Verdict.Breaches.Total != 1 || len(back.Numbers) != 40 {
		t.Errorf("read back: %v, %+v, %d numbers", back.Outcomes, back.Verdict, len(back.Numbers))
	}
	if diff := cmp.Diff(len(back.Series.At), len(back.Series.PerSecond["sold_out"])); diff != "" {
		t.Errorf("the lists of the series differ in length: %s", diff)
	}
}
