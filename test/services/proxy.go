package services

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// A Proxy passes connections on to another address and does the harm that it is told
// to: at once, to all connections, until it is told otherwise. It decides nothing by
// chance. Any goroutine may use its methods.
type Proxy struct {
	listener net.Listener

	mu       sync.Mutex // guards what follows
	upstream string
	mode     mode
	delay    time.Duration
	replies  int           // so many more replies until one is dropped; 0: none will be
	dropped  chan struct{} // closed when it is
	cuts     bool          // all connections then, until Heal
	turned   chan struct{} // closed when the mode changes
	links    map[*link]struct{}
}

// A mode says what becomes of connections.
type mode int

const (
	passing mode = iota
	frozen       // all wait
	cut          // all are reset
)

// Listen makes a proxy on a free loopback port. Nothing is passed before Run.
func Listen(upstream string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &Proxy{listener: l, upstream: upstream, turned: make(chan struct{}), links: map[*link]struct{}{}}, nil
}

// Through returns a proxy to an address that runs until the end of t.
func Through(t testing.TB, upstream string) *Proxy {
	t.Helper()
	p, err := Listen(upstream)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("proxy to %s: %v", upstream, err)
		}
	})
	return p
}

// Address returns the HOST:PORT of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// URL returns a server's URL with the proxy's address in the place of the server's.
func (p *Proxy) URL(at string) (string, error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	u.Host = p.Address()
	return u.String(), nil
}

// Run passes connections on until ctx is done: then it resets all, and returns nil when
// they have ended. It runs once.
func (p *Proxy) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = p.listener.Close() })
	defer stop()
	var links sync.WaitGroup
	defer links.Wait()
	defer p.Cut()
	for {
		c, err := p.listener.Accept()
		switch {
		case ctx.Err() != nil:
			if c != nil {
				reset(c)
			}
			return nil
		case err != nil:
			return err
		}
		links.Go(func() { p.serve(ctx, c) })
	}
}

// SetUpstream changes where connections go that are made from now on.
func (p *Proxy) SetUpstream(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = address
}

// Cut resets all connections, and new ones as soon as they are made, until Heal.
func (p *Proxy) Cut() { p.turn(cut) }

// Freeze takes connections and passes nothing in either direction, not even their
// end, until Heal.
func (p *Proxy) Freeze() { p.turn(frozen) }

// Heal ends Cut, Freeze, Delay and a DropReply whose reply has not come.
func (p *Proxy) Heal() {
	p.mu.Lock()
	p.delay, p.replies = 0, 0
	p.mu.Unlock()
	p.turn(passing)
}

func (p *Proxy) turn(to mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.become(to)
}

// become is turn for a caller who has the lock.
func (p *Proxy) become(to mode) {
	p.mode = to
	close(p.turned)
	p.turned = make(chan struct{})
	if to == cut {
		for l := range p.links {
			l.cut()
		}
	}
}

// Delay has all that is passed in either direction wait, until Heal. What arrives
// meanwhile goes with the next, so that it may wait twice as long.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// DropReply cuts the connection of the k-th reply from now, instead of passing the
// reply on: what was asked has been done, and the client does not learn it. A reply
// is what one read from the server brings, on whichever connection; 1 is the next. The
// channel is closed when it was dropped.
func (p *Proxy) DropReply(k int) <-chan struct{} { return p.drop(k, false) }

// CutAtReply is DropReply and, at the same instant, Cut: nobody learns what became of what was
// asked before Heal.
func (p *Proxy) CutAtReply(k int) <-chan struct{} { return p.drop(k, true) }

func (p *Proxy) drop(k int, cuts bool) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replies, p.dropped, p.cuts = k, make(chan struct{}), cuts
	return p.dropped
}

// drops tells whether this reply is the one to drop.
func (p *Proxy) drops() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.replies == 0 {
		return false
	}
	p.replies--
	if p.replies > 0 {
		return false
	}
	if p.cuts {
		p.become(cut)
	}
	close(p.dropped)
	return true
}

// serve passes a client's connection on, until both sides have ended.
func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	l := &link{client: client, gone: make(chan struct{})}
	if !p.admit(l) {
		return
	}
	defer p.forget(l)
	if p.await(l) != nil {
		return
	}
	p.mu.Lock()
	upstream := p.upstream
	p.mu.Unlock()
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", upstream)
	if err != nil {
		l.cut()
		return
	}
	if !l.join(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pass(l, client, server, false) })
	both.Go(func() { p.pass(l, server, client, true) })
	both.Wait()
}

// admit keeps a link, so that it can be cut.
func (p *Proxy) admit(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == cut {
		l.cut()
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) forget(l *link) {
	l.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// pass copies one direction of a link until its end. A link that fails is cut.
func (p *Proxy) pass(l *link, from, to net.Conn, replies bool) {
	chunk := make([]byte, 64<<10)
	for {
		n, ended := from.Read(chunk)
		if p.await(l) != nil {
			return
		}
		if n > 0 {
			if replies && p.drops() {
				l.cut()
				return
			}
			if _, err := to.Write(chunk[:n]); err != nil {
				l.cut()
				return
			}
		}
		if ended != nil {
			l.half(to, ended)
			return
		}
	}
}

var errCut = errors.New("the connection is cut")

// await waits as long as the proxy is frozen, and the delay.
func (p *Proxy) await(l *link) error {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.gone:
			return errCut
		}
	}
	for {
		p.mu.Lock()
		mode, turned := p.mode, p.turned
		p.mu.Unlock()
		if mode == passing {
			return nil
		}
		select {
		case <-turned:
		case <-l.gone:
			return errCut
		}
	}
}
