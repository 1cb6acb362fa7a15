package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// A testLedger is a ledger in a file of the test.
type testLedger struct {
	*ledger.Ledger
	path      string
	stop      func()                 // makes every write fail from then on
	committed atomic.Pointer[func()] // called after each transaction, unless nil
}

// A shop is a server on a port of its own, with its ledger.
type shop struct {
	t      testing.TB
	ledger *testLedger
	issuer *issue.Issuer
	claims *issue.Answerer
	far    *stage.Gate // nil if the ledger decides
	server *api.Server
	auth   *auth.Authenticator
	url    string
	client *http.Client
	finish func()       // ends serving; may be called before the end of the test
	clock  atomic.Int64 // nanoseconds since 1970; 0 is the machine's clock
	heard  *observer
}

// open opens a shop in development mode, unless change says otherwise.
func open(t testing.TB, change ...func(*shop, *api.Options)) *shop {
	t.Helper()
	return openFor(t, ledger.Options{}, change...)
}

// openFor opens a shop whose ledger has these options.
func openFor(t testing.TB, options ledger.Options, change ...func(*shop, *api.Options)) *shop {
	t.Helper()
	s := &shop{t: t, client: &http.Client{Transport: &http.Transport{}}}
	s.ledger = &testLedger{path: filepath.Join(t.TempDir(), "firstcome.db")}
	options.Owner, options.Secret, options.Clock = "a test", stage.Secret(), s.now
	options.OnCommit = func(int, time.Duration, error) {
		if tell := s.ledger.committed.Load(); tell != nil {
			(*tell)()
		}
	}
	var err error
	s.ledger.Ledger, err = ledger.Open(context.Background(), s.ledger.path, options)
	stage.Must(t, err)
	t.Cleanup(func() { stage.Must(t, s.ledger.Close()) })
	s.issuer = issue.NewIssuer(s.ledger.Gate, issue.Options{})
	s.auth = auth.New(auth.Options{Open: true})
	s.heard = newObserver()
	s.claims = &issue.Answerer{Coupons: s.ledger.Gate}
	config := api.Options{Log: slog.New(slog.DiscardHandler), Observer: s.heard, Health: s.heard, Audit: s.auditBooks}
	for _, do := range change {
		do(s, &config)
	}
	s.wire(config)
	s.ledger.stop = stage.Run(t, s.ledger.Run)
	s.listen()
	return s
}

// wire makes the server from the shop's parts.
func (s *shop) wire(config api.Options) {
	terms := api.NewTermsCache(s.ledger.Reads.Terms)
	s.claims.Issuer, s.claims.Terms = s.issuer, terms.Terms
	config.Terms, config.Claims, config.Auth = terms, s.claims, s.auth
	if config.Ledger == nil {
		config.Ledger = s.ledger.Reads
	}
	config.Keys, config.Codes = s.ledger.Deployment, s.ledger.Codes
	config.Operator = operate.New(operate.Ledger{Campaigns: s.ledger.Campaigns, Letters: s.ledger.Recorder, Reads: s.ledger.Reads}, s.issuer, s.claims)
	if config.Places == nil {
		config.Places = s.ledger.Gate
	}
	if s.far != nil {
		over := &gate.Router{Gate: s.far, Retired: s.ledger.Gate, Ledger: s.ledger.Recorder}
		config.Gate, config.Places = s.far, over
		config.Operator = operate.NewRemote(operate.Ledger{Campaigns: s.ledger.Campaigns, Letters: s.ledger.Recorder, Reads: s.ledger.Reads}, s.issuer, s.claims, gate.NewChanger(s.ledger.Campaigns, over, nil), s.far, nil)
	}
	s.server = api.New(config)
}

// listen serves until the test ends.
func (s *shop) listen() {
	s.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	stage.Must(s.t, err)
	s.url = "http://" + ln.Addr().String()
	server := httpd.New(s.server.HTTP())
	stop := stage.Run(s.t, func(ctx context.Context) error { return server.Serve(ctx, ln, nil) })
	stage.Run(s.t, s.server.Run)
	s.finish = sync.OnceFunc(func() {
		s.client.CloseIdleConnections()
		s.server.Drain()
		stop()
		patience, end := context.WithTimeout(context.Background(), time.Minute)
		defer end()
		stage.Must(s.t, s.issuer.Stop(patience))
	})
	s.t.Cleanup(s.finish)
}

// behind changes the ledger's tables without firstcome's knowledge.
func (s *shop) behind(statement string) {
	s.t.Helper()
	stage.Must(s.t, services.Execute(context.Background(), s.ledger.path, statement))
}

// as returns the shop for a part of the test.
func (s *shop) as(t testing.TB) *shop { return &shop{t: t, url: s.url, client: s.client} }

func (s *shop) now() time.Time {
	if at := s.clock.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Now()
}

// A reply is an answer that was read and checked against openapi.yaml.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// call sends a request with a JSON body, if body is not empty, and pairs of headers.
func (s *shop) call(method, path, body string, header ...string) reply {
	s.t.Helper()
	r, err := s.try(method, path, body, header...)
	stage.Must(s.t, err)
	return r
}

// try is call for a connection that may fail.
func (s *shop) try(method, path, body string, header ...string) (reply, error) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	stage.Must(s.t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := s.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	got := reply{response.StatusCode, response.Header, text}
	if err == nil {
		fits(s.t, r, got)
	}
	return got, err
}

// json returns the value at a path of keys in the answer.
func (r reply) json(keys ...string) any {
	var value any
	if json.Unmarshal(r.body, &value) != nil {
		return nil
	}
	for _, key := range keys {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

// text returns the string at a path of keys, or "" if there is none.
func (r reply) text(keys ...string) string {
	s, _ := r.json(keys...).(string)
	return s
}

// number returns the number at a path of keys, or 0 if there is none.
func (r reply) number(keys ...string) int64 {
	n, _ := r.json(keys...).(float64)
	return int64(n)
}

// items returns the list's items.
func (r reply) items() []map[string]any {
	var list struct {
		Items []map[string]any `json:"items"`
	}
	_ = json.Unmarshal(r.body, &list)
	return list.Items
}

// each returns a field of each item.
func (r reply) each(field string) string {
	var all []string
	for _, item := range r.items() {
		all = append(all, fmt.Sprint(item[field]))
	}
	return strings.Join(all, " ")
}

// pages returns a field of each item of a list, page by page. The path ends where the value of next belongs.
func (s *shop) pages(path, field string) string {
	s.t.Helper()
	var all []string
	for next := ""; ; {
		page := s.call("GET", path+next, "").want(s.t, 200, "")
		all = append(all, page.each(field))
		if next = page.text("next"); next == "" {
			return strings.Join(all, " ")
		}
	}
}

// want fails the test unless the answer has this status and, if not "", this outcome.
func (r reply) want(t testing.TB, status int, outcome string) reply {
	t.Helper()
	if r.status != status || r.text("outcome") != outcome {
		t.Fatalf("it answers %d %q, and should %d %q: %s", r.status, r.text("outcome"), status, outcome, r.body)
	}
	return r
}

// create creates a campaign from a body like {"id":"c","name":"c","quantity":1}.
func (s *shop) create(body string) reply {
	s.t.Helper()
	return s.call("POST", "/v1/campaigns", body).want(s.t, 201, "")
}

func (s *shop) claim(id, user string) reply {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"user_id": user})
	stage.Must(s.t, err)
	return s.call("POST", "/v1/campaigns/"+id+"/claims", string(body))
}

// tokenSecret signs the tests' tokens.
const tokenSecret = "a token secret of the tests, 32 bytes and more"

// guarded is a change of open: it uses keys and tokens instead of development mode.
func guarded(s *shop, _ *api.Options) {
	check, err := auth.NewJWT(auth.JWTConfig{Secret: []byte(tokenSecret)})
	stage.Must(s.t, err)
	s.auth = auth.New(auth.Options{Keys: s.ledger.Deployment, JWT: check, Log: slog.New(slog.DiscardHandler)})
}

// key returns the header of a new key with a role.
func (s *shop) key(role firstcome.Role) []string {
	s.t.Helper()
	plain, key, err := auth.NewKey("test", role)
	stage.Must(s.t, err)
	stage.Must(s.t, s.ledger.Deployment.AddKey(context.Background(), "test", key))
	stage.Must(s.t, s.auth.Reload(context.Background()))
	return []string{"Authorization", "Bearer " + plain}
}

// token returns the header of a user's own token.
func (s *shop) token(user string) []string {
	return signed(s.t, tokenSecret, jwt.MapClaims{"sub": user})
}

// signed returns the header of a token that is good for an hour, unless the claims say otherwise.
func signed(t testing.TB, secret string, claims jwt.MapClaims) []string {
	t.Helper()
	all := jwt.MapClaims{"sub": "u", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, all).SignedString([]byte(secret))
	stage.Must(t, err)
	return []string{"Authorization", "Bearer " + token}
}
