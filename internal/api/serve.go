package api

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
)

const (
	// maxHeader is above what a browser and its proxies send, with a token of 8 KB.
	maxHeader = 16 << 10
	// maxStreams is how many requests one HTTP/2 connection may have under way.
	maxStreams = 100
)

// Serve answers requests to the public surface on ln, with TLS if config is not
// nil, until ctx ends. Then it stops accepting and returns nil when what is in
// flight is answered, or an error when that takes longer than Limits.Grace. It
// closes ln.
func (s *Server) Serve(ctx context.Context, ln net.Listener, config *tls.Config) error {
	server := s.httpServer(config)
	served := make(chan error, 1)
	go func() {
		if config != nil {
			served <- server.ServeTLS(s.conns.listener(ln, nil), "", "")
			return
		}
		served <- server.Serve(s.conns.listener(ln, s.lanes()))
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serve %v: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	return s.stop(server, ln, served)
}

// lanes returns what answers claims beneath net/http.
func (s *Server) lanes() *lanes {
	l := newLanes(s.Handler(), s.Limits)
	l.handsOver = s.AddressLimit != nil
	return l
}

// httpServer returns the server with every time-out and bound set.
func (s *Server) httpServer(config *tls.Config) *http.Server {
	return &http.Server{
		Handler:           attend(s.Handler()),
		TLSConfig:         config,
		ReadHeaderTimeout: s.Limits.Header,
		ReadTimeout:       s.Limits.Read,
		WriteTimeout:      s.Limits.Write,
		IdleTimeout:       s.Limits.Idle,
		MaxHeaderBytes:    maxHeader - headerSlop,
		ConnState:         noteState,
		ConnContext:       keepConn,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
}

// headerSlop is what net/http reads beyond MaxHeaderBytes before it refuses.
const headerSlop = 4 << 10
