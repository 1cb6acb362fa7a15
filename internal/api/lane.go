package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
)

// A lane answers, beneath net/http, the claims of a connection that are plain. It stands between a server
// of net/http and the connection, and gives net/http what comes. But while net/http waits for the next
// request, and what comes is a plain claim and nothing else, it calls the handler
// itself, writes the answer, and lets net/http wait on. That saves most of what a
// request costs there; adr 15 has the figures.
//
// It must know where a request begins: bytes of one client's body, read as another's
// request, would be a hole. It knows if net/http was given one plain request, not a byte
// more, and says now that it waits for the next. A request of which net/http took the first
// byte early is net/http's, and if it proves to be a plain one, the lane
// knows again behind it. A connection on which it was ever otherwise is net/http's alone.
type lane struct {
	*lanes
	from   string // the client's address
	stage  stage
	posted bool   // the last request that net/http had was a POST
	rest   int    // of the bytes of that request's body, those that net/http was not given yet
	early  []byte // what net/http has of the next request already: nothing, or a byte
	// When the deadlines of reading and writing were set; zero: they are net/http's.
	reads, writes time.Time
}

// A stage is where net/http is with a connection.
type stage int

const (
	waiting stage = iota // it waits for a request
	between              // it waits, and what comes may be answered here
	during               // it answers a plain request
	apart                // it was given what is not a plain request
)

// lanes are what the lanes of a server share.
type lanes struct {
	handler http.Handler
	limits  Limits
	// handsOver has net/http answer a request whose body is still to come: there its address
	// is counted before its body is waited for.
	handsOver bool
	turns     sync.Pool // of *turn
}

func newLanes(h http.Handler, l Limits) *lanes {
	return &lanes{handler: h, limits: l, turns: sync.Pool{New: func() any { return &turn{} }}}
}

// A turn is what it takes to answer a request, and is used again for another: the handler keeps nothing
// of it but strings.
type turn struct {
	plain plain
	r     http.Request
	url   url.URL
	body  body
	reply reply
	out   []byte
}

type body struct{ bytes.Reader }

func (*body) Close() error { return nil }

// idle notes that net/http waits for the connection's next request. Only behind a POST it skips an
// empty line. So a lane answers claims, which are POSTs, only where the last request that net/http
// had was one, too: then it does the same with such a line as it would without a lane.
func (l *lane) idle() {
	l.reads, l.writes = time.Time{}, time.Time{}
	switch {
	case l.stage != during:
	case l.rest > 0: // where the next request begins is not certain
		l.stage = apart
	case l.posted && len(l.early) == 0:
		l.stage = between
	default:
		l.stage = waiting
	}
}

// read is the connection's Read.
func (l *lane) read(c *conn, p []byte) (int, error) {
	switch l.stage {
	case apart:
		return c.Conn.Read(p)
	case during: // net/http looks whether the client has gone away: a byte behind the body begins the next request
		n, err := c.Conn.Read(p)
		body := min(n, l.rest)
		l.rest -= body
		if l.early = append(l.early, p[body:n]...); len(l.early) > 1 {
			l.stage = apart
		}
		return n, err
	}
	for {
		n, err := c.Conn.Read(p)
		if err != nil {
			l.stage = apart
			return n, err
		}
		t := l.turns.Get().(*turn)
		n, found, err := l.complete(c, p, n, t)
		mine := l.stage == between && found == whole && t.plain.isClaim()
		posted, rest := t.plain.method == http.MethodPost, t.plain.rest
		if mine {
			err = l.answer(c, t)
		}
		l.turns.Put(t)
		switch {
		case err != nil:
			return 0, err
		case mine:
			continue
		case found == whole, found == headed:
			l.stage, l.posted, l.rest, l.early = during, posted, rest, l.early[:0]
		default:
			l.stage = apart
		}
		return n, nil
	}
}

// complete reads on while the n bytes of p may become a plain request. An error says that it took too long.
func (l *lane) complete(c *conn, p []byte, n int, t *turn) (int, finding, error) {
	var began time.Time
	for {
		found := t.plain.read(l.request(t, p[:n]))
		if found != part && (found != headed || l.handsOver) {
			return n, found, nil
		}
		if n == len(p) {
			return n, other, nil
		}
		if began.IsZero() {
			began, l.reads = time.Now(), time.Time{}
		}
		long := l.limits.Header
		if found == headed {
			long = l.limits.Read
			c.idleSince.Store(0) // as net/http has it
		}
		if err := c.Conn.SetReadDeadline(began.Add(long)); err != nil {
			return n, other, nil // the next Read says it again
		}
		more, err := c.Conn.Read(p[n:])
		n += more
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return 0, other, err
		case err != nil:
			return n, other, nil
		}
	}
}

// request returns what there is of a request: what net/http has of it already, and what came now.
func (l *lane) request(t *turn, came []byte) []byte {
	if len(l.early) == 0 {
		return came
	}
	t.out = append(append(t.out[:0], l.early...), came...)
	return t.out
}

// answer answers a claim and makes the connection wait for the next request.
func (l *lane) answer(c *conn, t *turn) error {
	c.idleSince.Store(0)
	c.work()
	t.url = url.URL{Path: t.plain.target}
	t.body.Reset(t.plain.body)
	t.r = http.Request{
		Method: t.plain.method, URL: &t.url, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: t.plain.header, Host: t.plain.host, Body: &t.body, ContentLength: int64(len(t.plain.body)),
		RemoteAddr: l.from, RequestURI: t.plain.target,
	}
	t.reply.reset()
	l.handler.ServeHTTP(&t.reply, &t.r)
	t.reply.WriteHeader(http.StatusOK) // if the handler did not
	now := time.Now()
	c.rest(now.UnixNano())
	t.out = t.reply.appendTo(t.out[:0], now)
	if isDue(&l.writes, now, l.limits.Write) {
		if err := c.Conn.SetWriteDeadline(now.Add(l.limits.Write)); err != nil {
			return err
		}
	}
	if _, err := c.Conn.Write(t.out); err != nil {
		return err
	}
	if t.reply.closes() {
		return io.EOF
	}
	if isDue(&l.reads, now, l.limits.Idle) {
		if err := c.Conn.SetReadDeadline(now.Add(l.limits.Idle)); err != nil {
			return err
		}
	}
	c.idleSince.Store(now.UnixNano())
	return nil
}

// isDue tells whether it is time to set a deadline anew, which was set to be so long behind the instant
// set, and if so makes that instant now. Setting one costs more than the claim's own code, so it
// may be a sixteenth of its time early.
func isDue(set *time.Time, now time.Time, long time.Duration) bool {
	if now.Sub(*set) < long/16 {
		return false
	}
	*set = now
	return true
}
