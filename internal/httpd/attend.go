package httpd

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"
)

// The field waits of a connection means: if positive, the connection has waited for its client since this time, in nanoseconds since 1970; if
// negative, this many of its requests are at work. A request that reads its body or writes its answer is not at work: it waits for the client.

// work notes that a request of the connection is at work.
func (c *conn) work() {
	for {
		was := c.waits.Load()
		if c.waits.CompareAndSwap(was, min(was, 0)-1) {
			return
		}
	}
}

// rest notes that a request is no longer at work, and has waited for the client since a time in nanoseconds since 1970.
func (c *conn) rest(since int64) {
	for {
		was := c.waits.Load()
		now := was + 1
		if now == 0 {
			now = since
		}
		if c.waits.CompareAndSwap(was, now) {
			return
		}
	}
}

// connOf returns the conn that net/http's server got, perhaps below TLS.
func connOf(nc net.Conn) *conn {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	return nc.(*conn)
}

type connKey struct{}

// keepConn serves as http.Server.ConnContext. It puts the connection into the context of each request.
func keepConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(nc))
}

// attend is the handler of net/http's server. It notes when each request is at work and when it waits for its client, and makes the last answer of a
// connection close it.
func (s *Server) attend(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connKey{}).(*conn)
	c.work()
	defer func() { c.rest(time.Now().UnixNano()) }()
	if s.closing.Load() || c.isLast() {
		w.Header()["Connection"] = closing
	}
	a := &attended{ResponseWriter: w, conn: c, request: *r, body: r.Body}
	a.request.Body = (*attendedBody)(a) // the request of net/http keeps its own body, which net/http reads after the answer
	s.Handler.ServeHTTP(a, &a.request)
}

// isLast counts a request of a connection that a lane handed over, and reports whether it is the last.
func (c *conn) isLast() bool {
	if !c.handed {
		return false
	}
	c.asked++
	return c.asked >= lastAnswer
}

// An attended is a request and its answer. It notes when they wait for the client.
type attended struct {
	http.ResponseWriter
	conn    *conn
	request http.Request
	body    io.ReadCloser
	reads   int64 // when reading of the body began: a client gains nothing by sending it byte by byte
}

// wait notes that the request waits for the client, until over is called.
func (a *attended) wait(since int64) (over func()) {
	a.conn.rest(since)
	return a.conn.work
}

func (a *attended) Write(part []byte) (int, error) {
	defer a.wait(time.Now().UnixNano())()
	return a.ResponseWriter.Write(part)
}

// FlushError serves http.ResponseController.
func (a *attended) FlushError() error {
	defer a.wait(time.Now().UnixNano())()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap serves http.ResponseController.
func (a *attended) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// An attendedBody is the body of an attended request.
type attendedBody attended

func (b *attendedBody) Read(p []byte) (int, error) {
	if b.reads == 0 {
		b.reads = time.Now().UnixNano()
	}
	defer (*attended)(b).wait(b.reads)()
	return b.body.Read(p)
}

func (b *attendedBody) Close() error { return b.body.Close() }
