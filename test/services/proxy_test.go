package services_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome/test/services"
)

// An echo is a server that answers each line with its name and the line.
type echo struct {
	listener net.Listener
	name     string
	lines    atomic.Int64 // received
}

func newEcho(t *testing.T, name string) *echo {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	e := &echo{listener: l, name: name}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { e.serve(c) })
		}
	})
	t.Cleanup(func() {
		must(t, l.Close())
		all.Wait()
	})
	return e
}

func (e *echo) serve(c net.Conn) {
	defer c.Close()
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		e.lines.Add(1)
		if _, err := io.WriteString(c, e.name+lines.Text()+"\n"); err != nil {
			return
		}
	}
}

// A caller asks an echo.
type caller struct {
	net.Conn
	answers *bufio.Reader
}

func dial(t *testing.T, address string) caller {
	c, err := net.Dial("tcp", address)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	// A call whose answer never arrives fails instead of hanging.
	must(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return caller{c, bufio.NewReader(c)}
}

func (c caller) ask(line string) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	return c.answers.ReadString('\n')
}

func (c caller) wants(t *testing.T, line, answer string) {
	t.Helper()
	if got, err := c.ask(line); err != nil || got != answer+"\n" {
		t.Fatalf("%q is answered with %q, %v", line, got, err)
	}
}

func (c caller) wantsNone(t *testing.T, line string) {
	t.Helper()
	if got, err := c.ask(line); err == nil {
		t.Fatalf("%q is answered with %q", line, got)
	}
}

// waitsFor sends a line, and fails the test if an answer or an end arrives within a time in which a proxy
// that forwards the line would long have answered.
func (c caller) waitsFor(t *testing.T, line string) {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	if got, err := c.ask(line); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%q is answered with %q, %v", line, got, err)
	}
}

// wantsNobody fails the test if somebody answers at an address: the connection has to fail, or the question.
func wantsNobody(t *testing.T, address string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer c.Close()
	caller{c, bufio.NewReader(c)}.wantsNone(t, "anybody?")
}

func TestAProxyThatIsCutResetsAllUntilItHeals(t *testing.T) {
	p := services.Through(t, newEcho(t, "").listener.Addr().String())
	before := dial(t, p.Address())
	before.wants(t, "one", "one")
	p.Cut()
	before.wantsNone(t, "two")
	wantsNobody(t, p.Address())
	p.Heal()
	dial(t, p.Address()).wants(t, "four", "four")
}

func TestAFrozenProxyPassesNothingUntilItHeals(t *testing.T) {
	e := newEcho(t, "")
	p := services.Through(t, e.listener.Addr().String())
	before := dial(t, p.Address())
	before.wants(t, "one", "one")

	p.Freeze()
	late := dial(t, p.Address())
	before.waitsFor(t, "two")
	late.waitsFor(t, "three")
	if n := e.lines.Load(); n != 1 {
		t.Errorf("%d lines went through", n)
	}

	p.Heal()
	for want, c := range map[string]caller{"two\n": before, "three\n": late} {
		must(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
		if got, err := c.answers.ReadString('\n'); err != nil || got != want {
			t.Errorf("after healing it answers %q, %v", got, err)
		}
	}
}

func TestAFrozenProxyCanBeCut(t *testing.T) {
	e := newEcho(t, "")
	p := services.Through(t, e.listener.Addr().String())
	c := dial(t, p.Address())
	p.Freeze()
	c.waitsFor(t, "one")
	p.Cut()
	must(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	if _, err := c.answers.ReadString('\n'); err == nil || errors.Is(err, os.ErrDeadlineExceeded) || e.lines.Load() > 0 {
		t.Errorf("%d lines went through, and the client has %v", e.lines.Load(), err)
	}
}

func TestADelayHoldsBothDirections(t *testing.T) {
	const delay = 20 * time.Millisecond
	p := services.Through(t, newEcho(t, "").listener.Addr().String())
	c := dial(t, p.Address())
	p.Delay(delay)
	began := time.Now()
	c.wants(t, "one", "one")
	// On a slow machine it may take longer, but on none less.
	if took := time.Since(began); took < 2*delay {
		t.Errorf("there and back took %v", took)
	}
}

func TestTheDroppedReplyIsTheKthAndWasExecuted(t *testing.T) {
	e := newEcho(t, "")
	p := services.Through(t, e.listener.Addr().String())
	c, other := dial(t, p.Address()), dial(t, p.Address())
	c.wants(t, "one", "one")
	dropped := p.DropReply(3)
	c.wants(t, "two", "two")
	other.wants(t, "three", "three")
	c.wantsNone(t, "four")
	<-dropped
	if n := e.lines.Load(); n != 4 {
		t.Errorf("the server has received %d lines", n)
	}
	other.wants(t, "five", "five")
	dial(t, p.Address()).wants(t, "six", "six")
}

func TestAtTheReplyThatCutsEverybodyIsCutUntilItHeals(t *testing.T) {
	e := newEcho(t, "")
	p := services.Through(t, e.listener.Addr().String())
	c, other := dial(t, p.Address()), dial(t, p.Address())
	c.wants(t, "one", "one")
	other.wants(t, "two", "two")
	dropped := p.CutAtReply(1)
	c.wantsNone(t, "three")
	<-dropped
	other.wantsNone(t, "four")
	p.Heal()
	dial(t, p.Address()).wants(t, "six", "six")
	if n := e.lines.Load(); n != 4 {
		t.Errorf("the server has received %d lines", n)
	}
}

func TestAProxyTakesNewConnectionsElsewhere(t *testing.T) {
	p := services.Through(t, newEcho(t, "first ").listener.Addr().String())
	old := dial(t, p.Address())
	old.wants(t, "one", "first one")
	p.SetUpstream(newEcho(t, "second ").listener.Addr().String())
	old.wants(t, "two", "first two")
	dial(t, p.Address()).wants(t, "three", "second three")
}

func TestAProxyPassesTheEndOfEachDirection(t *testing.T) {
	p := services.Through(t, newEcho(t, "").listener.Addr().String())
	c := dial(t, p.Address())
	_, err := io.WriteString(c, "the last line")
	must(t, err)
	must(t, c.Conn.(*net.TCPConn).CloseWrite())
	if all, err := io.ReadAll(c.answers); err != nil || string(all) != "the last line\n" {
		t.Errorf("the answer is %q, %v", all, err)
	}
}

func TestAProxyToNobodyResets(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	wantsNobody(t, services.Through(t, l.Addr().String()).Address())
}

func TestAProxyEndsWithItsContext(t *testing.T) {
	p, err := services.Listen(newEcho(t, "").listener.Addr().String())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	c := dial(t, p.Address())
	c.wants(t, "one", "one")
	p.Freeze()
	cancel()
	must(t, <-ended)
	c.wantsNone(t, "two")
	if c, err := net.Dial("tcp", p.Address()); err == nil {
		c.Close()
		t.Error("the proxy listens after its end")
	}
}
