package httpd

import (
	"cmp"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// conns bounds the open connections. When there is no room for a new one, it closes those that have
// waited longest for their clients, be it for a request, the rest of one, or the reading of an answer.
// It turns the new one away only if all are at work. So neither hoarders nor a crowd can keep a healthy
// client out, and accepting never waits.
type conns struct {
	most          int
	room          int // what the file descriptors allow, with those that are detached
	evicted, shed atomic.Int64
	detached      atomic.Int64

	mu   sync.Mutex // guards what follows
	open map[*conn]struct{}
}

// A conn is a connection that knows whether it is idle, and since when it waits for its client.
type conn struct {
	net.Conn
	in     *conns
	idle   atomic.Bool  // it has no request, nor a part of one that net/http would answer
	waits  atomic.Int64 // its meaning is in attend.go
	replay []byte       // what a lane read and net/http has not read yet
	handed bool         // it began in a lane and is now net/http's
	asked  int          // requests that net/http had from it since
}

// lastAnswer is the number of net/http's answer that closes a connection that began in a lane. A proxy puts all kinds
// of requests on its connections, and a new one costs it little.
const lastAnswer = 64

func newConns(most int) *conns {
	room := max(descriptors()-reservedDescriptors, 1)
	return &conns{most: min(most, room), room: room, open: map[*conn]struct{}{}}
}

// reservedDescriptors are left for the ledger, the ops listener and the rest.
const reservedDescriptors = 64

// evictAtOnce is the part of the connections that is closed when there is no
// room: one look at all of them makes room for many new ones.
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
		if !o.idle.Load() {
			n++
		}
	}
	return n
}

// add takes a connection in, if room can be made.
func (c *conns) add(accepted net.Conn) (*conn, bool) {
	added := &conn{Conn: accepted, in: c}
	added.idle.Store(true)
	added.waits.Store(time.Now().UnixNano())
	c.mu.Lock()
	var victims []*conn
	most := max(1, min(c.most, c.room-int(c.detached.Load())))
	if len(c.open) >= most {
		victims = c.longestWaiting()
		for _, v := range victims {
			delete(c.open, v)
		}
	}
	ok := len(c.open) < most
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

// letGo forgets a connection that is detached.
func (c *conns) letGo(d *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, d)
	c.detached.Add(1)
}

// longestWaiting returns the connections to close: those that have waited longest for
// their clients. mu is held.
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

// Read returns what a lane has read, and then reads from the connection.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.replay) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.replay)
	if c.replay = c.replay[n:]; len(c.replay) == 0 {
		c.replay = nil
	}
	return n, nil
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
	switch state {
	case http.StateActive:
		connOf(nc).idle.Store(false)
	case http.StateIdle:
		connOf(nc).idle.Store(true)
	}
}
