package api_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/test/stage"
)

func TestAClaimMakesACouponThatARepeatFinds(t *testing.T) {
	s := open(t)
	s.create(`{"id":"autumn","name":"Autumn","quantity":2,"coupon":{"benefit":{"percent": 20},"valid_for":"1h"}}`)
	issued := s.claim("autumn", "user-1").want(t, 201, "issued")
	again := s.claim("autumn", "user-1").want(t, 200, "already_issued")
	read := s.call("GET", "/v1/campaigns/autumn/claims/user-1", "").want(t, 200, "already_issued")
	for _, other := range []reply{again, read} {
		if before, after := fmt.Sprint(issued.json("coupon")), fmt.Sprint(other.json("coupon")); before != after {
			t.Errorf("the coupon was %s and is %s", before, after)
		}
	}
	if issued.number("coupon", "number") != 1 || issued.number("coupon", "benefit", "percent") != 20 || issued.json("coupon", "recorded") != true {
		t.Errorf("the coupon is %s", issued.body)
	}
	life := instant(t, issued.text("coupon", "expires_at")).Sub(instant(t, issued.text("coupon", "issued_at")))
	if life != time.Hour {
		t.Errorf("the coupon is good for %v", life)
	}
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	stage.Must(t, err)
	return at
}

// TestARefusalSaysSinceWhenItIsSo checks the instants in answers. The vectors of gates check which instants they are.
func TestARefusalSaysSinceWhenItIsSo(t *testing.T) {
	s := open(t)
	from := time.Date(2026, 12, 24, 10, 0, 0, 1000, time.UTC)
	says := func(r reply, fields string) {
		t.Helper()
		for _, field := range strings.Fields(fields) {
			if !strings.Contains(string(r.body), `"`+strings.Replace(field, "=", `":`, 1)) {
				t.Errorf("%s should be told: %s", field, r.body)
			}
		}
	}
	campaign := func() reply { return s.call("GET", "/v1/campaigns/c", "") }
	s.clock.Store(from.UnixNano())
	s.create(`{"id":"c","name":"n","quantity":2}`)
	says(campaign(), `opened_at=null sold_out_at=null closed_at=null`)
	s.claim("c", "a").want(t, 201, "issued")
	s.clock.Add(int64(time.Second))
	s.claim("c", "b").want(t, 201, "issued")
	s.clock.Add(int64(time.Second))
	for range 3 { // the last answer is from the node's memory
		says(s.claim("c", "late").want(t, 410, "sold_out"), `opened_at="2026-12-24T10:00:00.000001Z" sold_out_at="2026-12-24T10:00:01.000001Z"`)
	}
	says(campaign(), `opened_at="2026-12-24T10:00:00.000001Z" sold_out_at="2026-12-24T10:00:01.000001Z" closed_at=null`)
	s.call("PATCH", "/v1/campaigns/c", `{"closes_at":"2026-12-25T00:00:00Z"}`).want(t, 200, "")
	s.call("POST", "/v1/campaigns/c/close", "").want(t, 200, "")
	says(campaign(), `closed_at="2026-12-24T10:00:02.000001Z"`)
	says(s.claim("c", "late").want(t, 410, "closed"), `closed_at="2026-12-24T10:00:02.000001Z" closes_at="2026-12-25T00:00:00.000000Z"`)
}

func TestEveryRefusalSaysWhy(t *testing.T) {
	s := open(t)
	s.create(`{"id":"gone","name":"n","quantity":0}`)
	s.claim("gone", "u").want(t, 410, "sold_out")

	s.create(`{"id":"later","name":"n","quantity":1,"opens_at":"2999-01-01T00:00:00Z"}`)
	early := s.claim("later", "u").want(t, 403, "not_open")
	if early.text("opens_at") != "2999-01-01T00:00:00.000000Z" || early.header.Get("Retry-After") != "" {
		t.Errorf("it answers %v %s", early.header, early.body)
	}

	s.create(`{"id":"over","name":"n","quantity":1,"closes_at":"1999-01-01T00:00:00Z"}`)
	late := s.claim("over", "u").want(t, 410, "closed")
	if late.text("closes_at") != "1999-01-01T00:00:00.000000Z" || late.text("closed_at") != late.text("closes_at") {
		t.Errorf("it answers %s", late.body)
	}

	s.create(`{"id":"held","name":"n","quantity":1}`)
	s.call("POST", "/v1/campaigns/held/pause", "").want(t, 200, "")
	paused := s.claim("held", "u").want(t, 403, "paused")
	if paused.header.Get("Retry-After") == "" {
		t.Error("a pause does not say when to ask again")
	}
	s.claim("unknown", "u").want(t, 404, "")
	s.claim("No-Such-ID", "u").want(t, 404, "")
}

func TestF24ACrowdBeforeTheOpeningIsToldWhenToComeAndNobodyIsEarly(t *testing.T) {
	s := open(t)
	opens := time.Date(2026, 12, 24, 10, 0, 0, 0, time.UTC)
	s.clock.Store(opens.Add(-90 * time.Second).UnixNano())
	s.create(`{"id":"rush","name":"n","quantity":10,"opens_at":"2026-12-24T19:00:00+09:00"}`)
	waits := map[int]bool{}
	for n := range 200 {
		r := s.claim("rush", "u"+strconv.Itoa(n)).want(t, 403, "not_open")
		wait, err := strconv.Atoi(r.header.Get("Retry-After"))
		if err != nil || wait < 90 || wait > 93 {
			t.Fatalf("Retry-After is %q, 90 s before the opening", r.header.Get("Retry-After"))
		}
		waits[wait] = true
	}
	if len(waits) < 2 {
		t.Errorf("the crowd is told to come back at once: %v", waits)
	}
	s.clock.Store(opens.Add(-time.Nanosecond).UnixNano())
	s.claim("rush", "early").want(t, 403, "not_open")
	s.clock.Store(opens.UnixNano())
	stage.Await(t, "the end of the refusal's lease", 201, func() int { return s.claim("rush", "first").status })
	s.claim("rush", "second").want(t, 201, "issued")
}

// differentUsers are 16 users, of whom some look alike.
var differentUsers = []string{
	"User1", "user1", "user1 ", " user1", "é", "e\u0301", "😀", "0042", "42", "-7",
	"שלום", "/", "a/b", "a%2Fb", "{x}", "a:b", strings.Repeat("x", 128),
}

func TestF28UserIDsAreByteExact(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":100}`)
	for n, user := range differentUsers {
		r := s.claim("c", user).want(t, 201, "issued")
		if r.number("coupon", "number") != int64(n+1) || r.text("coupon", "user_id") != user {
			t.Errorf("%q got %s", user, r.body)
		}
	}
	for n, user := range differentUsers {
		r := s.call("GET", "/v1/campaigns/c/claims/"+escapeAll(user), "").want(t, 200, "already_issued")
		if r.number("coupon", "number") != int64(n+1) || r.text("coupon", "user_id") != user {
			t.Errorf("%q reads %s", user, r.body)
		}
		if w := s.call("GET", "/v1/users/"+escapeAll(user)+"/coupons", "").want(t, 200, "").items(); len(w) != 1 || w[0]["number"] != float64(n+1) {
			t.Errorf("the wallet of %q is %v", user, w)
		}
	}
	for _, path := range []string{"/v1/campaigns/%2F/claims/x", "/v1/campaigns/c/claims/%2F/x", "/v1/campaigns/%2F", "/v1/campaigns/c/%2f"} {
		s.call("GET", path, "").want(t, 404, "")
	}
	s.call("GET", "/v1/campaigns/c/claims/-", "").want(t, 404, "")
	s.call("POST", "/v1/campaigns/c/claims", `{"user_id":42}`).want(t, 200, "already_issued")
	s.call("POST", "/v1/campaigns/c/claims", `{"user_id":-7}`).want(t, 200, "already_issued")
	s.call("POST", "/v1/campaigns/c/claims", `{"user_id":"\ud83d\ude00"}`).want(t, 200, "already_issued")
	digits := strings.Repeat("9", 128)
	r := s.call("POST", "/v1/campaigns/c/claims", `{"user_id":`+digits+`}`).want(t, 201, "issued")
	if r.text("coupon", "user_id") != digits {
		t.Errorf("128 digits became %s", r.body)
	}
}

// escapeAll percent-encodes every byte.
func escapeAll(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func TestF28UserIDsThatAreNoneAre400(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":100}`)
	for _, id := range []string{
		`""`, `"` + strings.Repeat("x", 129) + `"`, `"a\u0000b"`, `"a\r\nb"`, `"\ud800"`, `"\udc00\ud800"`, `"a\ud800b"`, `"."`, `".."`,
		"\"\xff\"", "\"\xc0\xaf\"", `1.0`, `1e3`, `-0`, `01`, `true`, `null`, `["a"]`, `{}`, strings.Repeat("9", 129), `"\u0085"`, `"\x41"`,
	} {
		s.call("POST", "/v1/campaigns/c/claims", `{"user_id":`+id+`}`).want(t, 400, "")
	}
	for _, path := range []string{"%2e", "%2E%2e", ".", "..", "%00", "%0d%0a", "%ff", strings.Repeat("x", 129)} {
		s.call("GET", "/v1/campaigns/c/claims/"+path, "").want(t, 400, "")
		s.call("GET", "/v1/users/"+path+"/coupons", "").want(t, 400, "")
	}
	if issued := s.call("GET", "/v1/campaigns/c", "").number("issued"); issued != 0 {
		t.Errorf("%d coupons were issued", issued)
	}
}

func TestF15NothingInACampaignsOrAUsersNameReachesAnotherPlace(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":100}`)
	for _, id := range []string{"{c}", "c:d", "C", "c%00", "-c", "c%0d%0a", "%C3%A9", "c%2F..%2Fc", strings.Repeat("c", 64), "c'%20OR%20'1'='1"} {
		s.call("POST", "/v1/campaigns/"+id+"/claims", `{"user_id":"u"}`).want(t, 404, "")
	}
	for _, user := range []string{"{c}", "c:d", "u' OR '1'='1", `u"}`, "%s", "../c", "<b>", "=cmd|' /C calc'!A0"} {
		r := s.claim("c", user).want(t, 201, "issued")
		if r.text("coupon", "user_id") != user {
			t.Errorf("%q became %q", user, r.text("coupon", "user_id"))
		}
	}
	for _, id := range []string{`""`, `"{c}"`, `"C"`, `"a b"`, `"a\u0000"`, `"-a"`, `"` + strings.Repeat("c", 64) + `"`} {
		s.call("POST", "/v1/campaigns", `{"id":`+id+`,"name":"n","quantity":1}`).want(t, 422, "")
	}
}

func TestAClaimWhoseDecisionIsUnknownIs503AndSaysToAskAgain(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":100}`)
	s.ledger.stop()
	r := s.claim("c", "u").want(t, 503, "")
	if !strings.Contains(r.text("detail"), "Ask again: it is safe") || r.header.Get("Retry-After") == "" {
		t.Errorf("it answers %v %s", r.header, r.body)
	}
	if state := s.call("GET", "/readyz", ""); state.status != 200 {
		t.Errorf("a ledger that is down makes the node unready: %d", state.status)
	}
}

func TestDirectIssueAnswersInTheOrderGiven(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":3}`)
	s.claim("c", "b").want(t, 201, "issued")
	r := s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["a","b",3,"d","a"]}`).want(t, 200, "")
	if got := r.each("outcome"); got != "issued already_issued issued sold_out already_issued" {
		t.Errorf("the answers are %s", got)
	}
	many := `{"user_ids":["` + strings.Repeat(`u","`, 1000) + `u"]}`
	s.call("POST", "/v1/campaigns/c/coupons", many).want(t, 422, "")
	s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":[]}`).want(t, 422, "")
	s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":"a"}`).want(t, 400, "")
	s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["a",1.5]}`).want(t, 400, "")
	s.call("POST", "/v1/campaigns/c/coupons", `{}`).want(t, 422, "")
}
