//go:build linux && !check

package e2e_test

import (
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// freeze stops a process with SIGSTOP, until thaw.
func (p *process) freeze() { p.signal(syscall.SIGSTOP) }

func (p *process) thaw() { p.signal(syscall.SIGCONT) }

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	stage.Must(p.t, p.cmd.Process.Signal(s))
}

// TestF23ANodeThatIsFrozenInItsTransactionAndContinuedBreaksNothing freezes a node whose transaction waits for a campaign's row, and
// then gives it the row. The others go on once the server has ended that transaction. Then the node thaws and goes on with it.
// The fault points freeze nodes and recorders at every other step.
func TestF23ANodeThatIsFrozenInItsTransactionAndContinuedBreaksNothing(t *testing.T) {
	d := mariaDB.deploy(t)
	d.create("spring", 10_000_000, firstcome.Recorded)
	crowd := newCrowd("spring")
	crowd.longest = time.Second // nobody waits for a node that does not answer
	stop := d.claimUntil(crowd, 12)
	defer stop()
	crowd.awaitAnswers(t, 50)
	db := services.Beside(t, d.plain)
	lock, err := db.BeginTx(t.Context(), nil)
	stage.Must(t, err)
	_, err = lock.ExecContext(t.Context(), `UPDATE campaigns SET quantity = quantity + 1`)
	stage.Must(t, err)
	waitFor(t, "all nodes to wait for the row", func() bool { return mariaDB.waiting(t, db) >= len(d.nodes) })
	d.nodes[0].freeze()
	stage.Must(t, lock.Rollback())
	crowd.awaitAnswers(t, 50)
	d.nodes[0].thaw()
	crowd.awaitAnswers(t, 50)
	stop()
	d.drained("spring")
	d.verdict(crowd)
}

// waiting returns how many of a ledger's transactions wait for a lock.
func (s setup) waiting(t *testing.T, db *sql.DB) (count int) {
	t.Helper()
	waits := `SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	if s.ledger == services.MariaDB {
		// innodb_trx is read again every 100 ms at most, and never for a caller that asks more often.
		waits = `SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info NOT LIKE '%processlist%' AND time_ms > 50`
	}
	stage.Must(t, db.QueryRowContext(t.Context(), waits).Scan(&count))
	return count
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

// TestF09F12AGateThatHangsIsToldByTheDeadlineAndHeals freezes the server that decides while users claim without pause. Each user is
// answered 503 after the deadline, and the nodes give up their connections to Redis, which they do after four seconds without an
// answer to a ping. No more requests wait for the server than there are clients.
func TestF09F12AGateThatHangsIsToldByTheDeadlineAndHeals(t *testing.T) {
	on(t, aGateThatHangs, postgreSQL, redisOfMariaDB)
}

func aGateThatHangs(t *testing.T, s setup) {
	const clients = 24
	d := s.deploy(t, "--answer-wait", "1s")
	d.create("spring", 10_000_000, firstcome.Recorded)
	crowd := newCrowd("spring")
	stop := d.claimUntil(crowd, clients)
	defer stop()
	crowd.awaitAnswers(t, 100)
	before := d.node(1).goroutines()
	server, proxy := d.decider()
	open := connectionsTo(t, proxy.Address())
	stage.Must(t, server.Freeze())
	waitFor(t, "claims with an unknown outcome", func() bool { return len(crowd.unknown()) >= 2*clients })
	if s.redis {
		waitFor(t, "the nodes to give up their connections", func() bool {
			now := connectionsTo(t, proxy.Address())
			return !slices.ContainsFunc(open, func(c string) bool { return slices.Contains(now, c) })
		})
	}
	hanging, unknown := d.node(1).goroutines(), crowd.unknown()
	stage.Must(t, server.Continue())
	crowd.awaitAnswers(t, 100)
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
}

// connectionsTo returns the clients' ends of the connections to an address that the kernel has as established.
func connectionsTo(t *testing.T, address string) (clients []string) {
	t.Helper()
	const established = "01"
	_, port, err := net.SplitHostPort(address)
	stage.Must(t, err)
	number, err := strconv.Atoi(port)
	stage.Must(t, err)
	table, err := os.ReadFile("/proc/net/tcp")
	stage.Must(t, err)
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line) // number, local address, remote address, state
		if strings.HasSuffix(f[2], fmt.Sprintf(":%04X", number)) && f[3] == established {
			clients = append(clients, f[1])
		}
	}
	return clients
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
