package httpd

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"time"
)

// A lane is the first reader of a connection.
type lane struct {
	*Server
	conn   *conn
	from   string    // the client's address
	buffer []byte    // begins with the received part of a request
	began  time.Time // when the request began; zero if none of it has come yet
	posted bool      // the previous request was a POST
	// When the deadlines of an idle connection and of an answer were set; zero if not set.
	reads, writes time.Time
}

// laneBuffer is the size of a lane's buffer, as of net/http's. A request that does not fit goes to net/http.
const laneBuffer = 4 << 10

// A turn has the memory for answering a request, and is reused: a handler may keep only strings of it.
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

// An ending is how a lane continues after a request.
type ending int

const (
	goesOn ending = iota // the request is answered, and the lane continues
	over                 // the connection must be closed
	handed               // the connection goes to net/http, with the bytes in the buffer
	taken                // the handler has the connection
)

// lane answers the requests of a connection until one is not for a lane.
func (s *Server) lane(c *conn) {
	l := &lane{Server: s, conn: c, from: c.RemoteAddr().String(), buffer: make([]byte, 0, laneBuffer)}
	end := over
	defer func() {
		if cause := recover(); cause != nil && cause != http.ErrAbortHandler { //nolint:errorlint // as net/http compares
			s.Log.Error("a request failed on a fault of firstcome", "cause", cause, "stack", string(debug.Stack()))
		}
		if end != handed && end != taken {
			_ = c.Close()
		}
	}()
	// As with net/http, the first request's time begins with the connection.
	l.began = time.Now()
	if c.Conn.SetReadDeadline(l.began.Add(s.ReadHeaderTimeout)) != nil {
		return
	}
	for end = goesOn; end == goesOn; {
		end = over // if the handler panics
		end = l.next()
	}
	if end == handed {
		l.handOver()
	}
}

// next answers the next request.
func (l *lane) next() ending {
	l.buffer = l.buffer[:0]
	if _ = l.more(); len(l.buffer) == 0 {
		return over
	}
	t := l.turns.Get().(*turn)
	end := l.complete(t)
	if end == goesOn {
		end = l.answer(t)
	}
	if cap(t.out) <= maxKept {
		l.turns.Put(t)
	}
	return end
}

// maxKept is the size of the largest answer whose memory is reused.
const maxKept = 64 << 10

// more reads from the connection once.
func (l *lane) more() error {
	n, err := l.conn.Conn.Read(l.buffer[len(l.buffer):cap(l.buffer)])
	l.buffer = l.buffer[:len(l.buffer)+n]
	return err
}

// complete reads until the buffer has a whole request for a lane, or something that is not for a lane.
func (l *lane) complete(t *turn) ending {
	for {
		found := part
		if l.skipLine() {
			found = t.plain.read(l.buffer)
		}
		mine := (found == complete || found == headed && !l.BodyLast) && l.isShort(t.plain.method, t.plain.target)
		switch {
		case found == complete && mine:
			l.posted = t.plain.method == http.MethodPost
			return goesOn
		case found != part && !mine, len(l.buffer) == cap(l.buffer):
			return handed
		}
		err := l.wait(found)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), err != nil && len(l.buffer) < firstBytes:
			return over
		case err != nil:
			return handed // net/http will meet the same error, and may answer
		}
	}
}

// firstBytes is how many bytes net/http peeks at before it reads a request.
const firstBytes = 4

// skipLine drops an empty line after a POST, as net/http does. It returns false while nothing else has come.
func (l *lane) skipLine() bool {
	if !l.posted {
		return true
	}
	first := l.buffer[:min(len(l.buffer), firstBytes)]
	rest := bytes.TrimLeft(first, "\r\n")
	if len(rest) == 0 && len(first) < firstBytes {
		return false
	}
	l.posted = false
	l.buffer = l.buffer[:copy(l.buffer, l.buffer[len(first)-len(rest):])]
	return true
}

// wait reads more of a request that is incomplete.
func (l *lane) wait(found finding) error {
	if l.began.IsZero() {
		l.began = time.Now()
	}
	long := l.ReadHeaderTimeout
	if found == headed {
		long = l.ReadTimeout
		l.conn.idle.Store(false) // as net/http does
	}
	l.reads = time.Time{}
	if err := l.conn.Conn.SetReadDeadline(l.began.Add(long)); err != nil {
		return err
	}
	return l.more()
}

// answer answers a request, and marks the connection as waiting for the next one.
func (l *lane) answer(t *turn) ending {
	c := l.conn
	c.idle.Store(false)
	c.work()
	t.url = url.URL{Path: t.plain.target}
	t.body.Reset(t.plain.body)
	t.r = http.Request{
		Method: t.plain.method, URL: &t.url, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: t.plain.header, Host: t.plain.host, Body: &t.body, ContentLength: int64(len(t.plain.body)),
		RemoteAddr: l.from, RequestURI: t.plain.target,
	}
	t.reply.reset(c)
	if l.closing.Load() {
		t.reply.header["Connection"] = closing
	}
	l.Handler.ServeHTTP(&t.reply, &t.r)
	if t.reply.detached {
		return taken
	}
	t.reply.WriteHeader(http.StatusOK) // if the handler did not
	now := time.Now()
	c.rest(now.UnixNano())
	t.out = t.reply.appendTo(t.out[:0], now)
	if isDue(&l.writes, now, l.WriteTimeout) && c.Conn.SetWriteDeadline(now.Add(l.WriteTimeout)) != nil {
		return over
	}
	if _, err := c.Conn.Write(t.out); err != nil || t.reply.closes() {
		return over
	}
	if l.began = (time.Time{}); isDue(&l.reads, now, l.IdleTimeout) && c.Conn.SetReadDeadline(now.Add(l.IdleTimeout+l.IdleTimeout/16)) != nil { // never too early: a proxy trusts it
		return over
	}
	c.idle.Store(true)
	return goesOn
}

// isDue reports whether a connection's deadline must be renewed, and if so notes in renewed that it is renewed now. A deadline that lies
// long after its renewal may be a sixteenth of long too early, because renewing it costs more than the handler's own code.
func isDue(renewed *time.Time, now time.Time, long time.Duration) bool {
	if now.Sub(*renewed) < long/16 {
		return false
	}
	*renewed = now
	return true
}

// handOver gives the connection to net/http, with the bytes that the lane has read.
func (l *lane) handOver() {
	l.conn.replay, l.conn.handed = l.buffer, true
	select {
	case l.handed <- l.conn:
	case <-l.stopped:
		_ = l.conn.Close()
	}
}
