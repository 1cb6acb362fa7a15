package load_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/load"
)

const issued = `{"outcome":"issued","coupon":{"campaign_id":"c","number":42,"user_id":"a\"number\":7","code":"0123456789ABCDEF",` +
	`"state":"in_force","rank":40,"prize":{"id":"drink","name":"A drink"},"benefit":{"number":1,"code":"x","coupon":{"recorded":false}},"issued_at":"2026-12-24T10:00:00.000000Z","expires_at":null,"recorded":true}}`

func TestAnswersAreReadAsTheyStand(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   load.Answer
	}{
		"issued": {201, issued, load.Answer{Outcome: firstcome.Issued, Number: 42, Code: "0123456789ABCDEF", Recorded: true, Rank: 40, Prize: "drink", IssuedAt: 1798106400000000}},
		"in another order, with spaces": {
			200, ` { "coupon" : { "recorded" : false , "benefit" : [ { "number" : 3 } , "number" , 4 ] , "code" : "C" , "number" : 9 } , "outcome" : "already_issued" } ` + "\n",
			load.Answer{Outcome: firstcome.AlreadyIssued, Number: 9, Code: "C"},
		},
		"a refusal":                    {410, `{"title":"sold out","status":410,"outcome":"sold_out"}`, load.Answer{Outcome: firstcome.SoldOut}},
		"closed":                       {410, `{"outcome":"closed"}`, load.Answer{Outcome: firstcome.Closed}},
		"not open":                     {403, `{"outcome":"not_open","opens_at":"2026-12-24T10:00:00Z"}`, load.Answer{Outcome: firstcome.NotOpen}},
		"paused":                       {403, `{"outcome":"paused"}`, load.Answer{Outcome: firstcome.Paused}},
		"a 5xx carries no outcome":     {503, `{"outcome":"sold_out"}`, load.Answer{Trouble: "HTTP 503"}},
		"a cause of a 503":             {503, `{"status":503,"code":"gate_unavailable"}`, load.Answer{Trouble: "HTTP 503 gate_unavailable"}},
		"a code that is none":          {503, `{"code":"<script>"}`, load.Answer{Trouble: "HTTP 503"}},
		"an outcome of another status": {200, `{"outcome":"sold_out"}`, load.Answer{Trouble: "HTTP 200"}},
		"a role":                       {403, `{"title":"not your role","status":403}`, load.Answer{Trouble: "HTTP 403"}},
		"an outcome deeper down":       {410, `{"detail":{"outcome":"sold_out"}}`, load.Answer{Trouble: "HTTP 410"}},
		"no coupon":                    {201, `{"outcome":"issued","coupon":null}`, load.Answer{Trouble: "an answer without its coupon"}},
		"no number":                    {201, `{"outcome":"issued","coupon":{"code":"C","number":0}}`, load.Answer{Trouble: "an answer without its coupon"}},
		"cut short":                    {201, issued[:len(issued)-1], load.Answer{Trouble: "HTTP 201 without JSON"}},
		"trailing text":                {410, `{"outcome":"sold_out"}x`, load.Answer{Trouble: "HTTP 410 without JSON"}},
		"empty":                        {201, "", load.Answer{Trouble: "HTTP 201 without JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, load.ParseAnswer(test.status, []byte(test.body))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReadingARefusalTakesNoMemory matters because a load has as many refusals as the server can send. The pool of parsers may lose a parser at any
// time (under the race detector it does so at random), so one run without an allocation is enough.
func TestReadingARefusalTakesNoMemory(t *testing.T) {
	body := []byte(`{"outcome":"sold_out"}`)
	for range 100 {
		if testing.AllocsPerRun(1, func() { load.ParseAnswer(410, body) }) == 0 {
			return
		}
	}
	t.Error("each of 100 tries takes memory")
}
