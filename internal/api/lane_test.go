package api

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/seed"
)

// A pipes is a listener of net.Pipe's connections, and the server's conns.
type pipes struct {
	*conns
	made   chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes {
	return &pipes{newConns(100), make(chan net.Conn), make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.made <- there
	return here
}

// An exchange is what a client got of a stream of requests, and what a handler saw.
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

var laneLimits = Limits{Header: 5 * time.Second, Read: 15 * time.Second, Write: 30 * time.Second, Idle: 2 * time.Minute}

// serve serves in lanes, or with net/http alone, until the test's end.
func serve(t *testing.T, handler http.Handler, laned bool) *pipes {
	var in *lanes
	if laned {
		in = newLanes(handler, laneLimits)
	}
	return serveIn(t, handler, in)
}

func serveIn(t *testing.T, handler http.Handler, in *lanes) *pipes {
	s := &http.Server{
		Handler: attend(handler), ConnState: noteState, ConnContext: keepConn,
		ReadHeaderTimeout: laneLimits.Header, ReadTimeout: laneLimits.Read, WriteTimeout: laneLimits.Write, IdleTimeout: laneLimits.Idle,
	}
	ln := newPipes()
	go func() { _ = s.Serve(ln.listener(ln, in)) }()
	t.Cleanup(func() { _ = s.Close() })
	return ln
}

// aWhile is longer than any answer takes, and no deadline.
const aWhile = 2 * time.Millisecond

// The ways in which a stream is answered.
const (
	alone = iota // by net/http
	inLanes
	withoutBodies // in lanes, and by net/http where a body is to come
)

// exchanged sends pieces of a stream, some of them only when all before is answered.
func exchanged(t *testing.T, way int, pieces []string, waits func(n int) bool) (e exchange) {
	synctest.Test(t, func(t *testing.T) {
		var in *lanes
		if way != alone {
			in = newLanes(http.HandlerFunc(e.handle), laneLimits)
			in.handsOver = way == withoutBodies
		}
		c := serveIn(t, http.HandlerFunc(e.handle), in).dial()
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
		time.Sleep(2 * laneLimits.Idle) // synctest's time: the server gives the connection up
		e.Answers = <-got
		_ = c.Close()
	})
	return e
}

var aSlowClaim = strings.Replace(aClaim, "user_id", "is_slow", 1)

// Of these are the streams. Some are plain, some not, and some hold what would be a claim if it
// stood elsewhere.
var streamed = []string{
	aClaim, aClaim, aSlowClaim, aSlowClaim,
	strings.Replace(aClaim, `"u"`, `"v"`, 1),
	with("Authorization: Bearer x"), with("Connection: keep-alive"), with("x-forwarded-for: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2"),
	with("Transfer-Encoding: chunked"), with("Content-Length: 15"), with("Expect: 100-continue"), with("Connection: close"),
	"GET /v1/campaigns/c HTTP/1.1\r\nHost: h\r\n\r\n", "GET /v1/campaigns/c HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /a HTTP/1.0\r\nHost: h\r\n\r\n", "GET /a HTTP/1.1\nHost: h\n\n", "\r\n", "\n", "garbage\r\n\r\n", "X" + aClaim,
	"POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	fmt.Sprintf("POST /v1/campaigns HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(aClaim), aClaim),
	fmt.Sprintf("POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(aClaim), aClaim),
	"POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nlast",
	"POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\nnothing",
	"POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n" + strings.Repeat("x", 5000),
	"GET /a HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 6000) + "\r\n\r\n",
}

// cut cuts a text into pieces.
func cut(random *rand.Rand, text string) (pieces []string) {
	for len(text) > 0 {
		n := len(text)
		if random.IntN(3) == 0 {
			n = 1 + random.IntN(n)
		}
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return pieces
}

// TestAConnectionIsAnsweredAsByNetHTTPAlone sends streams of requests, cut anywhere, to a server with
// lanes and to one without.
func TestAConnectionIsAnsweredAsByNetHTTPAlone(t *testing.T) {
	inLane := [3]int{}
	for from := range seed.Each(t, 1500) {
		random := rand.New(rand.NewPCG(from, 0))
		var pieces []string
		for range 1 + random.IntN(14) {
			text := streamed[random.IntN(8)] // plain
			if random.IntN(4) == 0 {
				text = streamed[random.IntN(len(streamed))]
			}
			if random.IntN(8) == 0 {
				text += streamed[random.IntN(len(streamed))]
			}
			pieces = append(pieces, cut(random, text)...)
		}
		patience := random.IntN(4)
		waits := func(n int) bool { return int(from+uint64(n)*7)%4 <= patience }
		want := exchanged(t, alone, pieces, waits)
		for way := inLanes; way <= withoutBodies; way++ {
			lanes := exchanged(t, way, pieces, waits)
			inLane[way] += lanes.lane
			lanes.lane = 0
			if difference := cmp.Diff(want, lanes, cmp.AllowUnexported(exchange{})); difference != "" {
				t.Fatalf("seed %d, %d: %s\nof %q", from, way, difference, pieces)
			}
		}
	}
	if !seed.Given() && (inLane[inLanes] < 1000 || inLane[withoutBodies] < 500) {
		t.Errorf("only %d requests were answered in a lane", inLane)
	}
}

// Asked sends a request and returns the answer.
func Asked(t *testing.T, c net.Conn, text string) *http.Response {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	return r
}

// TestALaneAnswersNothingBehindAByteThatNetHTTPHas: net/http takes a byte of the next request while it
// answers the one before. What follows looks like a claim, and is the rest of that request.
func TestALaneAnswersNothingBehindAByteThatNetHTTPHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var methods []string
		c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			methods = append(methods, r.Method)
			time.Sleep(time.Second) // synctest's time
		}), true).dial()
		for _, text := range []string{aClaim, "X"} {
			if _, err := io.WriteString(c, text); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		Asked(t, c, aClaim)
		if difference := cmp.Diff([]string{"POST", "XPOST"}, methods); difference != "" {
			t.Error(difference)
		}
	})
}

// TestALaneGoesOnBehindABodyThatCameLate: net/http had the request, with its body.
func TestALaneGoesOnBehindABodyThatCameLate(t *testing.T) {
	head := strings.Index(aClaim, blank) + len(blank)
	for _, refused := range []string{"", "Authorization: Bearer x\r\n"} { // before its body
		synctest.Test(t, func(t *testing.T) {
			var e exchange
			in := newLanes(http.HandlerFunc(e.handle), laneLimits)
			in.handsOver = true
			c := serveIn(t, http.HandlerFunc(e.handle), in).dial()
			Asked(t, c, aClaim)
			synctest.Wait()
			for _, piece := range []string{aClaim[:head-2] + refused + aClaim[head-2:head], aClaim[head : head+5], aClaim[head+5 : len(aClaim)-1]} {
				if _, err := io.WriteString(c, piece); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			Asked(t, c, aClaim[len(aClaim)-1:])
			synctest.Wait()
			if Asked(t, c, aClaim); e.lane != 1 {
				t.Errorf("%d claims of %q are answered in the lane, not the last of 3", e.lane, e.Calls)
			}
		})
	}
}

func TestALaneGoesOnBehindWhatNetHTTPAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e exchange
		c := serve(t, http.HandlerFunc(e.handle), true).dial()
		for n, want := range []int{0, 1, 2, 2, 2, 3, 3, 3, 4} {
			text := aClaim
			if n == 3 || n == 6 {
				text = "GET /v1/facts?from=1 HTTP/1.1\r\nHost: h\r\n\r\n"
			}
			Asked(t, c, text)
			synctest.Wait()
			if e.lane != want {
				t.Errorf("behind request %d there were %d in the lane, not %d", n, e.lane, want)
			}
		}
	})
}

// TestALaneGoesOnBehindWhatBeganEarly: net/http has a byte of each request that is sent while it answers
// the one before, and answers that, too. Behind it the lane goes on, if it was plain and alone.
func TestALaneGoesOnBehindWhatBeganEarly(t *testing.T) {
	const aGet, later = "GET /v1/facts HTTP/1.1\r\nHost: h\r\n\r\n", ""
	for _, c := range []struct {
		what    string
		sent    []string // each before the one before is answered, or behind it and later
		inLanes int
	}{
		{"a claim", []string{aSlowClaim, aClaim, later, aClaim}, 1},
		{"many", []string{aSlowClaim, aSlowClaim, aSlowClaim, aClaim, later, aClaim, later, aClaim}, 2},
		{"a claim in pieces", []string{aSlowClaim, aClaim[:1], later, aClaim[1:60], later, aClaim[60:], later, aClaim}, 1},
		{"again", []string{aSlowClaim, aClaim, later, aGet, later, aSlowClaim, aClaim, later, aClaim}, 1},
		{"no POST", []string{aSlowClaim, aGet, later, aClaim, later, aClaim}, 1},
		{"two claims", []string{aSlowClaim, aClaim + aClaim, later, aClaim, later, aClaim}, 0},
		{"what is not plain", []string{aSlowClaim, with("Expect: 100-continue"), later, aClaim, later, aClaim}, 0},
		{"what would be a claim", []string{aSlowClaim, "X" + aClaim, later, aClaim, later, aClaim}, 0},
		{"an empty line", []string{aSlowClaim, "\r\n" + aClaim, later, aClaim, later, aClaim}, 0},
	} {
		pieces, waits := []string{}, map[int]bool{}
		for _, piece := range c.sent {
			if piece == later {
				waits[len(pieces)] = true
				continue
			}
			pieces = append(pieces, piece)
		}
		waiting := func(n int) bool { return waits[n] }
		e, want := exchanged(t, inLanes, pieces, waiting), exchanged(t, alone, pieces, waiting)
		if e.lane != c.inLanes {
			t.Errorf("behind %s there were %d in the lane, not %d", c.what, e.lane, c.inLanes)
		}
		e.lane = 0
		if difference := cmp.Diff(want, e, cmp.AllowUnexported(exchange{})); difference != "" {
			t.Errorf("%s: %s", c.what, difference)
		}
	}
}

// TestALaneEndsWhereNetHTTPReadsAheadMoreThanAByte, as it does in no version there is.
func TestALaneEndsWhereNetHTTPReadsAheadMoreThanAByte(t *testing.T) {
	for text, want := range map[string]stage{"P": waiting, "PO": apart} {
		l := &lane{lanes: newLanes(nil, laneLimits), stage: during, posted: true}
		if n, err := l.read(&conn{Conn: textConn{Reader: strings.NewReader(text)}}, make([]byte, 8)); n != len(text) || err != nil {
			t.Errorf("it reads %d of %q: %v", n, text, err)
		}
		if l.idle(); l.stage != want {
			t.Errorf("behind %q its stage is %d", text, l.stage)
		}
	}
}

// A textConn is a connection on which a text came, and nothing else will.
type textConn struct {
	io.Reader
	net.Conn
}

func (c textConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func (textConn) SetReadDeadline(time.Time) error { return nil }

// TestF30ALaneCutsWhoIsSlowOrIdle, and no later than net/http alone would.
func TestF30ALaneCutsWhoIsSlowOrIdle(t *testing.T) {
	for what, c := range map[string]struct {
		sent []string // a second apart
		took time.Duration
	}{
		"an idler":                  {nil, laneLimits.Idle},
		"half a head":               {[]string{aClaim[:60]}, laneLimits.Header},
		"a head in pieces":          {[]string{aClaim[:60], aClaim[60:70], aClaim[70:80]}, laneLimits.Header},
		"half a body":               {[]string{aClaim[:len(aClaim)-3]}, laneLimits.Read},
		"a body in pieces":          {[]string{aClaim[:60], aClaim[60 : len(aClaim)-3], aClaim[len(aClaim)-3 : len(aClaim)-1]}, laneLimits.Read},
		"another request's head":    {[]string{"GET /a HTTP/1.1\r\nX-Slow: "}, laneLimits.Header},
		"a body that is no claim's": {[]string{"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n12345678"}, laneLimits.Read},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e exchange
				conn := serve(t, http.HandlerFunc(e.handle), true).dial()
				for range 3 {
					Asked(t, conn, aClaim)
					synctest.Wait()
				}
				began := time.Now()
				for _, piece := range c.sent {
					if _, err := io.WriteString(conn, piece); err != nil {
						t.Fatal(err)
					}
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

// TestF22AClaimWhoseBodyIsOnItsWayIsNotCutAsIdle: many clients send head and body apart. One that
// sends half a head is as idle as before it.
func TestF22AClaimWhoseBodyIsOnItsWayIsNotCutAsIdle(t *testing.T) {
	head := strings.Index(aClaim, blank) + len(blank)
	for n, open := range map[int]int{0: 0, head - 1: 0, head: 1, len(aClaim) - 1: 1} {
		synctest.Test(t, func(t *testing.T) {
			var e exchange
			in := serve(t, http.HandlerFunc(e.handle), true)
			c := in.dial()
			for range 3 {
				Asked(t, c, aClaim)
				synctest.Wait()
			}
			if _, err := io.WriteString(c, aClaim[:n]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // synctest's time
			if got := in.closeIdle(2 * time.Second); got != 1 {
				t.Errorf("behind %d bytes it is cut before it has been idle for so long", n)
			}
			if got := in.closeIdle(time.Second); got != open {
				t.Errorf("behind %d bytes %d connections are open, not %d", n, got, open)
			}
			if open > 0 {
				Asked(t, c, aClaim[n:])
			}
		})
	}
}

// TestAConnectionInUseIsNotCutForBeingIdle sends claims for longer than one may be idle, some in pieces.
func TestAConnectionInUseIsNotCutForBeingIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e exchange
		c := serve(t, http.HandlerFunc(e.handle), true).dial()
		for range 20 {
			Asked(t, c, aClaim)
			if _, err := io.WriteString(c, aClaim[:len(aClaim)-1]); err != nil {
				t.Fatal(err)
			}
			Asked(t, c, aClaim[len(aClaim)-1:])
			time.Sleep(laneLimits.Idle / 4) // synctest's time
		}
	})
}

// TestF30ALaneCutsWhoDoesNotReadItsAnswer: a pipe holds nothing, so that a write waits for who reads. What
// net/http answers in between leaves no deadline.
func TestF30ALaneCutsWhoDoesNotReadItsAnswer(t *testing.T) {
	const aGet = "GET /v1/facts HTTP/1.1\r\nHost: h\r\n\r\n"
	for _, before := range [][]string{{aClaim}, {aClaim, aClaim, aClaim}, {aClaim, aClaim, aClaim, aGet, aClaim}} {
		synctest.Test(t, func(t *testing.T) {
			var e exchange
			c := serve(t, http.HandlerFunc(e.handle), true).dial()
			for _, text := range before {
				Asked(t, c, text)
				synctest.Wait()
			}
			inLane := e.lane
			if _, err := io.WriteString(c, aClaim); err != nil {
				t.Fatal(err)
			}
			time.Sleep(laneLimits.Write) // synctest's time
			synctest.Wait()
			cut := time.Now()
			if _, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil || time.Since(cut) > 0 {
				t.Errorf("behind %d requests it waits for longer", len(before))
			}
			if e.lane != inLane+1 {
				t.Errorf("behind %d requests it was not in the lane", len(before))
			}
		})
	}
}

func TestADeadlineIsSetAnewWhenASixteenthOfItIsOver(t *testing.T) {
	var set time.Time
	now := time.Now()
	for _, c := range []struct {
		later time.Duration
		want  bool
	}{{0, true}, {0, false}, {time.Second - 1, false}, {time.Second, true}, {time.Second, false}, {2 * time.Second, true}} {
		if got := isDue(&set, now.Add(c.later), 16*time.Second); got != c.want {
			t.Errorf("%v later it is due: %t", c.later, got)
		}
	}
}

// TestAPanicInALaneEndsItsConnection panics as net/http wants it of a handler that gives up.
func TestAPanicInALaneEndsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		in := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) == 2 {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, "ok")
		}), true)
		c := in.dial()
		Asked(t, c, aClaim)
		synctest.Wait()
		if _, err := io.WriteString(c, aClaim); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); n > 0 || err != io.EOF {
			t.Errorf("it answers %d bytes, %v", n, err)
		}
		Asked(t, in.dial(), aClaim)
	})
}
