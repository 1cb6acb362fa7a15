//go:build linux

package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// freeze stops a process with SIGSTOP, until thaw.
func (p *process) freeze() { p.signal(syscall.SIGSTOP) }

func (p *process) thaw() { p.signal(syscall.SIGCONT) }

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	stage.Must(p.t, p.cmd.Process.Signal(s))
}

// TestF23WhoIsFrozenInMidIssueAndContinuedBreaksNothing freezes a node and a recorder for
// longer than others wait before they take over its entries. The others go on
// meanwhile. Then both thaw, and write what they were about to write.
func TestF23WhoIsFrozenInMidIssueAndContinuedBreaksNothing(t *testing.T) {
	for _, s := range trials() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			frozen := time.Duration(rounds(2, 30)) * time.Second
			if s.redis {
				frozen = time.Duration(rounds(6, 30)) * time.Second // entries are taken over after 5
			}
			d := s.deploy(t)
			d.create("spring", 10_000_000, s.answer)
			crowd := newCrowd("spring")
			crowd.longest = time.Second // nobody waits for a node that does not answer
			stop := d.claimUntil(crowd, 12)
			defer stop()
			both := slices.Concat(d.nodes[:1], d.recorders[:min(1, len(d.recorders))])
			crowd.awaitAnswers(t, 100)
			for _, p := range both {
				p.freeze()
			}
			<-time.After(frozen)
			crowd.awaitAnswers(t, 50) // where the ledger decides, once it has ended the frozen node's transaction
			for _, p := range both {
				p.thaw()
			}
			crowd.awaitAnswers(t, 50)
			if len(d.recorders) > 0 { // the recorder that was frozen records on, alone
				d.recorders[1].stop()
				crowd.awaitAnswers(t, 50)
			}
			stop()
			t.Logf("drained in %v", d.drained("spring"))
			d.verdict(crowd)
		})
	}
}

// goroutines returns how many a process has, by its profile.
func (p *process) goroutines() (count int) {
	p.t.Helper()
	_, text := p.ask(http.MethodGet, "http://"+p.ops+"/debug/pprof/goroutine?debug=1", "")
	if _, err := fmt.Sscanf(string(text), "goroutine profile: total %d", &count); err != nil {
		p.t.Errorf("the profile of goroutines: %v in %.100s", err, text)
	}
	return count
}

// TestF09F12AGateThatHangsIsToldByTheDeadlineAndHeals freezes the server that
// decides while users claim without pause. Each user is answered 503 after the
// deadline. No more requests wait for the server than there are clients. Redis is frozen for longer than
// the four seconds that its clients wait for a sign of life, so that they give up their connections.
func TestF09F12AGateThatHangsIsToldByTheDeadlineAndHeals(t *testing.T) {
	const clients = 24
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			frozen := time.Duration(rounds(3, 15)) * time.Second
			if s.redis {
				frozen = time.Duration(rounds(6, 15)) * time.Second
			}
			d := s.deploy(t, "--answer-wait", "1s")
			d.create("spring", 10_000_000, firstcome.Recorded)
			crowd := newCrowd("spring")
			stop := d.claimUntil(crowd, clients)
			defer stop()
			crowd.awaitAnswers(t, 100)
			before := d.node(1).goroutines()
			server, _ := d.decider()
			connections := d.connections()
			stage.Must(t, server.Freeze())
			<-time.After(frozen)
			hanging := d.node(1).goroutines()
			waitFor(t, "somebody to be told that the gate hangs", func() bool { return len(crowd.unknown()) > 0 })
			unknown := crowd.unknown()
			stage.Must(t, server.Continue())
			crowd.awaitAnswers(t, 200)
			if now := d.connections(); s.redis && now < connections+int64(len(d.nodes)) {
				t.Errorf("Redis was connected to %d times before it froze for %v, and %d times since: the nodes did not give it up", connections, frozen, now)
			}
			stop()
			d.closeIdle()
			waitFor(t, "the goroutines to end", func() bool { return d.node(1).goroutines() <= before+5 })
			// A client has a connection to each node, and a request is up to four goroutines.
			if hanging > before+4*clients {
				t.Errorf("there were %d goroutines before and %d while the gate hung", before, hanging)
			}
			unavailable(t, unknown)
			t.Logf("%d goroutines, %d while it hung; %d claims unknown by then; drained in %v", before, hanging, len(unknown), d.drained("spring"))
			d.verdict(crowd)
		})
	}
}

// connections returns how many connections Redis has accepted since its start; 0 where the ledger decides.
func (d *deployment) connections() (count int64) {
	d.t.Helper()
	if d.gate == nil {
		return 0
	}
	text, err := tellRedis(d.t, d.gate.URL(), "INFO", "stats").ToString()
	stage.Must(d.t, err)
	_, behind, _ := strings.Cut(text, "total_connections_received:")
	if _, err := fmt.Sscan(behind, &count); err != nil {
		d.t.Fatal(err)
	}
	return count
}

// unknown returns why claims have no outcome.
func (c *crowd) unknown() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.errs)
}

// unavailable checks that each claim without an outcome was answered 503, with the
// time to ask again.
func unavailable(t *testing.T, errs []error) {
	t.Helper()
	for _, err := range errs {
		if p := isProblem(err); p == nil || p.Status != http.StatusServiceUnavailable || p.RetryAfter <= 0 {
			t.Errorf("an outcome is unknown without 503 and Retry-After: %v", err)
		}
	}
}

// closeIdle closes the clients' connections that are not in use.
func (f *fleet) closeIdle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.nodes {
		p.closeIdle()
	}
}
