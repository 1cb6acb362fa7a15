package httpd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// farewell is how long a connection must have been idle before it is closed while the server stops. A client that asks again sooner learns from
	// its next answer that the connection closes; any other is unlikely to ask at that very time.
	farewell = time.Second
	// farewellEvery is how often the connections are checked. A check of thousands takes less than a millisecond.
	farewellEvery = 10 * time.Millisecond
)

// stop ends the server so that every request on an accepted connection is answered:
//
//  1. The listener is closed. The kernel refuses new connections, and those not accepted yet: only a
//     load balancer that saw the node become unready keeps clients from trying.
//  2. Every answer says that its connection closes. Connections that are idle are
//     closed; what is in flight is waited for, up to ShutdownGrace.
//
// accepting gets the error with which accepting ends.
func (s *Server) stop(ln net.Listener, accepting <-chan error) error {
	grace, cancel := context.WithTimeout(context.Background(), s.ShutdownGrace)
	defer cancel()
	s.Drain()
	err := ln.Close()
	if ended := <-accepting; !errors.Is(ended, net.ErrClosed) {
		err = errors.Join(err, ended)
	}
	s.conns.seeOff(grace)
	if busy := s.conns.busy(); busy > 0 {
		err = errors.Join(err, fmt.Errorf("%d requests were still in flight after %v", busy, s.ShutdownGrace))
	}
	s.conns.closeThose(func(*conn) bool { return true })
	return err
}

// seeOff closes connections once they have been idle for farewell, until none is open or ctx ends.
func (c *conns) seeOff(ctx context.Context) {
	tick := time.NewTicker(farewellEvery)
	defer tick.Stop()
	for c.closeThose(func(o *conn) bool { return o.isIdleFor(farewell) }) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *conn) isIdleFor(long time.Duration) bool {
	since := c.waits.Load()
	return c.idle.Load() && 0 < since && since <= time.Now().Add(-long).UnixNano()
}

// closeThose closes the connections for which are returns true, and returns how many remain open.
func (c *conns) closeThose(are func(*conn) bool) (open int) {
	var closed []*conn
	c.mu.Lock()
	for o := range c.open {
		if are(o) {
			closed = append(closed, o)
			delete(c.open, o)
		}
	}
	open = len(c.open)
	c.mu.Unlock()
	for _, o := range closed {
		_ = o.Conn.Close()
	}
	return open
}
