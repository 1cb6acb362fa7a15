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

// A Proxy forwards connections to another address and causes the faults that a test asks for: at once, on all
// connections, until the test ends the fault. It does nothing at random. Any goroutine may use its methods.
type Proxy struct {
	listener net.Listener

	mu       sync.Mutex // guards what follows
	upstream string
	mode     mode
	delay    time.Duration
	replies  int           // counts down to the reply to drop; 0: none
	dropped  chan struct{} // closed when that reply is dropped
	cuts     bool          // with that reply, cut all connections until Heal
	turned   chan struct{} // closed when the mode changes
	links    map[*link]struct{}
	refused  int // connections, while it is cut
}

// A mode says what the proxy does to connections.
type mode int

const (
	passing mode = iota
	frozen       // all wait
	cut          // all are reset
)

// Listen makes a proxy on a free loopback port. The proxy forwards nothing before Run.
func Listen(upstream string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &Proxy{listener: l, upstream: upstream, turned: make(chan struct{}), links: map[*link]struct{}{}}, nil
}

// Through returns a proxy to an address. The proxy runs until the end of t.
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

// URL returns a server's URL with the proxy's address instead of the server's.
func (p *Proxy) URL(at string) (string, error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	u.Host = p.Address()
	return u.String(), nil
}

// Run forwards connections until ctx is done. Then it resets all of them, and returns nil when they have
// ended. Call it once.
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

// SetUpstream changes the address to which the proxy forwards new connections.
func (p *Proxy) SetUpstream(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = address
}

// Cut resets all connections, and new ones as soon as they are made, until Heal.
func (p *Proxy) Cut() { p.turn(cut) }

// Refused returns how many connections were made while the proxy was cut.
func (p *Proxy) Refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// Freeze accepts connections and forwards nothing in either direction, not even the end of a connection,
// until Heal.
func (p *Proxy) Freeze() { p.turn(frozen) }

// Heal ends Cut, Freeze and Delay, and a DropReply that has not dropped its reply yet.
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

// become is turn for a caller that holds the lock.
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

// Delay delays all data in either direction, until Heal. Data that arrives during a delay goes with the next
// chunk, so it may wait twice as long.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// DropReply cuts the connection of the k-th reply from now, instead of forwarding that reply: the server has
// done what the client asked, and the client does not learn it. A reply is the data of one read from the
// server, on any connection; 1 is the next. DropReply closes the channel when it has dropped the reply.
func (p *Proxy) DropReply(k int) <-chan struct{} { return p.drop(k, false) }

// CutAtReply is DropReply and, at the same instant, Cut: until Heal no client learns what became of its
// request.
func (p *Proxy) CutAtReply(k int) <-chan struct{} { return p.drop(k, true) }

func (p *Proxy) drop(k int, cuts bool) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replies, p.dropped, p.cuts = k, make(chan struct{}), cuts
	return p.dropped
}

// drops counts a reply, and reports whether it is the one to drop.
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

// serve forwards a client's connection, until both sides have ended.
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

// admit remembers a link, so that Cut can cut it.
func (p *Proxy) admit(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == cut {
		p.refused++
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

// pass copies one direction of a link until its end. It cuts a link that fails.
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

// await waits while the proxy is frozen, and then for the delay.
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
