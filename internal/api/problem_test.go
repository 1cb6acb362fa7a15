package api_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/test/stage"
)

// TestEveryCodeIsInTheDocsAndInTheContract compares the three lists of codes and their statuses.
func TestEveryCodeIsInTheDocsAndInTheContract(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	stage.Must(t, err)
	spec, err := readContract()
	stage.Must(t, err)
	inDocs := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([0-9]{3}) \\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		status, _ := strconv.Atoi(row[1])
		inDocs[row[2]] = status
	}
	served := maps.Clone(api.Statuses)
	if diff := cmp.Diff(served, inDocs); diff != "" {
		t.Errorf("docs/api.md (+) lists other codes:\n%s", diff)
	}
	for _, value := range spec.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		if _, ok := served[fmt.Sprint(value)]; !ok {
			t.Errorf("openapi.yaml has the code %v, which is none", value)
		}
		delete(served, fmt.Sprint(value))
	}
	if len(served) > 0 {
		t.Errorf("openapi.yaml lacks %v", served)
	}
}

// TestEveryProblemHasTheCodeThatItIs provokes the problems that a caller can cause alone.
func TestEveryProblemHasTheCodeThatItIs(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":1}`)
	s.create(`{"id":"paused","name":"n","quantity":1}`)
	s.create(`{"id":"early","name":"n","quantity":1,"opens_at":"2999-01-01T00:00:00Z"}`)
	s.create(`{"id":"over","name":"n","quantity":1,"closes_at":"2001-01-01T00:00:00Z"}`)
	s.create(`{"id":"closed","name":"n","quantity":1}`)
	s.call("POST", "/v1/campaigns/paused/pause", "").want(t, 200, "")
	s.call("POST", "/v1/campaigns/closed/close", "").want(t, 200, "")
	s.claim("c", "u").want(t, 201, "issued")
	for _, c := range []struct {
		method, path, body string
		header             []string
		code               string
	}{
		{"GET", "/v1//campaigns", "", nil, "malformed_request"},
		{"GET", "/v1/campaigns?%zz", "", nil, "malformed_request"},
		{"GET", "/v1/users/%00/coupons", "", nil, "malformed_request"},
		{"PATCH", "/v1/campaigns/c", "{}", []string{"If-Match", "x"}, "malformed_request"},
		{"POST", "/v1/campaigns", "{", nil, "malformed_body"},
		{"POST", "/v1/campaigns", "[]", nil, "malformed_body"},
		{"POST", "/v1/campaigns", `{"name":1}`, nil, "malformed_field"},
		{"POST", "/v1/campaigns/c/claims", `{"user_id":""}`, nil, "malformed_field"},
		{"POST", "/v1/campaigns/c/pause", "", []string{"Sec-Fetch-Site", "cross-site"}, "cross_site"},
		{"GET", "/v1/nowhere", "", nil, "not_found"},
		{"GET", "/v1/campaigns/none", "", nil, "not_found"},
		{"DELETE", "/v1/campaigns/c", "", nil, "method_not_allowed"},
		{"POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":1}`, nil, "campaign_exists"},
		{"PATCH", "/v1/campaigns/c", `{"quantity":0}`, nil, "below_in_force"},
		{"PATCH", "/v1/campaigns/closed", `{"quantity":5}`, nil, "campaign_closed"},
		{"PATCH", "/v1/campaigns/c", `{"quantity":5}`, []string{"If-Match", `"9"`}, "stale_version"},
		{"POST", "/v1/campaigns/c/claims", `{"user_id":"` + strings.Repeat("u", 70_000) + `"}`, nil, "body_too_large"},
		{"POST", "/v1/campaigns/c/claims", `{}`, []string{"Content-Type", "text/plain"}, "unsupported_media_type"},
		{"POST", "/v1/campaigns/c/claims", `{}`, nil, "not_allowed"},
		{"GET", "/v1/campaigns?limit=0", "", nil, "not_allowed"},
		{"POST", "/v1/campaigns/c/claims", `{"user_id":"v"}`, nil, "sold_out"},
		{"POST", "/v1/campaigns/paused/claims", `{"user_id":"v"}`, nil, "paused"},
		{"POST", "/v1/campaigns/early/claims", `{"user_id":"v"}`, nil, "not_open"},
		{"POST", "/v1/campaigns/over/claims", `{"user_id":"v"}`, nil, "closed"},
	} {
		r := s.call(c.method, c.path, c.body, c.header...)
		if r.text("code") != c.code || r.status != api.Statuses[c.code] {
			t.Errorf("%s %s answers %d %.300s, want the code %s", c.method, c.path, r.status, r.body, c.code)
		}
	}
}

// places returns where a request has mistakes: a field, or the offset in a body.
func (r reply) places() (at []string) {
	wrong, _ := r.json("errors").([]any)
	for _, w := range wrong {
		field, _ := w.(map[string]any)["field"].(string)
		if offset, ok := w.(map[string]any)["offset"].(float64); ok {
			field += "@" + strconv.Itoa(int(offset))
		}
		at = append(at, field)
	}
	return at
}

func TestEveryMistakeOfABodyIsToldAtOnceWithItsPlace(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9}`)
	for _, c := range []struct {
		method, path, body string
		status             int
		at                 string
	}{
		{"POST", "/v1/campaigns", `{}`, 422, "name quantity"},
		{"POST", "/v1/campaigns", `{"id":"C","name":"","quantity":-1,"closes_at":"soon","answer":"never","b":1,"a":1,"coupon":{"valid_for":"-1s","x":1}}`, 422, "a b id closes_at coupon.x coupon.valid_for name quantity answer"},
		{"POST", "/v1/campaigns", `{"id":1,"name":2,"quantity":"3","opens_at":4,"coupon":[]}`, 400, "id name quantity opens_at coupon"},
		{"POST", "/v1/campaigns", `{"name":2,"x":1}`, 400, "x quantity name"},
		{"POST", "/v1/campaigns", `{"name":"n","quantity":1,"opens_at":"2026-01-02T00:00:00Z","closes_at":"2026-01-01T00:00:00Z","coupon":{"valid_for":"1h","valid_until":"2026-01-01T00:00:00Z"}}`, 422, "closes_at coupon.valid_until coupon.valid_for"},
		{"PATCH", "/v1/campaigns/c", `{"name":"","closes_at":"2026-01-01","x":1}`, 422, "x closes_at name"},
		{"POST", "/v1/campaigns/c/pause", `{"b":1,"a":2}`, 422, "a b"},
		{"POST", "/v1/campaigns/c/claims", `{"user_id":"","x":1}`, 400, "x user_id"},
		{"POST", "/v1/campaigns/c/claims", `{"x":1}`, 422, "x user_id"},
		{"POST", "/v1/campaigns/c/coupons", `{"user_ids":["a",1.5,"b","","c",null,"` + strings.Repeat("u", 129) + `"],"x":1}`, 400, "x user_ids[1] user_ids[3] user_ids[5] user_ids[6]"},
		{"POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"","x":1}`, 422, "x reason"},
		{"POST", "/v1/campaigns/c/coupons/1/void", `{"reason":1,"x":1}`, 400, "x reason"},

		{"POST", "/v1/campaigns", `{"name":n}`, 400, "@10"},
		{"POST", "/v1/campaigns", `{"name":"n"`, 400, "@11"},
		{"POST", "/v1/campaigns", `{"name":"n"} x`, 400, "@14"},
		{"POST", "/v1/campaigns", "{\"name\":\"a\xff\"}", 400, "@11"},
		{"POST", "/v1/campaigns", `{"name":"\ud800"}`, 400, "@10"},
		{"POST", "/v1/campaigns", `{"a":1,"a":2}`, 400, "@8"},
		{"POST", "/v1/campaigns", strings.Repeat("[", 40) + strings.Repeat("]", 40), 400, "@33"},
	} {
		r := s.call(c.method, c.path, c.body)
		if got := strings.Join(r.places(), " "); r.status != c.status || got != c.at {
			t.Errorf("%s %s %.120s answers %d with mistakes at %s, want %d %s: %s", c.method, c.path, c.body, r.status, got, c.status, c.at, r.body)
		}
	}
	for _, nothing := range []string{"", " \r\n"} {
		if r := s.call("POST", "/v1/campaigns/c/claims", nothing).want(t, 400, ""); !strings.Contains(string(r.body), "it is empty") {
			t.Errorf("%q: %s", nothing, r.body)
		}
	}
	if c := s.call("GET", "/v1/campaigns/c", ""); c.number("version") != 1 || c.number("issued") != 0 {
		t.Errorf("something was done: %s", c.body)
	}
}

func TestMoreMistakesThanAnAnswerHoldsAreCounted(t *testing.T) {
	s := open(t)
	fields := make([]string, 1500)
	for n := range fields {
		fields[n] = fmt.Sprintf(`"x%d":1`, n)
	}
	r := s.call("POST", "/v1/campaigns", "{"+strings.Join(fields, ",")+"}").want(t, 422, "")
	if at := r.places(); len(at) != 1001 || !strings.Contains(string(r.body), "and 502 more mistakes") {
		t.Errorf("%d mistakes are told, the last as %s", len(at), r.body[len(r.body)-100:])
	}
}

func TestTheClientHasTheCodeAndEveryMistake(t *testing.T) {
	s := open(t, guarded)
	ctx := context.Background()
	c := client.New(s.url, strings.TrimPrefix(s.key(firstcome.Admin)[1], "Bearer "))
	t.Cleanup(c.CloseIdle)
	negative := int64(-1)
	_, err := c.CreateCampaign(ctx, client.NewCampaign{ID: "C", Name: "", Quantity: &negative})
	var p *client.Problem
	if !errors.As(err, &p) || p.Code != "not_allowed" || len(p.Errors) != 3 || p.Errors[0].Field != "id" || !strings.Contains(err.Error(), "; quantity: must be") {
		t.Errorf("it is %#v", err)
	}
	bad := make([]string, 1000)
	_, err = c.Issue(ctx, "c", bad, "")
	if !errors.As(err, &p) || p.Code != "malformed_field" || len(p.Errors) != 1000 || p.Errors[17].Field != "user_ids[17]" {
		t.Errorf("of a thousand it is %v", p)
	}
	stranger := client.New(s.url, "nonsense")
	t.Cleanup(stranger.CloseIdle)
	if _, err = stranger.Campaign(ctx, "c"); !errors.As(err, &p) || p.Code != "credentials_invalid" || !strings.Contains(p.Challenge, "invalid_token") {
		t.Errorf("without a good token it is %#v", p)
	}
}

// TestA401SaysWhy checks what an honest caller can correct, and what a dishonest one must not learn: a revoked key and one that never existed look
// alike.
func TestA401SaysWhy(t *testing.T) {
	s := open(t, guarded)
	revoked := s.key(firstcome.Admin)
	stage.Must(t, s.ledger.Deployment.RevokeKey(t.Context(), "test", strings.Split(revoked[1], "_")[1]))
	stage.Must(t, s.auth.Reload(t.Context()))
	past := jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()}
	const bearer, invalid = `Bearer realm="firstcome"`, `Bearer realm="firstcome", error="invalid_token", error_description="`
	unknown := []string{"Authorization", "Bearer fc_" + strings.Repeat("0", 12) + "_" + strings.Repeat("0", 64)}
	for name, c := range map[string]struct {
		header    []string
		code, why string
	}{
		"no credentials":              {nil, "credentials_missing", bearer},
		"another scheme":              {[]string{"Authorization", "Basic YTpi"}, "credentials_missing", bearer},
		"an unknown key":              {unknown, "credentials_invalid", invalid + `the API key is not known, or was revoked"`},
		"a revoked key":               {revoked, "credentials_invalid", invalid + `the API key is not known, or was revoked"`},
		"an expired token":            {signed(t, tokenSecret, past), "token_expired", invalid + `the token has expired"`},
		"an early token":              {signed(t, tokenSecret, jwt.MapClaims{"nbf": time.Now().Add(time.Hour).Unix()}), "credentials_invalid", invalid + `the token is not good yet"`},
		"a stranger's token":          {signed(t, "another secret of 32 bytes and more", nil), "credentials_invalid", invalid + `the token's signature is not good, or its algorithm is not allowed"`},
		"a stranger's, expired":       {signed(t, "another secret of 32 bytes and more", past), "credentials_invalid", invalid + `the token's signature is not good, or its algorithm is not allowed"`},
		"a token without its user":    {signed(t, tokenSecret, jwt.MapClaims{"sub": nil}), "credentials_invalid", invalid + `the token is not one that this server takes: it needs exp, its user, and where configured iss and aud"`},
		"what is neither key nor JWT": {[]string{"Authorization", "Bearer nonsense"}, "credentials_invalid", invalid + `the token is not one that this server takes: it needs exp, its user, and where configured iss and aud"`},
	} {
		r := s.call("GET", "/v1/campaigns", "", c.header...).want(t, 401, "")
		if r.text("code") != c.code || r.header.Get("WWW-Authenticate") != c.why {
			t.Errorf("%s: %s, %s", name, r.body, r.header.Get("WWW-Authenticate"))
		}
	}
	never, was := s.call("GET", "/v1/campaigns", "", unknown...), s.call("GET", "/v1/campaigns", "", revoked...)
	if string(never.body) != string(was.body) {
		t.Errorf("an unknown key gets %s, a revoked one %s", never.body, was.body)
	}
}
