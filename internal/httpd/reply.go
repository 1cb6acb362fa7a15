package httpd

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// A reply is an http.ResponseWriter that keeps what the handler writes. Unlike net/http's it trusts the handler: the status allows a body, no header
// value has a line break, a body has a Content-Type, and Date and Content-Length are not set.
type reply struct {
	header http.Header
	status int
	body   []byte

	conn     *conn // the connection of the request
	detached bool  // the handler took conn
}

// reset prepares the reply for a request of a connection.
func (r *reply) reset(c *conn) {
	if r.header == nil {
		r.header = http.Header{}
	}
	clear(r.header)
	r.status, r.body = 0, r.body[:0]
	r.conn, r.detached = c, false
}

func (r *reply) Header() http.Header { return r.header }

func (r *reply) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *reply) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.body = append(r.body, b...)
	return len(b), nil
}

// closes reports whether the reply is the last of its connection.
func (r *reply) closes() bool { return r.header["Connection"] != nil }

// appendTo appends the reply as HTTP/1.1.
func (r *reply) appendTo(b []byte, now time.Time) []byte {
	return append(appendHead(b, r.status, r.header, now, len(r.body)), r.body...)
}

// appendHead appends the head of an answer. A negative length means that the body ends with the connection.
func appendHead(b []byte, status int, header http.Header, now time.Time, length int) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	b = append(b, "\r\n"...)
	for name, values := range header {
		for _, value := range values {
			b = append(b, name...)
			b = append(b, ": "...)
			b = append(b, value...)
			b = append(b, "\r\n"...)
		}
	}
	b = append(b, "Date: "...)
	b = append(b, dateOf(now)...)
	if length >= 0 {
		b = append(b, "\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(length), 10)
	}
	return append(b, blank...)
}

// A date is the value of the header Date in one second.
type date struct {
	second int64
	text   string
}

// lastDate is the last date used.
var lastDate atomic.Pointer[date]

// dateOf returns the value of the header Date for a time. It is formatted once a second, because that costs as much as the rest of a head.
func dateOf(now time.Time) string {
	last := lastDate.Load()
	if second := now.Unix(); last == nil || last.second != second {
		last = &date{second, now.UTC().Format(http.TimeFormat)}
		lastDate.Store(last)
	}
	return last.text
}
