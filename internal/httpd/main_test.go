package httpd_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// limits are the limits of the tests, unless a test has its own.
var limits = httpd.Options{ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, ShutdownGrace: 10 * time.Second}

// short are the routes of the tests that lanes answer.
var short = []httpd.Route{{Method: "POST", Path: "/v1/campaigns/{id}/claims"}, {Method: "GET", Path: "/v1/campaigns/{id}"}}

// config returns options with lanes for a handler.
func config(handler http.HandlerFunc) httpd.Options {
	o := limits
	o.Handler, o.Short, o.Log = handler, short, slog.New(slog.DiscardHandler)
	o.TurnAway = func(w http.ResponseWriter) {
		w.Header()["Retry-After"] = []string{"2"}
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	return o
}

// A pipes is a listener of net.Pipe's connections.
type pipes struct {
	made   chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A site is a server that runs.
type site struct {
	*httpd.Server
	dial func() net.Conn
	stop context.CancelFunc
	end  chan error // what Serve ends with

	address   string          // of a port
	transport *http.Transport // of one with TLS
}

// open serves pipes until the test's end.
func open(t *testing.T, c httpd.Options) *site {
	t.Helper()
	ln := newPipes()
	s := serve(t, c, ln, nil)
	s.dial = func() net.Conn {
		here, there := net.Pipe()
		ln.made <- there
		return here
	}
	return s
}

// openPort serves a port of the loopback until the test's end.
func openPort(t *testing.T, c httpd.Options) *site {
	t.Helper()
	return openPortWith(t, c, nil)
}

// openTLS works like openPort, with TLS.
func openTLS(t *testing.T, c httpd.Options) *site {
	t.Helper()
	lender := httptest.NewUnstartedServer(nil) // for its certificate
	lender.StartTLS()
	defer lender.Close()
	s := openPortWith(t, c, &tls.Config{Certificates: lender.TLS.Certificates})
	s.transport = lender.Client().Transport.(*http.Transport).Clone()
	s.transport.ForceAttemptHTTP2 = true
	t.Cleanup(s.transport.CloseIdleConnections)
	return s
}

func openPortWith(t *testing.T, c httpd.Options, secure *tls.Config) *site {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	stage.Must(t, err)
	s := serve(t, c, ln, secure)
	s.address = ln.Addr().String()
	s.dial = func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", s.address)
		stage.Must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	return s
}

func serve(t *testing.T, c httpd.Options, ln net.Listener, secure *tls.Config) *site {
	ctx, stop := context.WithCancel(context.Background())
	s := &site{Server: httpd.New(c), stop: stop, end: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		s.end <- s.Serve(ctx, ln, secure)
		close(ended)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return s
}

// send sends a text.
func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	stage.Must(t, stage.Err(io.WriteString(c, text)))
}

// answer reads an answer.
func answer(t *testing.T, c net.Conn) *http.Response {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	stage.Must(t, err)
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return r
}

// ask sends a request and returns its answer.
func ask(t *testing.T, c net.Conn, text string) *http.Response {
	t.Helper()
	send(t, c, text)
	return answer(t, c)
}
