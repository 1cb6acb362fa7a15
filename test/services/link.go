package services

import (
	"errors"
	"io"
	"net"
	"sync"
)

// A link is a client's connection through a proxy.
type link struct {
	client net.Conn
	gone   chan struct{} // closed when the link has ended

	mu     sync.Mutex // guards what follows
	server net.Conn   // nil until it is dialled
	ended  bool
}

// join adds the server's connection. If the link was cut meanwhile, join resets the connection and returns
// false.
func (l *link) join(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		reset(server)
		return false
	}
	l.server = server
	return true
}

// cut resets both connections.
func (l *link) cut() { l.end(reset) }

// close ends both connections.
func (l *link) close() { l.end(func(c net.Conn) { _ = c.Close() }) }

// end ends both connections, once.
func (l *link) end(end func(net.Conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.gone)
	end(l.client)
	if l.server != nil {
		end(l.server)
	}
}

// half passes on the end of one direction: an orderly end as an end, an error as a reset of the link.
func (l *link) half(to net.Conn, ended error) {
	if !errors.Is(ended, io.EOF) {
		l.cut()
		return
	}
	_ = to.(*net.TCPConn).CloseWrite() // fails only if the connection has ended
}

// reset ends a connection so that the other side sees a failure instead of an orderly end.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0) // fails only if the connection has ended
	_ = c.Close()
}
