package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/client"
)

func TestACampaignIsReadAsItWasMade(t *testing.T) {
	s := open(t)
	made := s.create(`{"id":"winter","name":"겨울","quantity":5,"opens_at":"2026-12-24T19:00:00.5+09:00","closes_at":"2999-01-01T00:00:00Z",
		"answer":"decided","coupon":{"benefit":{"html":"<b>&</b>","n":12345678901234567890.10},"valid_until":"3000-01-01T00:00:00.000001Z"}}`)
	if made.header.Get("Location") != "/v1/campaigns/winter" || made.header.Get("ETag") != `"1"` {
		t.Errorf("the headers are %v", made.header)
	}
	read := s.call("GET", "/v1/campaigns/winter", "").want(t, 200, "")
	for key, want := range map[string]string{
		"name": "겨울", "opens_at": "2026-12-24T10:00:00.500000Z", "closes_at": "2999-01-01T00:00:00.000000Z", "answer": "decided",
	} {
		if read.text(key) != want {
			t.Errorf("%s is %q, want %q", key, read.text(key), want)
		}
	}
	if read.text("coupon", "valid_until") != "3000-01-01T00:00:00.000001Z" || read.text("coupon", "benefit", "html") != "<b>&</b>" {
		t.Errorf("the coupon is %v", read.json("coupon"))
	}
	if !strings.Contains(string(read.body), "12345678901234567890.10") {
		t.Errorf("a number of the benefit has changed: %s", read.body)
	}
}

func TestACampaignWithoutAnIDGetsOneOfItsOwn(t *testing.T) {
	s := open(t)
	first, second := s.create(`{"name":"a","quantity":1}`).text("id"), s.create(`{"name":"a","quantity":1}`).text("id")
	if first == "" || first >= second {
		t.Errorf("the ids are %q and then %q", first, second)
	}
	s.call("POST", "/v1/campaigns", `{"id":"`+first+`","name":"a","quantity":1}`).want(t, 409, "")
}

func TestTermsThatMayNotStandAre422AndNameTheField(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":5}`)
	for _, row := range []struct {
		change string
		status int
		field  string
	}{
		{`"name":""`, 422, "name"},
		{`"name":"` + strings.Repeat("n", 201) + `"`, 422, "name"},
		{`"name":1`, 400, "name"},
		{`"name":null`, 400, "name"},
		{`"quantity":-1`, 422, "quantity"},
		{`"quantity":1000000000001`, 422, "quantity"},
		{`"quantity":99999999999999999999`, 422, "quantity"},
		{`"quantity":1.5`, 400, "quantity"},
		{`"quantity":1e3`, 400, "quantity"},
		{`"quantity":"1"`, 400, "quantity"},
		{`"opens_at":"2026-12-24T10:00:00"`, 422, "opens_at"},
		{`"opens_at":"2026-12-24T10:00:00.0000001Z"`, 422, "opens_at"},
		{`"opens_at":"tomorrow"`, 422, "opens_at"},
		{`"opens_at":"0001-01-01T00:00:00Z"`, 422, "opens_at"},
		{`"opens_at":5`, 400, "opens_at"},
		{`"opens_at":"2026-12-24T10:00:00Z","closes_at":"2026-12-24T10:00:00Z"`, 422, "closes_at"},
		{`"closes_at":"9999-12-31T23:59:59-12:00"`, 422, "closes_at"},
		{`"answer":"never"`, 422, "answer"},
		{`"coupon":null`, 400, "coupon"},
		{`"coupon":{"valid_for":"-1h"}`, 422, "coupon.valid_for"},
		{`"coupon":{"valid_for":"1ns"}`, 422, "coupon.valid_for"},
		{`"coupon":{"valid_for":3600}`, 400, "coupon.valid_for"},
		{`"coupon":{"valid_for":"1h","valid_until":"2999-01-01T00:00:00Z"}`, 422, "coupon.valid_for"},
		{`"coupon":{"valid_until":"1970-01-02T00:00:00Z"}`, 422, "coupon.valid_until"},
		{`"opens_at":"2999-01-01T00:00:00Z","coupon":{"valid_until":"2999-01-01T00:00:00Z"}`, 422, "coupon.valid_until"},
		{`"coupon":{"worth":1}`, 422, "coupon.worth"},
		{`"coupon":{"benefit":"` + strings.Repeat("b", 17000) + `"}`, 422, "coupon.benefit"},
		{`"colour":"red"`, 422, "colour"},
	} {
		base := `{"name":"n","quantity":1,`
		for _, field := range []string{"name", "quantity"} {
			if strings.HasPrefix(row.change, `"`+field) {
				base = strings.Replace(strings.Replace(base, `"`+field+`":"n",`, "", 1), `"`+field+`":1,`, "", 1)
			}
		}
		for _, r := range []reply{
			s.call("POST", "/v1/campaigns", base+row.change+`}`),
			s.call("PATCH", "/v1/campaigns/c", `{`+row.change+`}`),
		} {
			if r.status != row.status || !strings.Contains(string(r.body), `"field":"`+row.field+`"`) {
				t.Errorf("%.80s answers %d %s", row.change, r.status, r.body)
			}
		}
	}
	s.call("POST", "/v1/campaigns", `{"name":"n"}`).want(t, 422, "")
	s.call("POST", "/v1/campaigns", ``).want(t, 422, "")
	if version := s.call("GET", "/v1/campaigns/c", "").number("version"); version != 1 {
		t.Errorf("the campaign has changed: version %d", version)
	}
}

func TestAChangeMergesAndNullClears(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":5,"opens_at":"2020-01-01T00:00:00Z","coupon":{"benefit":1,"valid_for":"1h"}}`)
	first := s.claim("c", "before").want(t, 201, "issued")
	r := s.call("PATCH", "/v1/campaigns/c", `{"coupon":{"benefit":2}}`).want(t, 200, "")
	if r.text("coupon", "valid_for") != "1h0m0s" || r.number("coupon", "benefit") != 2 || r.number("version") != 2 {
		t.Errorf("it is %s", r.body)
	}
	r = s.call("PATCH", "/v1/campaigns/c", `{"opens_at":null,"quantity":null,"coupon":{"valid_for":null,"benefit":null}}`).want(t, 200, "")
	if r.json("opens_at") != nil || r.json("quantity") != nil || r.json("coupon", "valid_for") != nil || r.json("coupon", "benefit") != nil {
		t.Errorf("it is %s", r.body)
	}
	after := s.claim("c", "after").want(t, 201, "issued")
	if after.json("coupon", "expires_at") != nil || after.json("coupon", "benefit") != nil {
		t.Errorf("the new coupon is %s", after.body)
	}
	again := s.claim("c", "before").want(t, 200, "already_issued")
	if fmt.Sprint(again.json("coupon")) != fmt.Sprint(first.json("coupon")) {
		t.Errorf("the coupon was %s and is %s", first.body, again.body)
	}
}

func TestF63AStaleTabIs412AndADoubleClickIsOnce(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":5}`)
	s.call("PATCH", "/v1/campaigns/c", `{"name":"m"}`, "If-Match", `"1"`).want(t, 200, "")
	s.call("PATCH", "/v1/campaigns/c", `{"name":"o"}`, "If-Match", `"1"`).want(t, 412, "")
	s.call("PATCH", "/v1/campaigns/c", `{"name":"o"}`, "If-Match", `*`).want(t, 200, "")
	for _, bad := range []string{`3`, `"x"`, `"abc"`, `"03"`, "`3`", `"0"`, `"3,4"`, `"3", *`, `"3", x`, `W/3`, `w/"3"`, `"-gzip"`, `"3`, `"3",`} {
		s.call("PATCH", "/v1/campaigns/c", `{"name":"p"}`, "If-Match", bad).want(t, 400, "")
	}
	for n, fits := range []string{`W/"3"`, `"4-gzip"`, `W/"5-br"`, `"1", "6"`, `W/"7--gzip",W/"2"`} { // as proxies pass it on that compress answers
		s.call("PATCH", "/v1/campaigns/c", fmt.Sprintf(`{"name":"p%d"}`, n), "If-Match", fits).want(t, 200, "")
	}
	for _, stale := range []string{`W/"3"`, `"7-gzip"`, `"9", "1", W/"7"`, `"9223372036854775807"`} {
		s.call("PATCH", "/v1/campaigns/c", `{"name":"q"}`, "If-Match", stale).want(t, 412, "")
	}
	s.call("PATCH", "/v1/campaigns/none", `{"name":"q"}`, "If-Match", `"1", "2"`).want(t, 404, "")
	paused := s.call("POST", "/v1/campaigns/c/pause", "").want(t, 200, "")
	again := s.call("POST", "/v1/campaigns/c/pause", "").want(t, 200, "")
	if paused.number("version") != again.number("version") {
		t.Errorf("two clicks made version %d of %d", again.number("version"), paused.number("version"))
	}
}

func TestF63AnotherSitesPageMayChangeNothing(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":5}`)
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		s.call("POST", "/v1/campaigns/c/close", "", header...).want(t, 403, "")
		r := s.call("GET", "/v1/campaigns/c", "", header...)
		if r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Error("another site's page may read the answer")
		}
	}
	if state := s.call("GET", "/v1/campaigns/c", "").text("state"); state != "open" {
		t.Errorf("the campaign is %s", state)
	}
}

func TestDevelopmentModeAnswersToNoOtherName(t *testing.T) {
	s := open(t)
	for host, status := range map[string]string{"evil.example": " 403 ", "localhost:8080": " 404 ", "[::1]:80": " 404 "} {
		c := s.dial("GET /v1/campaigns/c HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
		answer, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(answer), status) {
			t.Errorf("%s: %v %.80s", host, err, answer)
		}
	}
}

func TestTheStateIsWhatANewcomerWouldGet(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":1,"opens_at":"2999-01-01T00:00:00Z"}`)
	state := func(want string) {
		t.Helper()
		if got := s.call("GET", "/v1/campaigns/c", "").text("state"); got != want {
			t.Errorf("the state is %s, want %s", got, want)
		}
	}
	state("not_open")
	s.call("PATCH", "/v1/campaigns/c", `{"opens_at":null}`)
	state("open")
	s.call("POST", "/v1/campaigns/c/pause", "{}").want(t, 200, "")
	state("paused")
	s.call("POST", "/v1/campaigns/c/resume", "").want(t, 200, "")
	s.claim("c", "u")
	state("sold_out")
	s.call("POST", "/v1/campaigns/c/close", "").want(t, 200, "")
	state("closed")
	s.call("POST", "/v1/campaigns/c/resume", "").want(t, 409, "")
	s.call("PATCH", "/v1/campaigns/c", `{"quantity":9}`).want(t, 409, "")
	s.call("POST", "/v1/campaigns/none/close", "").want(t, 404, "")
}

func TestCampaignsAreListedInPages(t *testing.T) {
	s := open(t)
	for n := range 5 {
		s.create(`{"id":"c` + strconv.Itoa(n) + `","name":"n","quantity":1}`)
	}
	if ids := s.pages("/v1/campaigns?limit=2&after=", "id"); ids != "c0 c1 c2 c3 c4" {
		t.Errorf("the pages have %s", ids)
	}
	for _, query := range []string{"limit=0", "limit=501", "limit=x", "after=%00", "after=%ff"} {
		s.call("GET", "/v1/campaigns?"+query, "").want(t, 422, "")
	}
}

// TestACampaignWhoseTermsCannotBeReadHidesNoOther corrupts the terms of one campaign in the ledger, and deletes the terms of
// another.
func TestACampaignWhoseTermsCannotBeReadHidesNoOther(t *testing.T) {
	s := open(t)
	for _, id := range []string{"gone", "good", "spoiled"} {
		s.create(`{"id":"` + id + `","name":"n","quantity":3}`)
	}
	s.behind(`UPDATE changes SET payload = 'no JSON' WHERE campaign_id = 'spoiled'`)
	s.behind(`UPDATE campaigns SET terms_version = 7 WHERE id = 'gone'`)
	r := s.call("GET", "/v1/campaigns", "").want(t, 200, "")
	var list client.List[client.Campaign]
	if err := json.Unmarshal(r.body, &list); err != nil || len(list.Items) != 3 {
		t.Fatalf("%d campaigns, %v: %s", len(list.Items), err, r.body)
	}
	for n, want := range []client.Campaign{{ID: "gone", Terms: client.Terms{Name: "gone"}, State: "unknown"}, {ID: "good", Terms: client.Terms{Name: "n"}, State: "open"}, {ID: "spoiled", Terms: client.Terms{Name: "spoiled"}, State: "unknown"}} {
		if got := list.Items[n]; got.ID != want.ID || got.Name != want.Name || got.State != want.State || *got.Quantity != 3 {
			t.Errorf("%+v is listed as %+v", want, got)
		}
	}
	s.call("GET", "/v1/campaigns/spoiled", "").want(t, 503, "")
	s.call("GET", "/v1/campaigns/gone", "").want(t, 503, "")
}
