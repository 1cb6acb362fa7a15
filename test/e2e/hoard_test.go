//go:build linux

package e2e_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// descriptors raises the limit of open files to what so many connections need, as
// far as it may, and returns for how many there is room.
func descriptors(t *testing.T, connections int) int {
	t.Helper()
	const rest = 1000 // for the tests themselves, and the healthy clients
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	want := uint64(connections + rest)
	if limit.Cur < want {
		raised := syscall.Rlimit{Cur: want, Max: max(limit.Max, want)}
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil {
			limit = raised
		} else { // only root may go above the hard limit
			limit.Cur = limit.Max
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
				t.Fatal(err)
			}
		}
	}
	room := min(connections, int(limit.Cur)-rest)
	if room < connections {
		t.Logf("the limit of %d open files has room for %d connections of %d", limit.Cur, room, connections)
	}
	return room
}

func TestF17FewFileDescriptorsShedButDoNotDeadlock(t *testing.T) {
	const descriptors = 100
	p := serve(t, launch{under: []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, descriptors), "sh"}})
	p.create("spring", 1000)
	var all []net.Conn
	var dialer net.Dialer
	for range 4 * descriptors {
		c, err := dialer.DialContext(t.Context(), "tcp", p.url[len("http://"):])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	// While they are open, a claim is answered, or told that it should come again.
	if _, err := p.calls.Claim(t.Context(), "spring", "among-hoarders"); err != nil && (isProblem(err) == nil || isProblem(err).Status != http.StatusServiceUnavailable) {
		t.Errorf("among idle connections a claim got %v", err)
	}
	for _, c := range all {
		_ = c.Close()
	}
	waitFor(t, "a claim to be answered again", func() bool {
		_, err := p.calls.Claim(t.Context(), "spring", "afterwards")
		return err == nil
	})
	p.stop()
}

// hoard makes connections that never have a whole request: one third says
// nothing, one stops within its headers, one was answered and holds on. They come
// from several addresses, so that there are ports enough.
func hoard(t *testing.T, p *process, connections int) (release func()) {
	t.Helper()
	const dialers = 8
	texts := []string{"", "POST /v1/campaigns/spring/claims HTTP/1.1\r\nHost: localhost\r\n", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"}
	held := make([]net.Conn, connections)
	var next atomic.Int64
	var all sync.WaitGroup
	for n := range dialers {
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+n))}, Timeout: patience}
		all.Go(func() {
			for k := next.Add(1) - 1; k < int64(connections); k = next.Add(1) - 1 {
				c, err := from.DialContext(t.Context(), "tcp", p.url[len("http://"):])
				if err != nil {
					t.Errorf("connection %d: %v", k, err)
					return
				}
				held[k] = c
				_, _ = c.Write([]byte(texts[k%int64(len(texts))])) // it may have been cut already
			}
		})
	}
	all.Wait()
	return func() {
		for _, c := range held {
			if c != nil {
				_ = c.Close()
			}
		}
	}
}

// TestF30TwentyThousandIdleConnectionsKeepNobodyOut has healthy clients claim
// while others hoard more connections than the server has room for.
func TestF30TwentyThousandIdleConnectionsKeepNobodyOut(t *testing.T) {
	const clients, most, residentLimit = 8, 5 * time.Second, 512 << 20
	connections := descriptors(t, 20_000)
	p := serve(t, launch{})
	p.create("spring", 10_000_000)
	crowd := newCrowd("spring")
	claiming, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for claiming.Err() == nil {
				if _, err := crowd.claim(t.Context(), p.calls, crowd.user()); err != nil {
					t.Errorf("a healthy client gets %v", err)
				}
			}
		})
	}
	crowd.awaitAnswers(t, 100)
	started := time.Since(crowd.start)
	release := hoard(t, p, connections)
	defer release()
	// A client who comes only now finds room, too.
	crowd.awaitAnswers(t, 1000)
	p.closeIdle()
	if answer, _ := crowd.post(p, crowd.user()); answer.StatusCode != 201 {
		t.Errorf("among the hoarders a new client gets %s", answer.Status)
	}
	stop()
	all.Wait()
	open, evicted, resident := p.metric("firstcome_open_connections"), p.metric("firstcome_evicted_connections_total"), p.status("VmHWM")
	slowest := crowd.slowest(started)
	t.Logf("of %d idle connections %v are open and %v were cut; the slowest healthy claim took %v; at most %d MiB resident",
		connections, open, evicted, slowest, resident>>20)
	if slowest > most || resident > residentLimit {
		t.Errorf("healthy claims took up to %v, want at most %v; %d MiB were resident", slowest, most, resident>>20)
	}
	crowd.verdict(p)
	release()
	p.stop()
}

// slowest returns the longest time that a claim took that was sent since.
func (c *crowd) slowest(since time.Duration) (longest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range c.claims {
		if claim.Sent >= since {
			longest = max(longest, claim.Received-claim.Sent)
		}
	}
	return longest
}
