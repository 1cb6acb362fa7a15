package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

const secret = "a secret that firstcome has as well"

// visitor returns the address of a storefront in front of a server, and a browser's client.
func visitor(t *testing.T, server http.HandlerFunc) (address string, guest *http.Client) {
	upstream := httptest.NewServer(server)
	t.Cleanup(upstream.Close)
	at, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	shop := httptest.NewServer((&storefront{server: at, campaign: "drop", secret: []byte(secret)}).handler())
	t.Cleanup(shop.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	guest = shop.Client()
	guest.Jar = jar
	return shop.URL, guest
}

// ask sends a request and returns the answer and its body.
func ask(t *testing.T, guest *http.Client, method, address string, header ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(header); n += 2 {
		request.Header.Set(header[n], header[n+1])
	}
	answer, err := guest.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// TestAGuestStaysTheSameUser: else a reload would be another user, with another coupon.
func TestAGuestStaysTheSameUser(t *testing.T) {
	address, guest := visitor(t, http.NotFound)
	var users []string
	for range 2 {
		answer, body := ask(t, guest, http.MethodGet, address+"/session")
		var said struct {
			User  string `json:"user_id"`
			Token string `json:"token"`
		}
		if err := json.Unmarshal([]byte(body), &said); err != nil {
			t.Fatal(err)
		}
		claims := jwt.MapClaims{}
		if _, err := jwt.ParseWithClaims(said.Token, claims, func(*jwt.Token) (any, error) { return []byte(secret), nil },
			jwt.WithExpirationRequired(), jwt.WithValidMethods([]string{"HS256"})); err != nil {
			t.Fatal(err)
		}
		if claims["sub"] != said.User {
			t.Errorf("the token is of %v, the page is told %s", claims["sub"], said.User)
		}
		if kept := answer.Header.Get("Cache-Control"); kept != "no-store" {
			t.Errorf("a token may be kept: %q", kept)
		}
		users = append(users, said.User)
	}
	if users[0] != users[1] {
		t.Errorf("a guest is %s and then %s", users[0], users[1])
	}
	_, stranger := visitor(t, http.NotFound)
	if _, body := ask(t, stranger, http.MethodGet, address+"/session"); strings.Contains(body, users[0]) {
		t.Errorf("another guest is %s, too", users[0])
	}
}

// TestOnlyWhatAPageAsksIsPassedOn, since firstcome takes every caller for an admin in development mode.
func TestOnlyWhatAPageAsksIsPassedOn(t *testing.T) {
	var came []string
	address, guest := visitor(t, func(_ http.ResponseWriter, r *http.Request) {
		came = append(came, r.Method+" "+r.URL.EscapedPath())
		if r.Header.Get("Cookie") != "" || r.Header.Get("Origin") != "" || r.Header.Get("Authorization") != "Bearer t" {
			t.Errorf("%s comes with %v", r.URL, r.Header)
		}
	})
	ask(t, guest, http.MethodGet, address+"/session") // from now on the guest has a cookie
	want := []string{
		"GET /v1/campaigns/drop", "GET /v1/campaigns/drop/line", "POST /v1/campaigns/drop/claims", "GET /v1/campaigns/drop/claims/a%2Fb",
		"DELETE /v1/campaigns/drop/claims/u", "GET /v1/campaigns/drop/claims/u/events", "GET /v1/users/u/coupons",
	}
	for _, request := range append(want, "GET /v1/campaigns", "POST /v1/campaigns", "PATCH /v1/campaigns/drop", "POST /v1/campaigns/drop/close",
		"POST /v1/campaigns/drop/coupons", "GET /v1/campaigns/drop/coupons", "GET /v1/audit-log", "GET /v1/campaigns/drop/claims/../coupons") {
		method, path, _ := strings.Cut(request, " ")
		ask(t, guest, method, address+path, "Authorization", "Bearer t", "Origin", address)
	}
	if got := strings.Join(came, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("firstcome is asked\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// TestInDevelopmentModeRequestsGoOnAsTheyCame: firstcome then answers this machine's own requests, and refuses those of a proxy before the shop.
func TestInDevelopmentModeRequestsGoOnAsTheyCame(t *testing.T) {
	var came *http.Request
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { came = r }))
	t.Cleanup(upstream.Close)
	at, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	shop := httptest.NewServer((&storefront{server: at, campaign: "drop", secret: []byte(secret), open: true}).handler())
	t.Cleanup(shop.Close)
	proxy := []string{"X-Forwarded-For", "203.0.113.7", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "shop.example", "Forwarded", "for=203.0.113.7"}
	for name, headers := range map[string][]string{"of this machine": nil, "of a proxy": proxy} {
		ask(t, shop.Client(), http.MethodGet, shop.URL+"/v1/campaigns/drop", append(headers, "Origin", "https://other.example", "Cookie", "guest=a")...)
		if "http://"+came.Host != shop.URL || came.Header.Get("Origin") != "https://other.example" || came.Header.Get("Cookie") != "" {
			t.Errorf("a request %s is to %s, with %v", name, came.Host, came.Header)
		}
		for n := 0; n < len(proxy); n += 2 {
			if got := came.Header.Get(proxy[n]); (got != "") != (headers != nil) || headers != nil && got != proxy[n+1] {
				t.Errorf("a request %s comes with %s: %q", name, proxy[n], got)
			}
		}
	}
}

// TestTheSampleWaitsForAServerThatDoesNotAnswerYet: the README starts both at once, and the server may still be compiled.
func TestTheSampleWaitsForAServerThatDoesNotAnswerYet(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case asked.Add(1) <= 2:
			panic(http.ErrAbortHandler) // the connection ends without an answer
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"status":404,"code":"not_found"}`)
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{}`)
		}
	}))
	t.Cleanup(server.Close)
	if err := makeCampaign(t.Context(), server.URL, "drop"); err != nil || asked.Load() != 4 {
		t.Errorf("it asked %d times: %v", asked.Load(), err)
	}
}

// TestThePageKeepsItsOwnPolicy: nothing is inline, nothing comes from elsewhere, and each file that it names is there.
func TestThePageKeepsItsOwnPolicy(t *testing.T) {
	address, guest := visitor(t, http.NotFound)
	answer, page := ask(t, guest, http.MethodGet, address+"/")
	if policy := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self'") {
		t.Errorf("the policy is %q", policy)
	}
	if inline := regexp.MustCompile(`(?i)<style|\s(style|on\w+)=|<script[^>]*>[^<]`).FindString(page); inline != "" {
		t.Errorf("the page has %q, which its policy forbids", inline)
	}
	files := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(files) < 3 {
		t.Fatalf("the page names %d files", len(files))
	}
	for _, file := range files {
		if answer, _ := ask(t, guest, http.MethodGet, address+"/"+file[1]); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", file[1], answer.Status)
		}
	}
}

// TestThePageIsWholeInBothLanguages: each word of one language is one of the other, too.
func TestThePageIsWholeInBothLanguages(t *testing.T) {
	text, err := files.ReadFile("page/words.js")
	if err != nil {
		t.Fatal(err)
	}
	_, both, _ := strings.Cut(string(text), "export const words = {")
	ko, en, ok := strings.Cut(both, "\n  en: {")
	en, _, ok2 := strings.Cut(en, "\n};")
	if !ok || !ok2 {
		t.Fatal("words.js has no words")
	}
	en = strings.ReplaceAll(en, `{ month: "short", day: "numeric" }`, "") // of a date, no words
	key := regexp.MustCompile(`(?m)(?:^ {4,6}|, )([a-zA-Z_]+): `)
	keys := func(text string) (all []string) {
		for _, match := range key.FindAllStringSubmatch(strings.TrimPrefix(text, "\n  ko: {"), -1) {
			all = append(all, match[1])
		}
		return all
	}
	if a, b := strings.Join(keys(ko), " "), strings.Join(keys(en), " "); a != b {
		t.Errorf("the keys in Korean are\n%s\nthose in English\n%s", a, b)
	}
	sentence, latin := regexp.MustCompile("\"[^\"]*\"|`[^`]*`"), regexp.MustCompile(`[a-zA-Z]`)
	for _, text := range sentence.FindAllString(ko, -1) {
		said := regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllString(text, "")
		if regexp.MustCompile(`\p{Hangul}`).MatchString(said) && latin.MatchString(said) {
			t.Errorf("a sentence in Korean has English in it: %s", text)
		}
	}
	if said := regexp.MustCompile(`.*\p{Hangul}.*`).FindString(en); said != "" {
		t.Errorf("the English words have Korean in them: %s", said)
	}
	for _, said := range []string{"에 열려요", "쿠폰을 받았어요!", "이미 받은 쿠폰이에요", "모두 소진됐어요", "내 앞에 최대 ", "아직 확인 중이에요. 다시 눌러도 한 장만 받아요."} {
		if !strings.Contains(ko, said) {
			t.Errorf("nobody is told %q", said)
		}
	}
}
