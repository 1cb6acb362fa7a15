package httpd

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxHeader is more than a browser and its proxies send, with a token of 8 KB.
	maxHeader = 16 << 10
	// headerSlop is how many bytes net/http reads beyond MaxHeaderBytes before it refuses.
	headerSlop = 4 << 10
	// maxStreams is the most requests that one HTTP/2 connection may have under way.
	maxStreams = 100
)

// Options are the options of a Server. A time or a number that is 0 means its default.
type Options struct {
	Handler http.Handler
	// Short are the routes that a lane may answer. Their answers are small, come soon and have a Content-Type, or their handlers take the connection
	// with Detach. Their handlers keep only strings of the request, and need not know that the client left. If Short is empty, there are no lanes.
	Short []Route
	// BodyLast calls the handler before a request's body has come. A lane waits for the body before it calls the handler, so with BodyLast it hands
	// over a request that comes in pieces.
	BodyLast bool
	// TurnAway answers a client for which there is no room. It does not get a request.
	TurnAway func(http.ResponseWriter)
	Log      *slog.Logger
	// MaxConnections is the most open connections; default 8192, at about 20 KB each. The file descriptors may allow fewer.
	MaxConnections    int
	ReadHeaderTimeout time.Duration // for a request's headers to arrive; default 5s
	ReadTimeout       time.Duration // for a whole request to arrive; default 15s
	WriteTimeout      time.Duration // for an answer, or a part of a stream, to leave; default 30s
	// HandlerWait is added to ReadTimeout and WriteTimeout if the handler may wait longer than they allow for. When they end, the connection is
	// dropped, whatever was decided.
	HandlerWait   time.Duration
	IdleTimeout   time.Duration // for the next request of a connection, at least; default 2m. A lane may wait a sixteenth longer
	ShutdownGrace time.Duration // for requests in flight when Serve must end; default 15s
}

// A Server answers the requests of a listener. Make one with New; it serves once.
type Server struct {
	Options
	conns   *conns
	handed  chan net.Conn // from lanes to net/http
	stopped chan struct{} // closed when net/http no longer accepts connections
	turns   sync.Pool     // of *turn
	closing atomic.Bool   // every answer closes its connection
}

// New returns a Server.
func New(o Options) *Server {
	o.MaxConnections = cmp.Or(o.MaxConnections, 8192)
	o.ReadHeaderTimeout = cmp.Or(o.ReadHeaderTimeout, 5*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 15*time.Second) + o.HandlerWait
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 30*time.Second) + o.HandlerWait
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 2*time.Minute)
	o.ShutdownGrace = cmp.Or(o.ShutdownGrace, 15*time.Second)
	return &Server{
		Options: o, conns: newConns(o.MaxConnections),
		handed: make(chan net.Conn), stopped: make(chan struct{}),
		turns: sync.Pool{New: func() any { return &turn{} }},
	}
}

// Drain makes every answer from now on close its connection, so that a client connects again and finds another node. It may be called more than once.
func (s *Server) Drain() { s.closing.Store(true) }

// Serve answers requests on ln, with TLS if config is not nil, until ctx ends. Then it stops accepting, and returns nil when the requests in flight
// are answered, or an error if that takes longer than ShutdownGrace. It closes ln.
func (s *Server) Serve(ctx context.Context, ln net.Listener, config *tls.Config) error {
	server := s.netHTTP(config)
	defer server.Close() //nolint:errcheck // the listeners are closed, and all other connections are dropped
	accepting, lanes := make(chan error, 1), config == nil && len(s.Short) > 0
	if lanes { // otherwise a single call serves: the first call decides whether there is HTTP/2
		go func() { _ = server.Serve(handovers{s, ln.Addr()}) }() // until it is closed
	}
	go func() {
		if config != nil {
			accepting <- server.ServeTLS(&listener{ln, s, lanes}, "", "")
			return
		}
		accepting <- server.Serve(&listener{ln, s, lanes})
	}()
	select {
	case err := <-accepting:
		return fmt.Errorf("serve %v: %w", ln.Addr(), err)
	case <-ctx.Done():
		return s.stop(ln, accepting)
	}
}

// netHTTP returns a server of net/http with all its time-outs and limits set.
func (s *Server) netHTTP(config *tls.Config) *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(s.attend),
		TLSConfig:         config.Clone(), // net/http modifies it, and another server may use it too
		ReadHeaderTimeout: s.ReadHeaderTimeout,
		ReadTimeout:       s.ReadTimeout,
		WriteTimeout:      s.WriteTimeout,
		IdleTimeout:       s.IdleTimeout,
		MaxHeaderBytes:    maxHeader - headerSlop,
		ConnState:         noteState,
		ConnContext:       keepConn,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
}

// A listener accepts connections for which there is room. It starts lanes for them, if there are lanes.
type listener struct {
	net.Listener
	server *Server
	lanes  bool
}

// Accept returns the next connection that net/http has from its beginning.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, ok := l.server.conns.add(accepted)
		switch {
		case !ok:
			l.server.turnAway(accepted)
		case l.lanes:
			go l.server.lane(c)
		default:
			return c, nil
		}
	}
}

// turnAway answers a client that there is no room, and closes the connection. The text fits into the socket's empty buffer. With TLS the client sees
// a failed handshake.
func (s *Server) turnAway(c net.Conn) {
	var r reply
	r.reset(nil)
	s.TurnAway(&r)
	r.header["Connection"] = closing
	now := time.Now()
	_ = c.SetWriteDeadline(now.Add(100 * time.Millisecond))
	_, _ = c.Write(r.appendTo(nil, now))
	_ = c.Close()
}

// closing is the header Connection of the last answer of a connection. HTTP/2 sends GOAWAY instead.
var closing = []string{"close"}

// handovers is the listener from which net/http accepts the connections that lanes hand over.
type handovers struct {
	server  *Server
	address net.Addr
}

// Accept returns the next connection that a lane hands over.
func (h handovers) Accept() (net.Conn, error) {
	select {
	case c := <-h.server.handed:
		return c, nil
	case <-h.server.stopped:
		return nil, net.ErrClosed
	}
}

// Close ends accepting. net/http calls it once.
func (h handovers) Close() error {
	close(h.server.stopped)
	return nil
}

// Addr returns the address of the real listener.
func (h handovers) Addr() net.Addr { return h.address }
