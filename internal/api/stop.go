package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	// lastHandshake is how long clients may take to complete a connection that they
	// had begun when the server stopped: a round trip within a continent.
	lastHandshake = 100 * time.Millisecond
	// farewell is how long a connection must have been idle to be closed while the
	// server stops. A client that asks again within it is told by its next answer that
	// the connection closes; one that does not is unlikely to ask just then.
	farewell = time.Second
	// farewellEvery is how often the connections are looked over: thousands of them
	// take less than a millisecond.
	farewellEvery = 10 * time.Millisecond
)

// stop ends the server so that no request goes unanswered that came on a
// connection it accepted, and no connection unaccepted that it let be made:
//
//  1. New connections are not let in. Those who try ask again until the listener
//     is closed, and are refused then: they have sent nothing.
//  2. Those that are being made are, and accepted. Then the listener is closed.
//  3. Every answer says that its connection closes. Connections that are idle are
//     closed; what is in flight is waited for, up to Limits.Grace.
//
// served is what the accepting ends with.
func (s *Server) stop(server *http.Server, ln net.Listener, served <-chan error) error {
	grace, cancel := context.WithTimeout(context.Background(), s.Limits.Grace)
	defer cancel()
	s.stopping.Store(true)
	s.Drain()
	refuseNew(ln)
	over := time.Now().Add(lastHandshake)
	// On a machine with other work the accepting may be late.
	s.conns.seeOff(grace, func(int) bool { return time.Now().After(over) && unaccepted(ln) == 0 })
	closed := ln.Close()
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		closed = errors.Join(closed, err)
	}
	s.conns.seeOff(grace, func(open int) bool { return open == 0 })
	err := grace.Err()
	if s.conns.busy() == 0 { // net/http does not know of those in lanes
		err = server.Shutdown(grace)
	}
	if err != nil {
		err = fmt.Errorf("requests were still in flight after %v: %w", s.Limits.Grace, errors.Join(err, server.Close()))
	}
	return errors.Join(closed, err)
}

// seeOff closes connections as they become idle for long enough, until enough says
// so of how many are open, or ctx ends.
func (c *conns) seeOff(ctx context.Context, enough func(open int) bool) {
	tick := time.NewTicker(farewellEvery)
	defer tick.Stop()
	for !enough(c.closeIdle(farewell)) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// closeIdle closes the connections that have been idle for so long, and returns
// how many are open then.
func (c *conns) closeIdle(long time.Duration) (open int) {
	limit := time.Now().Add(-long).UnixNano()
	var idle []*conn
	c.mu.Lock()
	for o := range c.open {
		if since := o.idleSince.Load(); since != 0 && since <= limit {
			idle = append(idle, o)
			delete(c.open, o)
		}
	}
	open = len(c.open)
	c.mu.Unlock()
	for _, o := range idle {
		_ = o.Conn.Close()
	}
	return open
}
