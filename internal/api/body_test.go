package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF29WhoSendsTooMuchIsToldAtOnce sends more than a claim may have, and never ends.
func TestF29WhoSendsTooMuchIsToldAtOnce(t *testing.T) {
	s := open(t)
	c := s.dial(claimChunk + strings.Repeat("x", 14) + "\r\n11170\r\n" + strings.Repeat("x", 0x11170))
	stage.Must(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	stage.Must(t, err)
	_ = answer.Body.Close()
	if answer.StatusCode != 413 || !answer.Close {
		t.Errorf("the answer is %v", answer)
	}
}

func TestF29BodiesThatAreNotWhatTheyShouldBeAreRefused(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9}`)
	deep := func(n int) string {
		return `{"name":"n","quantity":1,"coupon":{"benefit":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`
	}
	for _, row := range []struct {
		path, body string
		status     int
	}{
		{"/c/claims", ``, 400},
		{"/c/claims", ` `, 400},
		{"/c/claims", `not json`, 400},
		{"/c/claims", `{"user_id":"u"`, 400},
		{"/c/claims", `{"user_id":"u"}{}`, 400},
		{"/c/claims", `{"user_id":"u"} x`, 400},
		{"/c/claims", `{"user_id":"u","user_id":"v"}`, 400},
		{"/c/claims", `{"user_id":"u","\u0075ser_id":"v"}`, 400},
		{"/c/claims", `["user_id"]`, 400},
		{"/c/claims", `null`, 400},
		{"/c/claims", "\ufeff" + `{"user_id":"u"}`, 400},
		{"/c/claims", `{'user_id':'u'}`, 400},
		{"/c/claims", `{}`, 422},
		{"/c/claims", `{"user_id":"u","extra":1}`, 422},
		{"/c/claims", `{"USER_ID":"u"}`, 422},
		{"/c/claims", `{"user_id":"` + strings.Repeat("u", 64<<10) + `"}`, 413},
		{"/c/coupons", `{"user_ids":["` + strings.Repeat("u", 512<<10) + `"]}`, 413},
		{"/c/pause", `[]`, 400},
		{"/c/pause", `{"now":true}`, 422},
		{"/c/coupons/1/void", `{"reason":"\ud800"}`, 400},
		{"", deep(30), 201},
		{"", deep(31), 400},
		{"", deep(30000), 400},
		{"", `{"name":"n","quantity":1,"coupon":{"benefit":{"a":1,"a":2}}}`, 400},
	} {
		if r := s.call("POST", "/v1/campaigns"+row.path, row.body); r.status != row.status {
			t.Errorf("%s %.60q answers %d, want %d: %s", row.path, row.body, r.status, row.status, r.body)
		}
	}
	if issued := s.call("GET", "/v1/campaigns/c", "").number("issued"); issued != 0 {
		t.Errorf("%d coupons were issued", issued)
	}
}

func TestF29OnlyPlainJSONIsRead(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9}`)
	for media, status := range map[string]int{
		"": 415, "text/plain": 415, "application/x-www-form-urlencoded": 415, "application/json; charset=latin1": 415, "application/jsonp": 415,
		"application/json; charset=UTF-8": 200, "Application/JSON": 200, "application/json": 200,
	} {
		s.claim("c", "u")
		if r := s.call("POST", "/v1/campaigns/c/claims", `{"user_id":"u"}`, "Content-Type", media); r.status != status {
			t.Errorf("%q answers %d, want %d", media, r.status, status)
		}
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 10<<20))
	_ = z.Close()
	for _, encoding := range []string{"gzip", "br", "identity, gzip"} {
		s.call("POST", "/v1/campaigns/c/claims", bomb.String(), "Content-Encoding", encoding).want(t, 415, "")
	}
	s.call("POST", "/v1/campaigns/c/claims", `{"user_id":"u"}`, "Content-Encoding", "identity").want(t, 200, "already_issued")
}

func TestF29LargeBodiesTakeLittleMemory(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, known := range []bool{true, false} {
		r, err := http.NewRequest("POST", s.url+"/v1/campaigns/c/claims", io.LimitReader(zeros{}, 100<<20))
		stage.Must(t, err)
		r.Header.Set("Content-Type", "application/json")
		if known {
			r.ContentLength = 100 << 20
		}
		response, err := s.client.Do(r)
		if err != nil {
			continue // the server cut the connection while the body was being sent
		}
		response.Body.Close()
		if response.StatusCode != 413 {
			t.Errorf("100 MB (length known: %t) answers %d", known, response.StatusCode)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("two bodies of 100 MB took %d bytes", took)
	}
	s.claim("c", "u").want(t, 201, "issued")
}

// zeros is an endless body, which takes no memory itself.
type zeros struct{}

func (zeros) Read(into []byte) (int, error) {
	for n := range into {
		into[n] = '0'
	}
	return len(into), nil
}

func FuzzClaimBodies(f *testing.F) {
	for _, seed := range []string{
		`{"user_id":"u"}`, `{"user_id": "u"}`, `{"user_id":42}`, `{"user_id":"\ud83d\ude00"}`, `{"user_id":"\ud800"}`, `{"user_id":"u","user_id":"v"}`,
		`{}`, `[]`, ``, `{"user_id":1e3}`, "{\"user_id\":\"\xff\"}", `{"user_id":"."}`, `{"user_id":"a"}x`, `{"user_id":"a\"}`, `{"user_id":""}`,
	} {
		f.Add([]byte(seed))
	}
	s := open(f)
	s.create(`{"id":"c","name":"n","quantity":null}`)
	f.Fuzz(func(t *testing.T, body []byte) {
		shop := s.as(t)
		r := shop.call("POST", "/v1/campaigns/c/claims", string(body))
		switch r.status {
		case 400, 413, 415, 422:
			return
		case 200, 201:
		default:
			t.Fatalf("%q answers %d", body, r.status)
		}
		var asked struct {
			User any `json:"user_id"`
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&asked); err != nil {
			t.Fatalf("%q was taken and is not JSON: %v", body, err)
		}
		want, ok := asked.User.(string)
		if number, is := asked.User.(json.Number); is {
			want, ok = number.String(), true
		}
		if got := r.text("coupon", "user_id"); !ok || got != want {
			t.Fatalf("%q was issued to %q", body, got)
		}
	})
}

func FuzzUserIDs(f *testing.F) {
	for _, seed := range append(differentUsers, "", ".", "..", "a\x00", "\xff", "a\r\nb", "\u2028", `"`, `\`, strings.Repeat("é", 64)) {
		f.Add(seed)
	}
	s := open(f)
	s.create(`{"id":"c","name":"n","quantity":null}`)
	f.Fuzz(func(t *testing.T, user string) {
		shop := s.as(t)
		_, err := firstcome.ParseUserID(user)
		if !utf8.ValidString(user) || user == "" {
			return // a JSON encoder of a client would send another text, and a path cannot have this one
		}
		claimed := shop.claim("c", user)
		if (err == nil) != (claimed.status == 200 || claimed.status == 201) {
			t.Fatalf("%q answers %d, and is %v", user, claimed.status, err)
		}
		read := shop.call("GET", "/v1/campaigns/c/claims/"+escapeAll(user), "")
		if err == nil && (read.status != 200 || read.text("coupon", "user_id") != user) {
			t.Fatalf("%q is read as %d %s", user, read.status, read.body)
		}
	})
}
