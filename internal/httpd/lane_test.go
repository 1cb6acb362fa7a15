package httpd_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome/internal/httpd"
)

// An exchange is the answers to a stream of requests, and the calls of the handler.
type exchange struct {
	Answers []string
	Calls   []string
	lane    int // of the calls, those that did not come by net/http
}

// handle notes a call and answers with its number.
func (e *exchange) handle(w http.ResponseWriter, r *http.Request) {
	if r.Context().Value(http.ServerContextKey) == nil {
		e.lane++
	}
	var body []byte
	var err error
	if r.Header["Authorization"] == nil { // else it is refused before its body, which net/http reads then
		body, err = io.ReadAll(r.Body)
	}
	if strings.Contains(string(body), "slow") {
		time.Sleep(aWhile / 2) // synctest's time: what comes meanwhile net/http begins to read
	}
	e.Calls = append(e.Calls, fmt.Sprintf("%s %s %s %s %s %d %v %v: %q, %v", r.Method, r.URL, r.RequestURI, r.Host, r.Proto, r.ContentLength, r.RemoteAddr, r.Header, body, err))
	if strings.Contains(string(body), "nothing") {
		return
	}
	h := w.Header()
	h["Content-Type"] = []string{"text/plain"}
	h["X-Twice"] = []string{"a", "b"}
	if strings.Contains(string(body), "last") {
		h["Connection"] = []string{"close"}
	}
	w.WriteHeader(http.StatusOK + len(e.Calls)%3)
	fmt.Fprintf(w, "answer %d to ", len(e.Calls))
	if n, err := w.Write(body); n != len(body) || err != nil {
		e.Calls = append(e.Calls, fmt.Sprintf("wrote %d: %v", n, err))
	}
}

// aWhile is longer than any answer takes, and shorter than any deadline.
const aWhile = 2 * time.Millisecond

// The ways in which a stream is answered.
const (
	alone = iota // by net/http
	inLanes
	bodiesLast // in lanes, and by net/http where a body is to come
)

// exchanged sends pieces of a stream, some of them only after all earlier requests are answered.
func exchanged(t *testing.T, way int, pieces []string, waits func(n int) bool) (e exchange) {
	synctest.Test(t, func(t *testing.T) {
		in := config(e.handle)
		if in.BodyLast = way == bodiesLast; way == alone {
			in.Short = nil
		}
		c := open(t, in).dial()
		got, read := make(chan []string), bufio.NewReader(c)
		go func() {
			var answers []string
			for {
				r, err := http.ReadResponse(read, nil)
				if err != nil {
					got <- answers
					return
				}
				body, err := io.ReadAll(r.Body)
				answers = append(answers, fmt.Sprintf("%s %v %t: %q, %v", r.Status, r.Header, r.Close, body, err))
			}
		}()
		for n, piece := range pieces {
			if waits(n) {
				time.Sleep(aWhile) // synctest's time
			}
			if _, err := io.WriteString(c, piece); err != nil {
				break
			}
		}
		time.Sleep(2 * limits.IdleTimeout) // synctest's time: the server gives the connection up
		e.Answers = <-got
		_ = c.Close()
	})
	return e
}

var aSlowClaim = strings.Replace(httpd.AClaim, "user_id", "is_slow", 1)

// The streams are made of these requests. Some are plain, some are not, and some contain the text of a claim in another place.
var streamed = []string{
	httpd.AClaim, httpd.AClaim, aSlowClaim, aSlowClaim,
	strings.Replace(httpd.AClaim, `"u"`, `"v"`, 1),
	httpd.With("Authorization: Bearer x"), httpd.With("Connection: keep-alive"), httpd.With("x-forwarded-for: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2"),
	httpd.With("Transfer-Encoding: chunked"), httpd.With("Content-Length: 15"), httpd.With("Expect: 100-continue"), httpd.With("Connection: close"),
	"GET /v1/campaigns/c HTTP/1.1\r\nHost: h\r\n\r\n", "GET /v1/campaigns/c HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /a HTTP/1.0\r\nHost: h\r\n\r\n", "GET /a HTTP/1.1\nHost: h\n\n", "\r\n", "\r\n\r\n\r\n", "\n", "garbage\r\n\r\n", "X" + httpd.AClaim,
	"POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	fmt.Sprintf("POST /v1/campaigns HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(httpd.AClaim), httpd.AClaim),
	fmt.Sprintf("POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(httpd.AClaim), httpd.AClaim),
	"POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nlast",
	"POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\nnothing",
	"POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n" + strings.Repeat("x", 5000),
	"GET /a HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 6000) + "\r\n\r\n",
}

// aGet is plain but not short.
const aGet = "GET /v1/facts HTTP/1.1\r\nHost: h\r\n\r\n"

// TestAConnectionIsNetHTTPsBehindTheFirstRequestThatIsNotForALane checks that the connection never returns to a lane.
func TestAConnectionIsNetHTTPsBehindTheFirstRequestThatIsNotForALane(t *testing.T) {
	for what, other := range map[string]string{
		"another route": aGet, "what is not plain": httpd.With("TE: trailers"), "two claims": httpd.AClaim + httpd.AClaim,
		"a long request": httpd.With("X: " + strings.Repeat("x", 4<<10)),
	} {
		synctest.Test(t, func(t *testing.T) {
			var e exchange
			c := open(t, config(e.handle)).dial()
			answers := bufio.NewReader(c)
			next := func() *http.Response {
				r, err := http.ReadResponse(answers, nil)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				_, _ = io.Copy(io.Discard, r.Body)
				return r
			}
			for _, text := range []string{httpd.AClaim, "\r\n" + httpd.AClaim, httpd.AClaim, other, httpd.AClaim} {
				go func() { _, _ = io.WriteString(c, text) }()
				synctest.Wait()
				if _ = next(); text == httpd.AClaim+httpd.AClaim {
					next()
				}
			}
			if e.lane != 3 {
				t.Errorf("%s: %d requests were answered in the lane, not 3", what, e.lane)
			}
		})
	}
}

// TestAConnectionThatWasHandedOverIsClosedByItsSixtyFourthAnswer also checks that no other connection is closed: neither in a lane, nor without
// lanes.
func TestAConnectionThatWasHandedOverIsClosedByItsSixtyFourthAnswer(t *testing.T) {
	for _, c := range []struct {
		text  string
		short []httpd.Route
		last  int // 0: none
	}{{aGet, short, 64}, {httpd.AClaim, short, 0}, {aGet, nil, 0}} {
		synctest.Test(t, func(t *testing.T) {
			var e exchange
			in := config(e.handle)
			in.Short = c.short
			conn := open(t, in).dial()
			for n := range 200 {
				if r := ask(t, conn, c.text); r.Close != (n+1 == c.last) {
					t.Fatalf("answer %d of %d closes: %t", n+1, c.last, r.Close)
				} else if r.Close {
					break
				}
				synctest.Wait()
			}
		})
	}
}

// TestAHandlerMayComeBeforeTheBody checks that with BodyLast a lane does not wait for a body.
func TestAHandlerMayComeBeforeTheBody(t *testing.T) {
	for _, last := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			began := 0
			in := config(func(_ http.ResponseWriter, r *http.Request) {
				began++
				_, _ = io.ReadAll(r.Body)
			})
			in.BodyLast = last
			c := open(t, in).dial()
			ask(t, c, httpd.AClaim)
			synctest.Wait()
			send(t, c, httpd.AClaim[:len(httpd.AClaim)-1])
			synctest.Wait()
			if early := began == 2; early != last {
				t.Errorf("BodyLast is %t, and the handler comes before the body: %t", last, early)
			}
			ask(t, c, httpd.AClaim[len(httpd.AClaim)-1:])
		})
	}
}

// TestF30SlowClientsAndIdlersAreCut checks that a lane cuts them no later than net/http alone, but an idler up to a sixteenth of its time later.
func TestF30SlowClientsAndIdlersAreCut(t *testing.T) {
	const claim = httpd.AClaim
	for what, c := range map[string]struct {
		claims int      // before
		sent   []string // a second apart
		took   time.Duration
	}{
		"who sends nothing":         {0, nil, limits.ReadHeaderTimeout},
		"who sends half a claim":    {0, []string{claim[:60]}, limits.ReadHeaderTimeout},
		"an idler":                  {3, nil, limits.IdleTimeout + limits.IdleTimeout/16},
		"half a head":               {3, []string{claim[:60]}, limits.ReadHeaderTimeout},
		"half an empty line":        {3, []string{"\r"}, limits.ReadHeaderTimeout},
		"a head in pieces":          {3, []string{claim[:60], claim[60:70], claim[70:80]}, limits.ReadHeaderTimeout},
		"half a body":               {3, []string{claim[:len(claim)-3]}, limits.ReadTimeout},
		"a body in pieces":          {3, []string{claim[:60], claim[60 : len(claim)-3], claim[len(claim)-3 : len(claim)-1]}, limits.ReadTimeout},
		"another request's head":    {3, []string{"GET /a HTTP/1.1\r\nX-Slow: "}, limits.ReadHeaderTimeout},
		"what is not plain":         {3, []string{"GET /a HTTP/1.0\r\nX-Slow: "}, limits.ReadHeaderTimeout},
		"a body that is no claim's": {3, []string{"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n12345678"}, limits.ReadTimeout},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e exchange
				conn := open(t, config(e.handle)).dial()
				for range c.claims {
					ask(t, conn, claim)
					synctest.Wait()
				}
				began := time.Now()
				for _, piece := range c.sent {
					send(t, conn, piece)
					time.Sleep(time.Second) // synctest's time
				}
				_, _ = io.Copy(io.Discard, conn)
				if took := time.Since(began); took != c.took {
					t.Errorf("it is cut behind %v, not %v", took, c.took)
				}
			})
		})
	}
}

// TestAConnectionInUseIsNotCutForBeingIdle sends claims for longer than a connection may be idle, some in pieces.
func TestAConnectionInUseIsNotCutForBeingIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e exchange
		c := open(t, config(e.handle)).dial()
		for range 20 {
			ask(t, c, httpd.AClaim)
			send(t, c, httpd.AClaim[:len(httpd.AClaim)-1])
			ask(t, c, httpd.AClaim[len(httpd.AClaim)-1:])
			time.Sleep(limits.IdleTimeout / 4) // synctest's time
		}
		if e.lane != 40 {
			t.Errorf("%d of 40 claims were answered in the lane", e.lane)
		}
	})
}

// TestF30AClientThatDoesNotReadItsAnswerIsCut uses a pipe, which has no buffer, so a write waits for its reader.
func TestF30AClientThatDoesNotReadItsAnswerIsCut(t *testing.T) {
	for before, text := range []string{httpd.AClaim, aGet, httpd.AClaim, aGet} {
		synctest.Test(t, func(t *testing.T) {
			var e exchange
			c := open(t, config(e.handle)).dial()
			for range before {
				ask(t, c, httpd.AClaim)
				synctest.Wait()
			}
			send(t, c, text)
			time.Sleep(limits.WriteTimeout) // synctest's time
			synctest.Wait()
			cut := time.Now()
			if _, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil || time.Since(cut) > 0 {
				t.Errorf("behind %d requests it waits for longer", before)
			}
			if inLane := e.lane > before; inLane != (text == httpd.AClaim) {
				t.Errorf("behind %d requests %q is in the lane: %t", before, text, inLane)
			}
		})
	}
}

// TestAPanicInALaneEndsItsConnection covers http.ErrAbortHandler and any other panic. Other connections continue.
func TestAPanicInALaneEndsItsConnection(t *testing.T) {
	for _, cause := range []any{http.ErrAbortHandler, "a fault"} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			in := open(t, config(func(w http.ResponseWriter, _ *http.Request) {
				if calls.Add(1) == 2 {
					panic(cause)
				}
				_, _ = io.WriteString(w, "ok")
			}))
			c := in.dial()
			ask(t, c, httpd.AClaim)
			send(t, c, httpd.AClaim)
			if n, err := c.Read(make([]byte, 1)); n > 0 || err != io.EOF {
				t.Errorf("it answers %d bytes, %v", n, err)
			}
			ask(t, in.dial(), httpd.AClaim)
			synctest.Wait()
			if open, _, _ := in.Connections(); open != 1 {
				t.Errorf("%d connections are open, not the second alone", open)
			}
		})
	}
}

// TestALargeAnswerIsWhole also checks the next answer of the connection.
func TestALargeAnswerIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const large = 1 << 20
		c := open(t, config(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, large)) })).dial()
		for range 3 {
			if r := ask(t, c, httpd.AClaim); r.ContentLength != large {
				t.Errorf("an answer has %d bytes", r.ContentLength)
			}
		}
	})
}

// TestAnIdleConnectionIsKeptForItsWholeTime asks twice, the second time before a lane renews its deadline, and once more when a proxy that gives up
// its connections a little earlier still uses one.
func TestAnIdleConnectionIsKeptForItsWholeTime(t *testing.T) {
	for what, short := range map[string][]httpd.Route{"in a lane": short, "at net/http": nil} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := config(func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = []string{"text/plain"} })
				in.Short, in.IdleTimeout = short, 620*time.Second
				c := open(t, in).dial()
				for _, later := range []time.Duration{0, 30 * time.Second, 619 * time.Second} {
					time.Sleep(later) // synctest's time
					ask(t, c, httpd.AClaim)
				}
				began := time.Now()
				if _, err := c.Read(make([]byte, 1)); err == nil {
					t.Error("it is not closed")
				}
				if idle := time.Since(began); idle < in.IdleTimeout || idle > in.IdleTimeout+in.IdleTimeout/16 {
					t.Errorf("it is closed after %v", idle)
				}
			})
		})
	}
}
