package api

import (
	"cmp"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// conns bounds the open connections. When there is no room for a new one, those
// that have waited longest for their clients are closed, whatever they wait for: a request,
// the rest of one, or that an answer is read. Only where all are at work is the new one
// turned away. So neither hoarders nor a crowd can keep a healthy client out, and accepting never waits.
type conns struct {
	most          int
	evicted, shed atomic.Int64

	mu   sync.Mutex // guards what follows
	open map[*conn]struct{}
}

// A conn is a connection that knows since when it is idle, and since when it waits for its client.
type conn struct {
	net.Conn
	in        *conns
	idleSince atomic.Int64 // nanoseconds since 1970; 0: it has a request, or a part of one
	waits     atomic.Int64 // attend.go says of what
	lane      *lane        // nil: net/http reads for itself
}

func newConns(most int) *conns {
	return &conns{most: max(min(most, descriptors()-reservedDescriptors), 1), open: map[*conn]struct{}{}}
}

// reservedDescriptors are left for the ledger, the ops listener and the rest.
const reservedDescriptors = 64

// evictAtOnce is the part of the connections that is closed when there is no
// room: one look at all of them then makes room for many that come.
const evictAtOnce = 64

// Connections returns how many connections of the public surface are open, how many were closed to
// make room, and how many were turned away.
func (s *Server) Connections() (open, evicted, shed int64) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	return int64(len(s.conns.open)), s.conns.evicted.Load(), s.conns.shed.Load()
}

// busy returns how many connections have a request.
func (c *conns) busy() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for o := range c.open {
		if o.idleSince.Load() == 0 {
			n++
		}
	}
	return n
}

// listener returns ln with connections bounded, and with lanes if there are such.
func (c *conns) listener(ln net.Listener, lanes *lanes) net.Listener {
	return &listener{ln, c, lanes}
}

type listener struct {
	net.Listener
	conns *conns
	lanes *lanes
}

// Accept returns the next connection for which there is room.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c, ok := l.conns.add(accepted, l.lanes); ok {
			return c, nil
		}
		turnAway(accepted)
	}
}

// turnedAwayRetry is when who is turned away may ask again.
const turnedAwayRetry = 2 * time.Second

// turnAway tells a client that there is no room, and closes. The text fits into
// the socket's empty buffer; with TLS the client sees a failed handshake.
func turnAway(c net.Conn) {
	var r reply
	r.reset()
	writeProblem(&r, later(busy, "there is no room for another connection. Ask again: it is safe", turnedAwayRetry))
	r.header["Connection"] = closing
	now := time.Now()
	_ = c.SetWriteDeadline(now.Add(100 * time.Millisecond))
	_, _ = c.Write(r.appendTo(nil, now))
	_ = c.Close()
}

// add takes a connection in, if room can be made. lanes is nil where net/http reads alone.
func (c *conns) add(accepted net.Conn, lanes *lanes) (net.Conn, bool) {
	added := &conn{Conn: accepted, in: c}
	if lanes != nil {
		added.lane = &lane{lanes: lanes, from: accepted.RemoteAddr().String()}
	}
	now := time.Now().UnixNano()
	added.idleSince.Store(now)
	added.waits.Store(now)
	c.mu.Lock()
	var victims []*conn
	if len(c.open) >= c.most {
		victims = c.longestWaiting()
		for _, v := range victims {
			delete(c.open, v)
		}
	}
	ok := len(c.open) < c.most
	if ok {
		c.open[added] = struct{}{}
	}
	c.mu.Unlock()
	for _, v := range victims {
		_ = v.Conn.Close()
	}
	c.evicted.Add(int64(len(victims)))
	if !ok {
		c.shed.Add(1)
	}
	return added, ok
}

// longestWaiting returns those of the connections to close: of all that wait for their
// clients. mu is held.
func (c *conns) longestWaiting() []*conn {
	type waiter struct {
		conn  *conn
		since int64
	}
	var all []waiter
	for o := range c.open {
		if since := o.waits.Load(); since > 0 {
			all = append(all, waiter{o, since})
		}
	}
	slices.SortFunc(all, func(a, b waiter) int { return cmp.Compare(a.since, b.since) })
	victims := make([]*conn, 0, c.most/evictAtOnce+1)
	for _, w := range all[:min(len(all), cap(victims))] {
		victims = append(victims, w.conn)
	}
	return victims
}

// Read reads from the connection, or answers what a lane may answer and reads what follows.
func (c *conn) Read(p []byte) (int, error) {
	if c.lane == nil {
		return c.Conn.Read(p)
	}
	return c.lane.read(c, p)
}

// Close closes the connection and gives its room back.
func (c *conn) Close() error {
	c.in.mu.Lock()
	delete(c.in.open, c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

// noteState is http.Server.ConnState: it marks a connection busy while it has a request.
func noteState(nc net.Conn, state http.ConnState) {
	c := connOf(nc)
	if c == nil {
		return
	}
	switch state {
	case http.StateActive:
		c.idleSince.Store(0)
	case http.StateIdle:
		c.idleSince.Store(time.Now().UnixNano())
		if c.lane != nil {
			c.lane.idle()
		}
	}
}
