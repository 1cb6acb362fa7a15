package load

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// A fleet is the wires to all nodes.
type fleet struct {
	wires   []*wire
	workers atomic.Int64 // that there are
}

func newFleet(c Config) (*fleet, error) {
	f := &fleet{}
	for _, server := range append([]string{c.Server}, c.Nodes...) {
		w, err := newWire(c, server)
		if err != nil {
			return nil, err
		}
		f.wires = append(f.wires, w)
	}
	return f, nil
}

// worker returns a worker's way to ask: one node after the other, over a connection of
// its own to each. Workers begin at different nodes. closed ends the connections.
func (f *fleet) worker() (ask Ask, closed func()) {
	asks, ends := make([]Ask, len(f.wires)), make([]func(), len(f.wires))
	for n, w := range f.wires {
		asks[n], ends[n] = w.worker()
	}
	next := int(f.workers.Add(1)) - 1
	return func(user int) Answer {
			next++
			return asks[next%len(asks)](user)
		}, func() {
			for _, end := range ends {
				end()
			}
		}
}

// A wire makes the workers' connections to one server.
type wire struct {
	address string
	tls     bool
	path    string
	key     string
	head    []byte // of a body, up to the user's index
	timeout time.Duration
}

func newWire(c Config, server string) (*wire, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the server is a URL like http://127.0.0.1:8080, not %q", server)
	}
	w := &wire{address: u.Host, tls: u.Scheme == "https", key: c.Key, timeout: c.Timeout}
	if u.Port() == "" {
		w.address = net.JoinHostPort(u.Hostname(), map[bool]string{false: "80", true: "443"}[w.tls])
	}
	w.path = strings.TrimSuffix(u.Path, "/") + "/v1/campaigns/" + c.Campaign + "/claims"
	prefix, err := json.Marshal(c.Prefix)
	if err != nil {
		return nil, fmt.Errorf("the prefix: %w", err)
	}
	w.head = append([]byte(`{"user_id":`), bytes.TrimSuffix(prefix, []byte(`"`))...)
	return w, nil
}

// worker returns a worker's way to ask: over one connection of its own, which
// stays open between claims. closed ends it.
func (w *wire) worker() (ask Ask, closed func()) {
	l := &line{wire: w}
	l.request.Header.SetMethod(fasthttp.MethodPost)
	l.request.Header.SetContentType("application/json")
	l.request.Header.SetUserAgent("firstcome-load")
	l.request.SetRequestURI(w.path)
	l.request.Header.SetHost(w.address)
	if w.key != "" {
		l.request.Header.Set("Authorization", "Bearer "+w.key)
	}
	l.body = append(l.body, w.head...)
	return l.ask, l.hangUp
}

// A line is a connection of one worker with the request that it fills in anew for
// each claim. Nothing is sent twice: that would look like a breach.
type line struct {
	*wire
	conn     net.Conn // nil: none
	reader   *bufio.Reader
	writer   *bufio.Writer
	used     time.Time // when the connection was last used
	deadline time.Time // that the connection has

	request  fasthttp.Request
	response fasthttp.Response
	body     []byte
}

// ask is an Ask.
func (l *line) ask(user int) Answer {
	l.body = strconv.AppendInt(l.body[:len(l.head)], int64(user), 10)
	l.body = append(l.body, '"', '}')
	l.request.SetBodyRaw(l.body)
	if err := l.exchange(); err != nil {
		l.hangUp()
		return Answer{Trouble: trouble(err)}
	}
	if l.response.ConnectionClose() {
		l.hangUp()
	}
	return ParseAnswer(l.response.StatusCode(), l.response.Body())
}

// maxIdle is how long a connection may be idle before a claim dials anew: less
// than after what servers close one, so that they do not as the claim is sent.
const maxIdle = 4 * time.Second

func (l *line) exchange() error {
	now := time.Now()
	if l.conn != nil && now.Sub(l.used) > maxIdle {
		l.hangUp()
	}
	if l.conn == nil {
		if err := l.dial(); err != nil {
			return err
		}
	}
	l.used = now
	// To move a deadline costs a tenth of a claim: one is good for several, and is
	// at least the time-out and at most a quarter more away.
	if l.deadline.Sub(now) < l.timeout {
		l.deadline = now.Add(l.timeout * 5 / 4)
		if err := l.conn.SetDeadline(l.deadline); err != nil {
			return err
		}
	}
	if err := l.request.Write(l.writer); err != nil {
		return err
	}
	if err := l.writer.Flush(); err != nil {
		return err
	}
	return l.response.ReadLimitBody(l.reader, 1<<20)
}

func (l *line) dial() error {
	dialer := &net.Dialer{Timeout: l.timeout}
	var err error
	if l.tls {
		l.conn, err = tls.DialWithDialer(dialer, "tcp", l.address, nil)
	} else {
		l.conn, err = dialer.Dial("tcp", l.address)
	}
	if err != nil {
		l.conn = nil
		return err
	}
	l.reader, l.writer = bufio.NewReader(l.conn), bufio.NewWriter(l.conn)
	l.deadline = time.Time{}
	return nil
}

// hangUp closes the connection, if there is one.
func (l *line) hangUp() {
	if l.conn != nil {
		_ = l.conn.Close() // whatever it had to say was read, or is lost
		l.conn = nil
	}
}

// trouble names the cause of a lost answer, without what differs each time, such as ports.
func trouble(err error) string {
	var timeout interface{ Timeout() bool } // fasthttp's is no net.Error
	var operation *net.OpError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case errors.As(err, &operation):
		return operation.Op + ": " + operation.Err.Error()
	}
	return err.Error()
}
