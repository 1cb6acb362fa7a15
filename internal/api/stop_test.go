package api_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/flow"
)

// TestConnectionsThatNobodyUsesDoNotKeepTheServerFromStopping has a grace within
// which net/http alone would not close a connection that is new.
func TestConnectionsThatNobodyUsesDoNotKeepTheServerFromStopping(t *testing.T) {
	s := open(t, limited(api.Limits{Grace: 3 * time.Second}))
	ln := loopback(t)
	cancel, served := s.serveOn(ln)
	defer cancel()
	var conns []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	const ready = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for _, c := range conns[1:] { // accepted after the first, which is unused
		if r := api.Asked(t, c, ready); r.StatusCode != 200 || r.Close {
			t.Errorf("it answers %s, and closes: %t", r.Status, r.Close)
		}
	}
	cancel()
	await(t, func() bool { // it asks whether it is ready, on what it has
		return api.Asked(t, conns[1], ready).Close
	})
	if err := <-served; err != nil {
		t.Error(err)
	}
	for _, c := range conns {
		isCut(t, c)
	}
}

// A late listener accepts only when it is told to. It tells each look at it, and when it is closed.
type late struct {
	*net.TCPListener
	accepts, closed chan struct{}
	looks           chan struct{} // has room for those of a test
}

func (l late) Accept() (net.Conn, error) {
	<-l.accepts
	return l.TCPListener.Accept()
}

func (l late) SyscallConn() (syscall.RawConn, error) {
	select {
	case l.looks <- struct{}{}:
	default:
	}
	return l.TCPListener.SyscallConn()
}

func (l late) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return l.TCPListener.Close()
}

// TestF22AConnectionThatIsAcceptedLateIsAnswered stops a server that has not accepted a connection
// which its client has sent a request on, for longer than clients may take to make one: until
// the server has looked at what is unaccepted, and once more.
func TestF22AConnectionThatIsAcceptedLateIsAnswered(t *testing.T) {
	s := open(t)
	ln := loopback(t)
	held := late{ln, make(chan struct{}), make(chan struct{}), make(chan struct{}, 3)}
	cancel, served := s.serveOn(held)
	defer cancel()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	cancel()
	for range cap(held.looks) { // the first refuses new connections
		select {
		case <-held.looks:
		case <-held.closed:
			t.Error("it is closed with a connection that is not accepted")
		}
	}
	close(held.accepts)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusOK || !r.Close {
		t.Errorf("it answers %s, and closes: %t", r.Status, r.Close)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A waits listener tells when the server begins to wait for a connection's next request: it sets the
// deadline of an idle one.
type waits struct {
	*net.TCPListener
	begun chan struct{} // has room for one
	set   *atomic.Int64 // how often a deadline of reading was set
}

func (w waits) Accept() (net.Conn, error) {
	c, err := w.TCPListener.Accept()
	return waitsConn{c, w}, err
}

type waitsConn struct {
	net.Conn
	in waits
}

func (c waitsConn) SetReadDeadline(t time.Time) error {
	err := c.Conn.SetReadDeadline(t)
	c.in.set.Add(1)
	if time.Until(t) > time.Minute {
		select {
		case c.in.begun <- struct{}{}:
		default:
		}
	}
	return err
}

// TestF22AStopThatGivesUpAClaimSaysSo: the second claim of a connection is one that net/http does not know of,
// if it comes when net/http is done with the first.
func TestF22AStopThatGivesUpAClaimSaysSo(t *testing.T) {
	var gate heldGate
	s := open(t, held(&gate, flow.Limits{}), limited(api.Limits{Grace: 500 * time.Millisecond}))
	s.createInLedger("c")
	ln := loopback(t)
	watched := waits{ln, make(chan struct{}, 1), new(atomic.Int64)}
	cancel, served := s.serveOn(watched)
	defer cancel()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := bufio.NewReader(c)
	for _, user := range []string{"u", "v"} {
		body := `{"user_id":"` + user + `"}`
		if _, err := io.WriteString(c, "POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n"+body); err != nil {
			t.Fatal(err)
		}
		<-gate.at
		if user == "u" {
			gate.letGo <- struct{}{}
			r, err := http.ReadResponse(answers, nil)
			if err != nil || r.StatusCode != 201 {
				t.Fatalf("it answers %v, %v", r, err)
			}
			_, _ = io.Copy(io.Discard, r.Body)
			<-watched.begun
			watched.set.Store(0)
		}
	}
	if watched.set.Load() > 0 {
		t.Error("net/http has the second claim")
	}
	cancel()
	if err := <-served; err == nil {
		t.Error("it ends as if all were answered")
	}
	close(gate.letGo)
}
