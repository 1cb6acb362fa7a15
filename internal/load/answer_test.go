package load_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/load"
)

const issued = `{"outcome":"issued","coupon":{"campaign_id":"c","number":42,"user_id":"a\"number\":7","code":"0123456789ABCDEF",` +
	`"state":"in_force","benefit":{"number":1,"code":"x","coupon":{"recorded":false}},"issued_at":"2026-12-24T10:00:00.000000Z","expires_at":null,"recorded":true}}`

func TestAnswersAreReadAsTheyStand(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   load.Answer
	}{
		"issued": {201, issued, load.Answer{Outcome: firstcome.Issued, Number: 42, Code: "0123456789ABCDEF", Recorded: true, IssuedAt: 1798106400000000}},
		"in another order, with spaces": {
			200, ` { "coupon" : { "recorded" : false , "benefit" : [ { "number" : 3 } , "number" , 4 ] , "code" : "C" , "number" : 9 } , "outcome" : "already_issued" } ` + "\n",
			load.Answer{Outcome: firstcome.AlreadyIssued, Number: 9, Code: "C"},
		},
		"a refusal":                    {410, `{"title":"sold out","status":410,"outcome":"sold_out"}`, load.Answer{Outcome: firstcome.SoldOut}},
		"closed":                       {410, `{"outcome":"closed"}`, load.Answer{Outcome: firstcome.Closed}},
		"not open":                     {403, `{"outcome":"not_open","opens_at":"2026-12-24T10:00:00Z"}`, load.Answer{Outcome: firstcome.NotOpen}},
		"paused":                       {403, `{"outcome":"paused"}`, load.Answer{Outcome: firstcome.Paused}},
		"a 5xx carries no outcome":     {503, `{"outcome":"sold_out"}`, load.Answer{Trouble: "HTTP 503"}},
		"an outcome of another status": {200, `{"outcome":"sold_out"}`, load.Answer{Trouble: "HTTP 200"}},
		"a role":                       {403, `{"title":"not your role","status":403}`, load.Answer{Trouble: "HTTP 403"}},
		"an outcome deeper down":       {410, `{"detail":{"outcome":"sold_out"}}`, load.Answer{Trouble: "HTTP 410"}},
		"no coupon":                    {201, `{"outcome":"issued","coupon":null}`, load.Answer{Trouble: "an answer without its coupon"}},
		"no number":                    {201, `{"outcome":"issued","coupon":{"code":"C","number":0}}`, load.Answer{Trouble: "an answer without its coupon"}},
		"cut short":                    {201, issued[:len(issued)-1], load.Answer{Trouble: "an answer that is not JSON"}},
		"trailing text":                {410, `{"outcome":"sold_out"}x`, load.Answer{Trouble: "an answer that is not JSON"}},
		"empty":                        {201, "", load.Answer{Trouble: "HTTP 201"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, load.ParseAnswer(test.status, []byte(test.body))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReadingARefusalTakesNoMemory, of which a load has as many as the server can send.
func TestReadingARefusalTakesNoMemory(t *testing.T) {
	body := []byte(`{"outcome":"sold_out"}`)
	if n := testing.AllocsPerRun(100, func() { load.ParseAnswer(410, body) }); n != 0 {
		t.Errorf("it takes memory %v times", n)
	}
}

// FuzzAnswer holds the hand-written reader against encoding/json wherever a body
// is JSON without what only the latter does: keys in other case or with escapes,
// and twice the same key.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		issued, `{"outcome":"sold_out"}`, `{"coupon":{"number":1,"code":"C"},"outcome":"issued"}`, `[{"outcome":"issued"}]`,
		`{"a":["coupon",{"number":5}],"outcome":"issued","coupon":[]}`, `{"outcome":"issued","coupon":"{"}`, `{`, `"`, `}`, `{"a":"\`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got := load.ParseAnswer(201, []byte(body))
		if got.Outcome == 0 && got.Trouble == "" || got.Outcome == firstcome.Issued && (got.Number < 1 || got.Code == "") {
			t.Fatalf("%q: %+v", body, got)
		}
		object, ok := strictObject([]byte(body))
		if !ok {
			return
		}
		var outcome string
		var coupon struct {
			Number   json.Number
			Code     *string
			Recorded bool
		}
		_ = json.Unmarshal(object["outcome"], &outcome)
		inner, ok := strictObject(object["coupon"])
		if !ok {
			if got.Outcome.HasCoupon() {
				t.Fatalf("%q has no coupon: %+v", body, got)
			}
			return
		}
		if outcome != "issued" {
			if got.Outcome != 0 {
				t.Fatalf("%q has the outcome %q: %+v", body, outcome, got)
			}
			return
		}
		if got.Outcome == 0 {
			return // a number or a code of another form
		}
		_ = json.Unmarshal(inner["recorded"], &coupon.Recorded)
		if string(bytes.Trim(inner["number"], `"`)) != json.Number(jsonInt(got.Number)).String() {
			t.Fatalf("%q: number %d", body, got.Number)
		}
		if string(bytes.Trim(inner["code"], `"`)) != got.Code || coupon.Recorded && !got.Recorded {
			t.Fatalf("%q: %+v", body, got)
		}
	})
}

func jsonInt(n int64) string {
	text, _ := json.Marshal(n)
	return string(text)
}

// strictObject returns the members of a JSON object whose keys have neither
// escapes nor repetitions.
func strictObject(text []byte) (map[string]json.RawMessage, bool) {
	if bytes.ContainsRune(text, '\\') || !json.Valid(text) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	members := map[string]json.RawMessage{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, false
		}
		name := key.(string)
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, false
		}
		if _, twice := members[name]; twice {
			return nil, false
		}
		members[name] = value
	}
	return members, true
}
