package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/internal/sqlgate"
	"github.com/firstcome/firstcome/test/stage"
)

// A told event is an event of a stream.
type toldEvent struct{ kind, id, data string }

// A listener reads a stream.
type listener struct {
	t        testing.TB
	response *http.Response
	lines    *bufio.Scanner
	retry    string // the last one received
}

// follow opens a user's stream of c, and fails the test if there is none.
func (s *shop) follow(user string, header ...string) *listener {
	s.t.Helper()
	return s.following(user, s.askStream(user, header...))
}

// following follows a stream whose answer has begun.
func (s *shop) following(user string, response *http.Response) *listener {
	s.t.Helper()
	h := response.Header
	if response.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" || h.Get("Cache-Control") != "no-store" {
		line, _ := bufio.NewReader(response.Body).ReadString('\n') // a stream has no end to read up to
		s.t.Fatalf("the stream of %s is %s %v: %s", user, response.Status, h, line)
	}
	return &listener{t: s.t, response: response, lines: bufio.NewScanner(response.Body)}
}

// askStream asks for a user's stream of c.
func (s *shop) askStream(user string, header ...string) *http.Response {
	s.t.Helper()
	ctx, end := context.WithTimeout(s.t.Context(), 10*time.Minute) // a stream that should end and does not ends the test
	s.t.Cleanup(end)
	request, err := http.NewRequestWithContext(ctx, "GET", s.url+"/v1/campaigns/c/claims/"+user+"/events", nil)
	stage.Must(s.t, err)
	for n := 0; n < len(header); n += 2 {
		request.Header.Set(header[n], header[n+1])
	}
	response, err := s.client.Do(request)
	stage.Must(s.t, err)
	s.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// next returns the next event, or an event without a kind if the stream has ended.
func (l *listener) next() (e toldEvent) {
	l.t.Helper()
	for l.lines.Scan() {
		name, value, _ := strings.Cut(l.lines.Text(), ": ")
		switch name {
		case "event":
			e.kind = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		case "retry":
			l.retry = value
		case "":
			if e.kind != "" {
				return e
			}
		}
	}
	return e
}

// want fails unless this is the next event.
func (l *listener) want(kind, id, data string) {
	l.t.Helper()
	if e := l.next(); e.kind != kind || e.id != id || !strings.HasPrefix(e.data, data) {
		l.t.Errorf("the next event is %+v, and should be %s %s %s", e, kind, id, data)
	}
}

// wantEnd fails unless the stream ends without another event.
func (l *listener) wantEnd() {
	l.t.Helper()
	if e := l.next(); e.kind != "" || l.lines.Err() != nil {
		l.t.Errorf("the stream goes on with %+v, %v", e, l.lines.Err())
	}
}

func TestAStreamTellsEveryPlaceAndThenTheOutcome(t *testing.T) {
	s := openAtNoon(t)
	s.create(`{"id":"c","name":"n","quantity":2,"pace":{"per_second":1},"coupon":{"benefit":{"percent":
 20}}}`)
	for _, user := range []string{"a", "b", "late"} {
		s.claim("c", user).want(t, 202, "waiting")
	}
	a, b, late := s.follow("a"), s.follow("b"), s.follow("late")
	a.want("place", "1.1.0", `{"outcome":"waiting","ticket":1,"generation":1,"ahead":0,"eta_seconds":0,"likely":true,"serving":true,"reason":null,"until":null,"closes_at":null,"poll_after":`)
	b.want("place", "1.2.1", `{"outcome":"waiting","ticket":2,"generation":1,"ahead":1,"eta_seconds":1,`)
	late.want("place", "1.3.2", `{"outcome":"waiting","ticket":3,"generation":1,"ahead":2,"eta_seconds":2,"likely":false,`)
	s.serve()
	b.want("place", "1.2.0", `{"outcome":"waiting","ticket":2,"generation":1,"ahead":0,`)
	late.want("place", "1.3.1", `{"outcome":"waiting","ticket":3,"generation":1,"ahead":1,`)
	a.want("outcome", "end", `{"outcome":"already_issued","coupon":{"campaign_id":"c","number":1,"rank":1,"user_id":"a",`)
	a.wantEnd()
	s.call("POST", "/v1/campaigns/c/pause", "").want(t, 200, "")
	b.want("place", "1.2.0.paused", `{"outcome":"waiting","ticket":2,"generation":1,"ahead":0,"eta_seconds":null,"likely":true,"serving":false,"reason":"paused",`)
	s.call("POST", "/v1/campaigns/c/resume", "").want(t, 200, "")
	b.want("place", "1.2.0", `{"outcome":"waiting",`)
	s.later(time.Second)
	s.serve()
	b.want("outcome", "end", `{"outcome":"already_issued","coupon":{"campaign_id":"c","number":2,"rank":2,"user_id":"b",`)
	b.wantEnd()
	for late.response != nil { // first the changes above, then the end
		if e := late.next(); e.kind == "outcome" {
			if e.data != `{"outcome":"sold_out"}` {
				t.Errorf("who is late gets %+v", e)
			}
			break
		} else if e.kind == "" {
			t.Fatal("the stream of who is late ended without an outcome")
		}
	}
	late.wantEnd()
	again := s.follow("a") // a holder gets the coupon at once
	again.want("outcome", "end", `{"outcome":"already_issued",`)
	again.wantEnd()
	s.call("GET", "/v1/campaigns/c/claims/nobody/events", "").want(t, 404, "")
	s.call("GET", "/v1/campaigns/none/claims/a/events", "").want(t, 404, "")
	s.call("GET", "/v1/campaigns/c/claims/a/events?x=1", "").want(t, 422, "")
	awaitNoStream(s)
}

// awaitNoStream waits until the server counts no open stream.
func awaitNoStream(s *shop) {
	s.t.Helper()
	stage.Await(s.t, "the end of the last stream", 0, func() int64 {
		open, _, _ := s.server.Streams()
		return open
	})
}

func TestF76WhoComesBackHearsWhatTheyMissed(t *testing.T) {
	s := openAtNoon(t)
	s.create(`{"id":"c","name":"n","quantity":1,"pace":{"per_second":1}}`)
	for _, user := range []string{"a", "late", "leaver"} {
		s.claim("c", user).want(t, 202, "waiting")
	}
	first := s.follow("late")
	first.want("place", "1.2.1", `{`)
	_ = first.response.Body.Close()
	same := s.follow("late", "Last-Event-ID", "1.2.1") // the same place is not sent again
	leaver := s.follow("leaver")
	leaver.want("place", "1.3.2", `{`)
	s.call("POST", "/v1/campaigns/c/pause", "").want(t, 200, "")
	same.want("place", "1.2.1.paused", `{`)
	_ = same.response.Body.Close()
	s.call("POST", "/v1/campaigns/c/resume", "").want(t, 200, "")
	s.serve() // serves the only coupon
	missed := s.follow("late", "Last-Event-ID", "1.2.1.paused")
	missed.want("outcome", "end", `{"outcome":"sold_out"}`)
	missed.wantEnd()
	if r := s.askStream("late", "Last-Event-ID", "end"); r.StatusCode != 204 {
		t.Errorf("who has heard all is answered %s", r.Status)
	}
	s.call("GET", "/v1/campaigns/c/claims/late/events", "").want(t, 404, "") // as reading the claim is
	for _, strange := range []string{"7.1.1", "x", "1", "-1.2", "99999999999999999999.1.1"} {
		r := s.askStream("late", "Last-Event-ID", strange)
		if want := map[bool]int{true: 200, false: 404}[strange == "1"]; r.StatusCode != want {
			t.Errorf("Last-Event-ID %q is answered %s", strange, r.Status)
		}
	}
}

// TestF76AThousandFollowAtOnceAndOneMoreIsRefused has the size that an ordinary test run can bear.
func TestF76AThousandFollowAtOnceAndOneMoreIsRefused(t *testing.T) {
	const people = 1000
	s := openAtNoon(t, func(_ *shop, c *api.Options) { c.MaxStreams = people })
	s.create(`{"id":"c","name":"n","quantity":100000,"pace":{"per_second":1}}`)
	var all []*listener
	for n := range people {
		user := fmt.Sprint("user-", n)
		s.claim("c", user).want(t, 202, "waiting")
		all = append(all, s.follow(user))
		all[n].want("place", fmt.Sprintf("1.%d.%d", n+1, n), `{`)
	}
	s.claim("c", "more").want(t, 202, "waiting")
	if r := s.askStream("more"); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("one more is answered %s %v", r.Status, r.Header)
	}
	if r := s.call("HEAD", "/v1/campaigns/c/claims/more/events", ""); r.status != 200 {
		t.Errorf("HEAD, which takes no room, is answered %d", r.status)
	}
	s.serve()
	all[0].want("outcome", "end", `{"outcome":"already_issued"`)
	for n, l := range all[1:] {
		l.want("place", fmt.Sprintf("1.%d.%d", n+2, n), `{`)
		_ = l.response.Body.Close()
	}
	awaitNoStream(s)
	if _, dropped, refused := s.server.Streams(); dropped != 0 || refused != 1 {
		t.Errorf("%d streams were dropped, and %d refused", dropped, refused)
	}
	s.follow("more").want("place", "1.1001.999", `{`)
}

// TestF76WhoDoesNotReadIsDroppedAndHurtsNobody opens streams, some of which no client reads. All others get every place.
func TestF76WhoDoesNotReadIsDroppedAndHurtsNobody(t *testing.T) {
	const deaf, readers = 10, 10
	flicker := &flickeringPlaces{told: make(chan struct{}, 1)}
	for range readers {
		heard := make(chan struct{}, 10_000)
		for range 100 {
			heard <- struct{}{}
		}
		flicker.heard = append(flicker.heard, heard)
	}
	s := openAtNoon(t, func(s *shop, c *api.Options) {
		flicker.Gate = s.ledger.Gate
		c.Places, c.FollowEvery = flicker, time.Millisecond
	})
	s.create(`{"id":"c","name":"n","quantity":100,"pace":{"per_second":1}}`)
	var ended atomic.Int64 // streams of readers
	for n := range readers {
		s.claim("c", fmt.Sprint("reader-", n)).want(t, 202, "waiting")
		l := s.follow(fmt.Sprint("reader-", n))
		go func() {
			for l.next().kind == "place" {
				flicker.heard[n] <- struct{}{}
			}
			ended.Add(1)
			close(flicker.heard[n])
		}()
	}
	for n := range deaf {
		s.claim("c", fmt.Sprint("deaf-", n)).want(t, 202, "waiting")
		s.sendOnly(fmt.Sprint("deaf-", n))
	}
	for dropped := int64(0); dropped < deaf; _, dropped, _ = s.server.Streams() {
		<-flicker.told
	}
	if ended.Load() != 0 {
		t.Errorf("the streams of %d readers have ended", ended.Load())
	}
	if open, dropped, _ := s.server.Streams(); open != readers || dropped != deaf {
		t.Errorf("%d streams are open, and %d were dropped", open, dropped)
	}
}

// flickeringPlaces reads a ledger's line that alternates between paused and not paused at each read. It returns a new place
// only when every reader has received the place of 100 reads before.
type flickeringPlaces struct {
	*sqlgate.Gate
	heard  []chan struct{}
	told   chan struct{}
	paused atomic.Bool
}

func (p *flickeringPlaces) LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	for _, heard := range p.heard {
		select {
		case <-heard:
		case <-ctx.Done():
		}
	}
	select {
	case p.told <- struct{}{}:
	default:
	}
	state, err := p.Gate.LineOf(ctx, id)
	p.paused.Store(!p.paused.Load())
	state.Campaign.Paused = p.paused.Load()
	return state, err
}

// sendOnly requests a user's stream and reads nothing of it.
func (s *shop) sendOnly(user string) {
	s.t.Helper()
	narrow := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		stage.Must(s.t, c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) }))
		return err
	}}
	conn, err := narrow.DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	stage.Must(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	stage.Must(s.t, stage.Err(fmt.Fprintf(conn, "GET /v1/campaigns/c/claims/%s/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", user)))
}

func TestAStreamEndsWithItsTokenAndAtAStop(t *testing.T) {
	s := openAtNoon(t, guarded)
	admin := s.key(firstcome.Admin)
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`, admin...).want(t, 201, "")
	for _, user := range []string{"a", "b"} {
		s.call("POST", "/v1/campaigns/c/claims", "", s.token(user)...).want(t, 202, "waiting")
	}
	for status, header := range map[int][]string{401: nil, 404: s.token("b"), 403: s.key(firstcome.Viewer)} {
		if r := s.askStream("a", header...); r.StatusCode != status {
			t.Errorf("with %v the stream of a is %s", header, r.Status)
		}
	}
	// A token that expired a minute ago is good for as long as clocks may differ, which is a moment longer.
	var soon []string
	var stream *http.Response
	for more := 3 * time.Second; more < time.Minute; more *= 2 { // on a busy machine that moment may be over before the token is read
		soon = signed(t, tokenSecret, jwt.MapClaims{"sub": "a", "exp": time.Now().Add(more - time.Minute).Unix()})
		if stream = s.askStream("a", soon...); stream.StatusCode != 401 {
			break
		}
	}
	expiring := s.following("a", stream)
	expiring.want("place", "1.1.0", `{`)
	lasting := s.follow("b", s.token("b")...)
	lasting.want("place", "1.2.1", `{`)
	service := s.follow("a", s.key(firstcome.Service)...)
	service.want("place", "1.1.0", `{`)
	expiring.wantEnd()
	if r := s.askStream("a", soon...); r.StatusCode != 401 {
		t.Errorf("the token is good again: %s", r.Status)
	}
	if open, _, _ := s.server.Streams(); open != 2 {
		t.Errorf("%d streams are open beside the one that expired", open)
	}
	lasting.retry = ""
	s.server.Drain()
	lasting.wantEnd()
	service.wantEnd()
	if lasting.retry == "" {
		t.Error("who is sent away at a stop is not told when to come back")
	}
	if r := s.askStream("b", s.token("b")...); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("a node that stops answers %s", r.Status)
	}
}

// TestAStreamAsksAgainWhileTheOutcomeIsUnknown: a claim that cannot be read has no outcome yet.
func TestAStreamAsksAgainWhileTheOutcomeIsUnknown(t *testing.T) {
	places := &countedPlaces{}
	s := openAtNoon(t, func(s *shop, c *api.Options) {
		places.Gate = s.ledger.Gate
		c.Places, c.FollowEvery = places, 10*time.Millisecond
	})
	s.create(`{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`)
	for n := range 3 {
		s.claim("c", fmt.Sprint(n)).want(t, 202, "waiting")
	}
	left := s.follow("1")
	left.want("place", "1.2.1", `{`)
	s.call("DELETE", "/v1/campaigns/c/claims/1", "").want(t, 200, "")
	places.failing.Store(3)
	s.serve()
	s.later(time.Second)
	s.serve() // the ticket after the ticket that left
	for e := left.next(); ; e = left.next() {
		if e.kind == "outcome" && e.data == `{"outcome":"left"}` {
			break
		} else if e.kind != "place" {
			t.Fatalf("who left hears %+v", e)
		}
	}
	if places.failing.Load() > 0 {
		t.Errorf("the place was read before it could be")
	}
	left.wantEnd()
}

// TestTheLineOfManyStreamsIsReadOncePerLook: neither the line nor a claim is read once for each stream.
func TestTheLineOfManyStreamsIsReadOncePerLook(t *testing.T) {
	places := &countedPlaces{}
	s := openAtNoon(t, func(s *shop, c *api.Options) {
		places.Gate = s.ledger.Gate
		c.Places = places
	})
	s.create(`{"id":"c","name":"n","quantity":99,"pace":{"per_second":1}}`)
	var all []*listener
	for n := range 50 {
		s.claim("c", fmt.Sprint("u", n)).want(t, 202, "waiting")
		all = append(all, s.follow(fmt.Sprint("u", n)))
		all[n].want("place", fmt.Sprintf("1.%d.%d", n+1, n), `{`)
	}
	began := time.Now()
	places.read.Store(0)
	places.placed.Store(0)
	s.serve()
	for n, l := range all[1:] {
		l.want("place", fmt.Sprintf("1.%d.%d", n+2, n), `{`)
	}
	if most := 3 + int64(time.Since(began)/(750*time.Millisecond)); places.read.Load() > most || places.placed.Load() > 1 {
		t.Errorf("the line was read %d times, and at most %d; places %d times", places.read.Load(), most, places.placed.Load())
	}
}

// TestStreamsGoByTLSAndHTTP2 has streams that net/http writes.
func TestStreamsGoByTLSAndHTTP2(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			s := openAtNoon(t)
			s.create(`{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`)
			for _, user := range []string{"a", "b"} {
				s.claim("c", user).want(t, 202, "waiting")
			}
			s.secure(proto == "HTTP/2.0")
			b := s.follow("b")
			if b.response.Proto != proto {
				t.Fatalf("it goes by %s", b.response.Proto)
			}
			b.want("place", "1.2.1", `{`)
			s.serve()
			b.want("place", "1.2.0", `{`)
			s.later(time.Second)
			s.serve()
			b.want("outcome", "end", `{"outcome":"already_issued",`)
			b.wantEnd()
			s.claim("c", "d").want(t, 202, "waiting")
			d := s.follow("d")
			d.want("place", "1.3.0", `{`)
			_ = d.response.Body.Close()
			awaitNoStream(s)
		})
	}
}

// secure also serves the shop with TLS, and makes the test's client use it.
func (s *shop) secure(http2 bool) {
	s.t.Helper()
	lender := httptest.NewUnstartedServer(nil) // only for its certificate
	lender.EnableHTTP2 = http2
	lender.StartTLS()
	defer lender.Close()
	protocols := []string{"http/1.1"}
	if http2 {
		protocols = []string{"h2", "http/1.1"}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	stage.Must(s.t, err)
	server := httpd.New(s.server.HTTP())
	config := &tls.Config{Certificates: lender.TLS.Certificates, NextProtos: protocols, MinVersion: tls.VersionTLS12}
	stop := stage.Run(s.t, func(ctx context.Context) error { return server.Serve(ctx, ln, config) })
	transport := lender.Client().Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2 = http2
	s.client, s.url = &http.Client{Transport: transport}, "https://"+ln.Addr().String()
	s.t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.server.Drain()
		stop()
	})
}

// TestAStreamOfARequestThatIsNotPlainIsTakenFromNetHTTP: a lane hands such a request over to net/http.
func TestAStreamOfARequestThatIsNotPlainIsTakenFromNetHTTP(t *testing.T) {
	s := openAtNoon(t)
	s.create(`{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`)
	s.claim("c", "a").want(t, 202, "waiting")
	s.claim("c", "b").want(t, 202, "waiting")
	b := s.follow("b", "Pragma", "no-cache")
	b.want("place", "1.2.1", `{`)
	s.serve()
	b.want("place", "1.2.0", `{`)
}
