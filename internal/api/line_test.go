package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/sqlgate"
	"github.com/firstcome/firstcome/test/stage"
)

// noon is the time of the tests of lines.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// openAtNoon opens a shop whose clock stands still.
func openAtNoon(t *testing.T, change ...func(*shop, *api.Options)) *shop {
	t.Helper()
	return open(t, append(change, atNoon)...)
}

func atNoon(s *shop, _ *api.Options) { s.clock.Store(noon.UnixNano()) }

// later moves the clock forward.
func (s *shop) later(by time.Duration) { s.clock.Add(int64(by)) }

// serve serves the line of c as a Dispatcher does.
func (s *shop) serve() {
	s.t.Helper()
	stage.Must(s.t, stage.Err(s.ledger.Gate.Serve(s.t.Context(), "c", 1000)))
}

// line reads the line of c once the node's copy of it is stale.
func (s *shop) line() reply {
	s.t.Helper()
	<-time.After(300 * time.Millisecond) // a node repeats the line for 250 ms
	return s.call("GET", "/v1/campaigns/c/line", "").want(s.t, 200, "")
}

// wantPlace compares the place in an answer with a short text.
func (r reply) wantPlace(t testing.TB, status int, want string) {
	t.Helper()
	r.want(t, status, "waiting")
	got := fmt.Sprint(r.json("ticket"), " of ", r.json("generation"), ", ", r.json("ahead"), " ahead, ", r.json("eta_seconds"), " s, likely ", r.json("likely"), ", ",
		r.json("reason"), " ", r.json("until"))
	if serving := r.json("reason") == nil; got != want || r.json("serving") != serving {
		t.Errorf("the place is %s, and should be %s: %s", got, want, r.body)
	}
}

func TestAClaimOfAPacedCampaignIsAPlaceInLineAndThenACoupon(t *testing.T) {
	s := openAtNoon(t)
	made := s.create(`{"id":"c","name":"n","quantity":3,"pace":{"per_second":1}}`)
	if made.number("pace", "per_second") != 1 || made.json("waitlist") != false || made.number("waiting") != 0 {
		t.Errorf("the campaign is %s", made.body)
	}
	for n, user := range []string{"a", "b", "c", "d"} {
		s.claim("c", user).wantPlace(t, 202, fmt.Sprintf("%d of 1, %d ahead, %d s, likely %v, <nil> <nil>", n+1, n, n, n < 3))
	}
	s.claim("c", "b").wantPlace(t, 202, "2 of 1, 1 ahead, 1 s, likely true, <nil> <nil>")
	s.serve()
	first := s.claim("c", "a").want(t, 200, "already_issued")
	if first.number("coupon", "number") != 1 {
		t.Errorf("the first has %s", first.body)
	}
	s.call("GET", "/v1/campaigns/c/claims/a", "").want(t, 200, "already_issued")
	s.call("GET", "/v1/campaigns/c/claims/c", "").wantPlace(t, 200, "3 of 1, 1 ahead, 1 s, likely true, <nil> <nil>")
	s.call("GET", "/v1/campaigns/c/claims/nobody", "").want(t, 404, "")
	if c := s.call("GET", "/v1/campaigns/c", ""); c.number("waiting") != 3 || c.text("state") != "open" || c.number("issued") != 1 {
		t.Errorf("the campaign is %s", c.body)
	}
	s.call("POST", "/v1/campaigns/c/pause", "").want(t, 200, "")
	s.claim("c", "b").wantPlace(t, 202, "2 of 1, 0 ahead, <nil> s, likely true, paused <nil>")
	s.claim("c", "late").want(t, 403, "paused")
	s.call("POST", "/v1/campaigns/c/resume", "").want(t, 200, "")
	s.call("PATCH", "/v1/campaigns/c", `{"opens_at":"2026-11-20T12:01:00Z"}`).want(t, 200, "")
	s.claim("c", "b").wantPlace(t, 202, "2 of 1, 0 ahead, 60 s, likely true, not_open 2026-11-20T12:01:00.000000Z")
	s.claim("c", "late").want(t, 403, "not_open")
	s.later(2 * time.Minute)
	s.serve()
	s.later(time.Second)
	s.serve()
	for user, status := range map[string]int{"b": 200, "c": 200, "d": 410, "late": 410} {
		if r := s.claim("c", user); r.status != status {
			t.Errorf("%s gets %d %s", user, r.status, r.body)
		}
	}
	if s.heard.outcomes[firstcome.Waiting] != 7 {
		t.Errorf("counted %v", s.heard.outcomes)
	}
}

func TestACouponNamesItsTicketWhereverItIsTold(t *testing.T) {
	s := openAtNoon(t)
	s.create(`{"id":"c","name":"n","quantity":9,"pace":{}}`)
	for _, user := range []string{"left", "a"} {
		s.claim("c", user).want(t, 202, "waiting")
	}
	s.call("DELETE", "/v1/campaigns/c/claims/left", "").want(t, 200, "")
	s.serve()
	s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["b"]}`).want(t, 200, "")
	s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"r"}`).want(t, 200, "")
	for what, coupon := range map[string]any{
		"the list": s.call("GET", "/v1/campaigns/c/coupons?voided=include", "").items()[0],
		"a fact":   s.call("GET", "/v1/campaigns/c/facts", "").items()[0],
		"a void":   s.call("GET", "/v1/campaigns/c/facts", "").items()[2],
	} {
		if got := coupon.(map[string]any); got["generation"] != 1.0 || got["ticket"] != 2.0 {
			t.Errorf("in %s it is %v", what, got)
		}
	}
	direct := s.claim("c", "b").want(t, 200, "already_issued")
	listed := s.call("GET", "/v1/users/b/coupons", "").items()[0]
	for _, coupon := range []map[string]any{direct.json("coupon").(map[string]any), listed, s.call("GET", "/v1/campaigns/c/facts", "").items()[1]} {
		generation, told := coupon["generation"]
		if ticket, also := coupon["ticket"]; generation != nil || ticket != nil || !told || !also {
			t.Errorf("of a direct issue it is %v", coupon)
		}
	}
	for n, want := range []string{"1 2 false", "  true"} {
		if row := s.table(',', "?voided=include", "Accept", "text/csv")[n+1]; strings.Join(row[11:14], " ") != want {
			t.Errorf("as CSV it ends with %q", row[11:])
		}
	}
}

func TestTheLineIsReadByAnybodyAndKeptForASecond(t *testing.T) {
	s := openAtNoon(t, guarded)
	admin := s.key(firstcome.Admin)
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":1,"pace":{}}`, admin...).want(t, 201, "")
	for _, user := range []string{"a", "b"} {
		s.call("POST", "/v1/campaigns/c/claims", "", s.token(user)...).want(t, 202, "waiting")
	}
	r := s.line()
	if got := r.header.Get("Cache-Control"); got != "public, max-age=1, stale-while-revalidate=0" {
		t.Errorf("caches are told %q", got)
	}
	want := `{"campaign_id":"c","generation":1,"serving":1,"last_ticket":2,"waiting":2,"likely_through":1,"next_joined_at":"2026-11-20T12:00:00.000000Z","pace":{"per_second":null},"waitlist":false,"state":"open","ended":[],"server_time":"2026-11-20T12:00:00.000000Z"}`
	if diff := cmp.Diff(want, strings.TrimSpace(string(r.body))); diff != "" {
		t.Errorf("the line (-want +got):\n%s", diff)
	}
	s.serve()
	want = `{"campaign_id":"c","generation":2,"serving":1,"last_ticket":0,"waiting":0,"likely_through":0,"next_joined_at":null,"pace":{"per_second":null},"waitlist":false,"state":"sold_out",` +
		`"ended":[{"generation":1,"reason":"sold_out","ended_at":"2026-11-20T12:00:00.000000Z","last_ticket_served":1}],"server_time":"2026-11-20T12:00:00.000000Z"}`
	if diff := cmp.Diff(want, strings.TrimSpace(string(s.line().body))); diff != "" {
		t.Errorf("the line that ended (-want +got):\n%s", diff)
	}
	for range 2 {
		if r := s.call("GET", "/v1/campaigns/none/line", "").want(t, 404, ""); r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("no campaign is kept by caches: %v", r.header)
		}
	}
	s.call("GET", "/v1/campaigns/c/line?x=1", "").want(t, 422, "")
}

func TestTheLineOfManyIsReadOnce(t *testing.T) {
	places := &countedPlaces{}
	s := openAtNoon(t, func(s *shop, c *api.Options) {
		places.Gate = s.ledger.Gate
		c.Places = places
	})
	s.create(`{"id":"c","name":"n","quantity":1,"pace":{}}`)
	began := time.Now()
	for range 200 {
		s.call("GET", "/v1/campaigns/c/line", "").want(t, 200, "")
		s.call("GET", "/v1/campaigns/none/line", "").want(t, 404, "")
	}
	if most := 2 + 2*int64(time.Since(began)/(250*time.Millisecond)); places.read.Load() > most {
		t.Errorf("the line was read %d times, and at most %d", places.read.Load(), most)
	}
}

func TestAnAddressReadsTheLineNoOftenerThanItMay(t *testing.T) {
	s := openAtNoon(t, func(_ *shop, c *api.Options) { c.AddressLimit = auth.NewLimiter(0.001, 3, 10) })
	s.create(`{"id":"c","name":"n","quantity":1,"pace":{}}`)
	s.call("GET", "/v1/campaigns/c/line", "").want(t, 200, "")
	s.call("GET", "/v1/campaigns/c/line", "").want(t, 200, "")
	s.call("GET", "/v1/campaigns/c/line", "").want(t, 429, "")
	s.call("GET", "/livez", "").want(t, 200, "")
}

// TestF73LeavingIsToldApartFromBeingServed races leaving with being served. One of them wins, and the answer says which.
func TestF73LeavingIsToldApartFromBeingServed(t *testing.T) {
	s := openAtNoon(t)
	s.create(`{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`)
	leave := func(user string) reply { return s.call("DELETE", "/v1/campaigns/c/claims/"+user, "") }
	s.claim("c", "a").want(t, 202, "waiting")
	s.claim("c", "b").want(t, 202, "waiting")
	s.claim("c", "c").want(t, 202, "waiting")
	leave("b").want(t, 200, "")
	if r := leave("b").want(t, 200, ""); r.json("left") != true {
		t.Errorf("leaving again is %s", r.body)
	}
	s.call("GET", "/v1/campaigns/c/claims/b", "").want(t, 404, "")
	leave("nobody").want(t, 404, "")
	s.serve()
	served := leave("a").want(t, 409, "")
	if served.text("code") != "already_served" || served.text("coupon", "user_id") != "a" || served.number("coupon", "number") != 1 {
		t.Errorf("who was served is told %s", served.body)
	}
	s.claim("c", "b").wantPlace(t, 202, "4 of 1, 2 ahead, 1 s, likely true, <nil> <nil>") // at the end, after the ticket of the user who left
	s.later(time.Second)
	s.serve()
	if r := s.claim("c", "c").want(t, 200, "already_issued"); r.number("coupon", "number") != 2 {
		t.Errorf("the one behind who left has %s", r.body)
	}
	s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"r"}`).want(t, 200, "")
	leave("a").want(t, 200, "") // a joined before
	s.call("DELETE", "/v1/campaigns/none/claims/a", "").want(t, 404, "")
}

func TestF78AFullLineIsBusyAndHurtsNobodyInIt(t *testing.T) {
	s := openFor(t, ledger.Options{MaxLine: 2}, atNoon)
	s.create(`{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`)
	s.claim("c", "a").want(t, 202, "waiting")
	s.claim("c", "b").want(t, 202, "waiting")
	for range 3 {
		r := s.claim("c", "late").want(t, 503, "")
		if r.text("code") != "line_full" || r.header.Get("Retry-After") == "" {
			t.Errorf("a full line answers %s %v", r.body, r.header)
		}
	}
	s.claim("c", "b").wantPlace(t, 202, "2 of 1, 1 ahead, 1 s, likely true, <nil> <nil>")
	s.serve()
	s.claim("c", "late").wantPlace(t, 202, "3 of 1, 1 ahead, 1 s, likely true, <nil> <nil>")
}

func TestADirectIssuePassesTheLineAndTheAuditLogSaysHowManyWaited(t *testing.T) {
	s := openAtNoon(t)
	s.create(`{"id":"c","name":"n","quantity":3,"pace":{"per_second":1}}`)
	for _, user := range []string{"a", "b", "c"} {
		s.claim("c", user).want(t, 202, "waiting")
	}
	items := s.call("POST", "/v1/campaigns/c/coupons", `{"user_ids":["x","b","x"]}`).want(t, 200, "").items()
	var outcomes []any
	for _, item := range items {
		outcomes = append(outcomes, item["outcome"])
	}
	if diff := cmp.Diff([]any{"issued", "issued", "already_issued"}, outcomes); diff != "" {
		t.Errorf("the answers (-want +got):\n%s", diff)
	}
	s.claim("c", "b").want(t, 200, "already_issued")
	line := s.call("GET", "/v1/audit-log?campaign=c", "").items()[0]
	if line["action"] != "coupon.issue" || line["actor"] != "local" || line["campaign_id"] != "c" {
		t.Errorf("the log has %v", line)
	}
	if diff := cmp.Diff(map[string]any{"issued": 2.0, "last_number": 2.0, "waiting": 3.0}, line["detail"]); diff != "" && line["detail"].(map[string]any)["waiting"] != 2.0 {
		t.Errorf("the log's detail (-want +got):\n%s", diff)
	}
	s.serve()
	s.claim("c", "a").want(t, 200, "already_issued")
	s.claim("c", "c").want(t, 410, "sold_out")
}

func TestPaceAndWaitlistAreRefusedWithTheirField(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":3,"pace":{"per_second":1000000},"waitlist":true}`)
	s.create(`{"id":"d","name":"n","quantity":3,"pace":null,"waitlist":false}`)
	for _, test := range []struct {
		body, field string
		status      int
	}{
		{`{"pace":{"per_second":0}}`, "pace.per_second", 422},
		{`{"pace":{"per_second":1000001}}`, "pace.per_second", 422},
		{`{"pace":{"per_second":99999999999999999999}}`, "pace.per_second", 422},
		{`{"pace":{"per_second":1.5}}`, "pace.per_second", 400},
		{`{"pace":{"per_second":"1"}}`, "pace.per_second", 400},
		{`{"pace":{"per_minute":1}}`, "pace.per_minute", 422},
		{`{"pace":5}`, "pace", 400},
		{`{"pace":[]}`, "pace", 400},
		{`{"waitlist":null}`, "waitlist", 400},
		{`{"waitlist":"yes"}`, "waitlist", 400},
		{`{"waitlist":true}`, "waitlist", 422},
		{`{"waitlist":true,"pace":null}`, "waitlist", 422},
	} {
		r := s.call("PATCH", "/v1/campaigns/d", test.body)
		errors, _ := r.json("errors").([]any)
		if r.status != test.status || len(errors) != 1 || errors[0].(map[string]any)["field"] != test.field {
			t.Errorf("%s answers %d %s", test.body, r.status, r.body)
		}
	}
	s.call("PATCH", "/v1/campaigns/c", `{"waitlist":false}`).want(t, 200, "")
	s.call("PATCH", "/v1/campaigns/c", `{"waitlist":true}`).want(t, 200, "") // it has a pace
	s.call("PATCH", "/v1/campaigns/c", `{"pace":null}`).want(t, 422, "")
	changed := s.call("PATCH", "/v1/campaigns/c", `{"pace":{},"waitlist":false}`).want(t, 200, "")
	if changed.json("pace", "per_second") != nil || changed.json("pace") == nil {
		t.Errorf("the campaign is %s", changed.body)
	}
	line := s.call("GET", "/v1/audit-log?campaign=c", "").items()[0]
	want := map[string]any{"pace": map[string]any{"per_second": nil}, "waitlist": false}
	if diff := cmp.Diff(any(want), line["new"]); diff != "" {
		t.Errorf("the log's new (-want +got):\n%s", diff)
	}
	changes := s.call("GET", "/v1/campaigns/c/changes?limit=1", "").items()[0]
	if pace := changes["terms"].(map[string]any)["pace"]; !cmp.Equal(pace, any(map[string]any{"per_second": 1e6})) {
		t.Errorf("the first change has the pace %v", pace)
	}
}

// TestALineOfARemoteGateIsToldAsTheLedgers serves a line at a gate other than the ledger, with a coupon that is not recorded yet.
func TestALineOfARemoteGateIsToldAsTheLedgers(t *testing.T) {
	f := openFar(t, func(s *shop, _ *api.Options) { s.claims.Wait = time.Millisecond })
	f.create(`{"id":"c","name":"n","quantity":3,"pace":{}}`)
	f.claim("c", "a").want(t, 202, "waiting")
	f.claim("c", "b").want(t, 202, "waiting")
	if _, err := f.gate.Serve(t.Context(), "c", 1); err != nil {
		t.Fatal(err)
	}
	if r := f.call("GET", "/v1/campaigns/c/claims/b", "").want(t, 200, "waiting"); r.number("ahead") != 0 || r.number("ticket") != 2 {
		t.Errorf("b's place is %s", r.body)
	}
	f.call("GET", "/v1/campaigns/c/claims/a", "").want(t, 503, "") // as a claim is
	f.record("c")
	if r := f.call("GET", "/v1/campaigns/c/claims/a", "").want(t, 200, "already_issued"); r.json("coupon", "recorded") != true || r.json("coupon", "number") != 1.0 {
		t.Errorf("a's coupon is %s", r.body)
	}
	if r := f.line(); r.number("generation") != 1 || r.number("serving") != 2 || r.number("waiting") != 1 || r.text("state") != "open" {
		t.Errorf("the line is %s", r.body)
	}
	if r := f.call("GET", "/v1/campaigns/c", "").want(t, 200, ""); r.number("waiting") != 1 {
		t.Errorf("the campaign is %s", r.body)
	}
	f.call("GET", "/v1/campaigns/none/line", "").want(t, 404, "")
	f.call("DELETE", "/v1/campaigns/c/claims/a", "").want(t, 409, "")
	f.call("DELETE", "/v1/campaigns/c/claims/z", "").want(t, 404, "")
	f.call("DELETE", "/v1/campaigns/c/claims/b", "").want(t, 200, "")
	f.call("GET", "/v1/campaigns/c/claims/b", "").want(t, 404, "")
}

func TestTheClientFollowsAPlaceUntilItIsOver(t *testing.T) {
	s := openAtNoon(t)
	s.create(`{"id":"c","name":"n","quantity":2,"pace":{"per_second":1}}`)
	c := client.New(s.url, "")
	t.Cleanup(c.CloseIdle)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	place := map[string]client.Place{}
	for _, user := range []string{"a", "leaver", "b", "late"} {
		answer, err := c.Claim(ctx, "c", user)
		stage.Must(t, err)
		if answer.Outcome != client.Waiting || answer.Place == nil || answer.Coupon != nil || answer.PollAfter < 1 || answer.PollAfter > 2 {
			t.Fatalf("%s is answered %+v %+v", user, answer, answer.Place)
		}
		place[user] = *answer.Place
	}
	stage.Must(t, c.Leave(ctx, "c", "leaver"))
	stage.Must(t, c.Leave(ctx, "c", "leaver"))
	if err := c.Leave(ctx, "c", "nobody"); status(err) != 404 {
		t.Errorf("who never joined leaves with %v", err)
	}
	type end struct {
		answer client.Answer
		err    error
	}
	told := make(chan client.Place, 100)
	ends := map[string]chan end{}
	for user, from := range place {
		ends[user] = make(chan end, 1)
		each := func(client.Place) {}
		if from.PollAfter = 0.05; user == "b" { // so that the test need not wait
			each = func(p client.Place) { told <- p }
		}
		go func() {
			answer, err := c.Follow(ctx, "c", user, from, each)
			ends[user] <- end{answer, err}
		}()
	}
	if p := <-told; p.Ticket != 3 || p.Ahead != 2 {
		t.Errorf("the first place is %+v", p)
	}
	s.serve()
	if e := <-ends["a"]; e.err != nil || e.answer.Coupon == nil || e.answer.Coupon.Number != 1 {
		t.Errorf("the first gets %+v", e)
	}
	for p := range told { // the client reads the line by itself
		if p.Ahead == 1 {
			break
		}
	}
	s.later(time.Second)
	s.serve()
	if e := <-ends["b"]; e.err != nil || e.answer.Coupon == nil || e.answer.Coupon.Number != 2 {
		t.Errorf("the second gets %+v", e)
	}
	if e := <-ends["late"]; e.err != nil || e.answer.Outcome != client.SoldOut {
		t.Errorf("who is late gets %+v", e)
	}
	if e := <-ends["leaver"]; e.err != nil && status(e.err) != 404 || e.err == nil && e.answer.Outcome != client.SoldOut {
		t.Errorf("who left gets %+v", e)
	}
	var p *client.Problem
	if err := c.Leave(ctx, "c", "a"); !errors.As(err, &p) || p.Status != 409 || p.Coupon == nil || p.Coupon.Number != 1 {
		t.Errorf("who was served leaves with %v", err)
	}
}

// countedPlaces are a ledger's places, with counters.
type countedPlaces struct {
	*sqlgate.Gate
	read, placed, failing atomic.Int64 // lines and places read; how many reads of places must fail
}

func (p *countedPlaces) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	p.placed.Add(1)
	if p.failing.Add(-1) >= 0 {
		return firstcome.Place{}, firstcome.Coupon{}, errors.New("the disk is on fire")
	}
	return p.Gate.Place(ctx, id, user)
}

func (p *countedPlaces) LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	p.read.Add(1)
	return p.Gate.LineOf(ctx, id)
}
