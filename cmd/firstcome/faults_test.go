package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/ledger"
)

func pathOnly() []string { return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir()} }

// open makes a campaign on a server.
func open(t *testing.T, p *process, id string, quantity int64) *client.Client {
	t.Helper()
	calls := client.New("http://"+p.address, "")
	t.Cleanup(calls.CloseIdle)
	if _, err := calls.CreateCampaign(t.Context(), client.NewCampaign{ID: id, Name: id, Quantity: &quantity}); err != nil {
		t.Fatal(err)
	}
	return calls
}

// A crowd claims for ever new users until it is told to stop, as clients behind a
// load balancer do: each asks again only if it may.
type crowd struct {
	name    string // of its users
	stopped atomic.Bool
	next    atomic.Int64
	wait    sync.WaitGroup

	mu     sync.Mutex // guards what follows
	codes  map[string]string
	errors []error
}

// claim has workers claim; shared connections are kept alive.
func (c *crowd) claim(ctx context.Context, calls *client.Client, id string, workers int) {
	c.codes = map[string]string{}
	for range workers {
		c.wait.Go(func() {
			for !c.stopped.Load() {
				user := c.name + strconv.FormatInt(c.next.Add(1), 10)
				answer, err := calls.Claim(ctx, id, user)
				c.note(user, answer, err)
			}
		})
	}
}

func (c *crowd) note(user string, answer client.Answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.errors = append(c.errors, err)
	} else if answer.Coupon != nil {
		c.codes[user] = answer.Coupon.Code
	}
}

func (c *crowd) stop() {
	c.stopped.Store(true)
	c.wait.Wait()
}

func (c *crowd) answered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.codes)
}

// missing returns how many answered coupons the ledger does not have as answered.
func (c *crowd) missing(t *testing.T, file, id string) (missing int) {
	t.Helper()
	l, err := ledger.OpenShared(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for user, code := range c.codes {
		kept, err := l.CouponOf(t.Context(), firstcome.CampaignID(id), firstcome.UserID(user))
		if err != nil || kept.Code != code {
			missing++
		}
	}
	return missing
}

// waitFor waits until something holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestF22SIGTERMAtPeakLosesNoAnswerAndResetsNoConnection(t *testing.T) {
	dir := t.TempDir()
	p := serveIn(t, dir, "--drain-delay", "1s", "--shutdown-grace", "10s")
	calls := open(t, p, "spring", 1_000_000)
	crowd := &crowd{name: "user-"}
	crowd.claim(t.Context(), calls, "spring", 32)
	waitFor(t, "coupons to be issued", func() bool { return crowd.answered() > 1000 })

	before := crowd.answered()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// The load balancer: it asks /readyz, and sends nobody here any more once that says no.
	waitFor(t, "the server to be unready", func() bool { return calls.Ready(t.Context()) != nil })
	unready := time.Now()
	waitFor(t, "answers while it is unready", func() bool { return crowd.answered() > before+100 })
	crowd.stop()
	calls.CloseIdle()
	if err := p.wait(); err != nil {
		t.Errorf("the server did not exit with 0: %v\n%s", err, p.text())
	}
	if took := time.Since(unready); took > 12*time.Second {
		t.Errorf("it took %v to end", took)
	}
	for _, err := range crowd.errors {
		t.Errorf("a client saw: %v", err)
	}
	if missing := crowd.missing(t, filepath.Join(dir, "firstcome.db"), "spring"); missing > 0 {
		t.Errorf("%d of %d answered coupons are not in the ledger", missing, crowd.answered())
	}
	if status, output := execute(t, dir, "audit"); status != 0 {
		t.Errorf("the audit says: %s", output)
	}
}

func TestF22ASecondSignalEndsAtOnce(t *testing.T) {
	p := serveIn(t, t.TempDir(), "--drain-delay", "1h")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the server to stop", func() bool { return strings.Contains(p.text(), "msg=stopping") })
	var exit *exec.ExitError
	if err := p.signal(syscall.SIGTERM); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v, want the exit status 1", err)
	}
}

func TestF21AServerThatIsKilledWhileItIssuesKeepsWhatItAnswered(t *testing.T) {
	const kills, between = 3, 200 // test/e2e kills it more often
	dir := t.TempDir()
	p := serveIn(t, dir)
	open(t, p, "spring", 1_000_000).CloseIdle()
	last := &crowd{codes: map[string]string{}}
	for n := range kills {
		calls := client.New("http://"+p.address, "")
		// Who was answered before the kill before finds the same coupon.
		for user, code := range last.codes {
			answer, err := calls.Claim(t.Context(), "spring", user)
			if err != nil || answer.Outcome != "already_issued" || answer.Coupon.Code != code {
				t.Fatalf("%s was issued %s, and is answered %+v, %v", user, code, answer, err)
			}
		}
		crowd := &crowd{name: "kill-" + strconv.Itoa(n) + "-"}
		crowd.claim(t.Context(), calls, "spring", 16)
		waitFor(t, "coupons to be issued", func() bool { return crowd.answered() > between })
		p.kill() // it counts: the crowd claims on, and there is stock
		crowd.stop()
		calls.CloseIdle()
		last = crowd
		p = serveIn(t, dir)
		if missing := crowd.missing(t, filepath.Join(dir, "firstcome.db"), "spring"); missing > 0 {
			t.Errorf("after kill %d, %d of %d answered coupons are not in the ledger", n, missing, len(crowd.codes))
		}
	}
	if status, output := execute(t, dir, "audit"); status != 0 {
		t.Errorf("the audit says: %s", output)
	}
}

func TestF17FewFileDescriptorsShedButDoNotDeadlock(t *testing.T) {
	const descriptors = 100
	dir := t.TempDir()
	p, err := launchCommand(dir, pathOnly(), "sh", "-c",
		fmt.Sprintf("ulimit -n %d && exec firstcome serve --listen 127.0.0.1:0 --ops off", descriptors))
	if err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	calls := open(t, p, "spring", 1000)
	var hoard []net.Conn
	var dialer net.Dialer
	for range 4 * descriptors {
		c, err := dialer.DialContext(t.Context(), "tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		hoard = append(hoard, c)
	}
	// While they are open, a claim is answered, or told that it should come again.
	_, err = calls.Claim(t.Context(), "spring", "among-hoarders")
	if problem := (*client.Problem)(nil); err != nil && (!errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable) {
		t.Errorf("among idle connections a claim got %v", err)
	}
	for _, c := range hoard {
		_ = c.Close()
	}
	waitFor(t, "a claim to be answered again", func() bool {
		_, err := calls.Claim(t.Context(), "spring", "afterwards")
		return err == nil
	})
	calls.CloseIdle()
	if err := p.signal(syscall.SIGTERM); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestF56AMigrationThatIsKilledAtAnyInstantGoesOn(t *testing.T) {
	const kills = 12
	started := time.Now()
	if status, output := execute(t, t.TempDir(), "migrate"); status != 0 {
		t.Fatal(output)
	}
	undisturbed := time.Since(started)
	for n := range kills {
		dir := t.TempDir()
		cmd := exec.Command("firstcome", "migrate")
		cmd.Dir, cmd.Env = dir, pathOnly()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		delay := undisturbed * time.Duration(n+1) / kills
		kill := time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // killed, or done before
		kill.Stop()
		// Opening a ledger checks its schema, and makes it whole.
		if l, _, err := openLedger(t.Context(), filepath.Join(dir, "firstcome.db"), "test", nil); err != nil {
			t.Fatalf("after a kill at %v: %v", delay, err)
		} else if wrong, err := l.Verify(t.Context()); err != nil || len(wrong) > 0 {
			t.Fatalf("after a kill at %v: %v, %v", delay, wrong, err)
		} else if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestF56OneOfTwoMigratesAndTheOtherIsToldWho(t *testing.T) {
	dir := t.TempDir()
	serveIn(t, dir)
	status, output := execute(t, dir, "migrate")
	if status != 1 || !strings.Contains(output, "another firstcome has the ledger") {
		t.Errorf("beside a server, migrate exits with %d and says: %s", status, output)
	}
}

func TestF56ASchemaNewerThanTheBinaryIsRefusedWithAdvice(t *testing.T) {
	dir := t.TempDir()
	if status, output := execute(t, dir, "migrate"); status != 0 {
		t.Fatal(output)
	}
	err := change(filepath.Join(dir, "firstcome.db"), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)`)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"serve", "--ops", "off", "--listen", "127.0.0.1:0"}, {"migrate"}, {"key", "list"}, {"audit"}, {"backup", "b.db"}} {
		status, output := execute(t, dir, command...)
		if status != 1 || !strings.Contains(output, "run the newer firstcome") {
			t.Errorf("%v exits with %d and says: %s", command, status, output)
		}
	}
}
