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

// conns bounds the open connections. If there is no room for a new one, it closes those that have waited longest for their clients: for a request,
// for the rest of a request, or for the reading of an answer. It turns the new connection away only if all are at work. So neither hoarders nor a
// crowd can keep a healthy client out, and accepting never blocks.
type conns struct {
	most          int
	room          int // the limit by file descriptors, including detached connections
	evicted, shed atomic.Int64
	detached      atomic.Int64

	mu   sync.Mutex // guards what follows
	open map[*conn]struct{}
}

// A conn is a connection with its state: whether it is idle, and since when it waits for its client.
type conn struct {
	net.Conn
	in     *conns
	idle   atomic.Bool  // no request is under way, and no part of one has come that net/http would answer with an error
	waits  atomic.Int64 // see attend.go
	replay []byte       // bytes that a lane has read and net/http has not
	handed bool         // it began in a lane, and net/http has it now
	asked  int          // requests that net/http has had since
}

// lastAnswer is the number of the answer by net/http that closes a connection which began in a lane. A proxy sends all kinds of requests on its
// connections, and a new connection costs it little.
const lastAnswer = 64

func newConns(most int) *conns {
	room := max(descriptors()-reservedDescriptors, 1)
	return &conns{most: min(most, room), room: room, open: map[*conn]struct{}{}}
}

// reservedDescriptors are left for the ledger, the ops listener and other files.
const reservedDescriptors = 64

// evictAtOnce is the divisor of the connections that are closed when there is no room: one pass over all of them makes room for many new ones.
const evictAtOnce = 64

// Connections returns how many public connections are open, how many were closed to make room, and how many were turned away.
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

// add adds a connection, if there is room or can be made.
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

// letGo removes a detached connection.
func (c *conns) letGo(d *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, d)
	c.detached.Add(1)
}

// longestWaiting returns the connections that have waited longest for their clients, to be closed. mu is held.
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

// Read returns the bytes that a lane has read, and then reads from the connection.
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

// Close closes the connection, and frees its room.
func (c *conn) Close() error {
	c.in.mu.Lock()
	delete(c.in.open, c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

// noteState serves as http.Server.ConnState. It marks a connection busy while it has a request.
func noteState(nc net.Conn, state http.ConnState) {
	switch state {
	case http.StateActive:
		connOf(nc).idle.Store(false)
	case http.StateIdle:
		connOf(nc).idle.Store(true)
	}
}
