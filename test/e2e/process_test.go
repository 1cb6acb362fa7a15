//go:build linux && !check

package e2e_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/stage"
)

// A process is a firstcome serve of its own.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	calls *client.Client
	http  *http.Client  // for requests of which more than the call's result is asked
	dir   string        // where its ledger is
	out   string        // the file with its standard output
	url   string        // of the API
	ops   string        // HOST:PORT of the metrics
	ended chan struct{} // closed when it has ended
	err   error         // why it ended

	mu  sync.Mutex // guards log
	log strings.Builder
}

// A launch says how a process is started. The zero value of a field is its default.
type launch struct {
	dir    string               // default: a new one
	under  []string             // a command before the binary's own, such as strace
	faults string               // variable with what happens at which fault point; default: the binary that is released, which has none
	env    []string             // beside PATH and HOME
	attr   *syscall.SysProcAttr // of the process
	args   []string             // beside the addresses
}

var servingLine = regexp.MustCompile(`msg=serving .*address=(\S+) .*ops=(\S+)`)

// serve starts a server, which ends with the test at the latest, and waits until
// it serves.
func serve(t *testing.T, l launch) *process {
	t.Helper()
	if l.dir == "" {
		l.dir = t.TempDir()
	}
	binary := firstcomeBinary()
	if l.faults != "" {
		var err error
		binary, err = faultyBinary()
		stage.Must(t, err)
		l.env = append([]string{l.faults}, l.env...)
	}
	line := append(l.under, binary, "serve", "--listen", "127.0.0.1:0", "--ops", "127.0.0.1:0")
	line = append(line, l.args...)
	p := &process{t: t, cmd: exec.Command(line[0], line[1:]...), dir: l.dir, ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.SysProcAttr = l.dir, append(environ(), l.env...), l.attr
	if p.cmd.SysProcAttr == nil {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// A signal that kills the tests kills the server, too.
	p.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	out, err := os.CreateTemp(t.TempDir(), "out")
	stage.Must(t, err)
	defer out.Close()
	p.cmd.Stdout, p.out = out, out.Name()
	stderr, err := p.cmd.StderrPipe()
	stage.Must(t, err)
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", line[0], err)
	}
	t.Cleanup(func() {
		p.kill()
		text := p.text()
		wantNoRace(t, text)
		if t.Failed() {
			t.Logf("the end of a server's log:\n%s", text[max(0, len(text)-4<<10):])
		}
	})
	p.awaitServing(stderr)
	return p
}

func environ() []string { return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir()} }

func (p *process) awaitServing(stderr io.Reader) {
	p.t.Helper()
	addresses := make(chan []string, 1)
	go p.read(stderr, addresses)
	select {
	case found := <-addresses:
		p.url, p.ops = "http://"+found[1], found[2]
		p.calls = client.New(p.url, "")
		p.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
		p.t.Cleanup(p.closeIdle)
	case <-p.ended:
		p.t.Fatalf("the server ended: %v\n%s", p.err, p.text())
	case <-time.After(patience):
		p.t.Fatalf("the server does not say that it serves:\n%s", p.text())
	}
}

// read reads the log until the process ends.
func (p *process) read(stderr io.Reader, addresses chan<- []string) {
	defer close(p.ended)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		p.mu.Lock()
		p.log.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		if found := servingLine.FindStringSubmatch(lines.Text()); found != nil {
			addresses <- found
		}
	}
	p.err = p.cmd.Wait()
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// printed returns what it wrote to standard output, which is a file since it may
// still run.
func (p *process) printed() string {
	p.t.Helper()
	text, err := os.ReadFile(p.out)
	stage.Must(p.t, err)
	return string(text)
}

// kill sends SIGKILL and waits for the end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// wantNoRace wants that the race detector, where the binary has it, has found nothing.
func wantNoRace(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "WARNING: DATA RACE") {
		t.Errorf("firstcome has a data race:\n%s", text)
	}
}

// stop sends SIGTERM, and fails the test unless the exit status is 0.
func (p *process) stop() {
	p.t.Helper()
	p.closeIdle() // else the server waits a second whether they are used again
	stage.Must(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.awaitEnd()
}

// awaitEnd waits until the server has ended, and fails the test unless the exit status is 0.
func (p *process) awaitEnd() {
	p.t.Helper()
	select {
	case <-p.ended:
		if p.err != nil {
			p.t.Errorf("the server ended with %v\n%s", p.err, p.text())
		}
	case <-time.After(patience):
		p.t.Errorf("the server does not end:\n%s", p.text())
	}
}

// secure has the clients speak TLS.
func (p *process) secure(trust *x509.CertPool) {
	p.url = strings.Replace(p.url, "http://", "https://", 1)
	p.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: trust}
	p.calls = client.New(p.url, "").WithHTTP(p.http)
}

func (p *process) closeIdle() {
	p.calls.CloseIdle()
	p.http.CloseIdleConnections()
}

// ask sends a request unchanged, and returns the answer unchanged.
func (p *process) ask(method, url, body string) (answer *http.Response, text []byte) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, url, strings.NewReader(body))
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
		answer, err = p.http.Do(r)
	}
	if err == nil {
		defer answer.Body.Close()
		text, err = io.ReadAll(answer.Body)
	}
	if err != nil {
		p.t.Errorf("%s %s: %v", method, url, err)
		return &http.Response{}, nil
	}
	return answer, text
}

// metric returns the sum of the series of a metric.
func (p *process) metric(name string) (sum float64) {
	p.t.Helper()
	for _, value := range p.series(name) {
		sum += value
	}
	return sum
}

// series returns the series of a metric, by their labels.
func (p *process) series(name string) map[string]float64 {
	p.t.Helper()
	_, text := p.ask(http.MethodGet, "http://"+p.ops+"/metrics", "")
	all := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		metric, labels, _ := strings.Cut(series, "{")
		if metric != name {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			p.t.Error(err)
		}
		all[strings.TrimSuffix(labels, "}")] = number
	}
	if len(all) == 0 {
		p.t.Errorf("there is no metric %s", name)
	}
	return all
}

// create makes a campaign that is open.
func (p *process) create(id string, quantity int64) {
	p.t.Helper()
	body := fmt.Sprintf(`{"id":%q,"name":%q,"quantity":%d}`, id, id, quantity)
	if answer, text := p.ask(http.MethodPost, p.url+"/v1/campaigns", body); answer.StatusCode != http.StatusCreated {
		p.t.Fatalf("create a campaign: %s %s", answer.Status, text)
	}
}

// address returns the HOST:PORT of the API.
func (p *process) address() string { return strings.TrimPrefix(p.url, "http://") }

// ledger returns the file of the server's ledger.
func (p *process) ledger() string { return filepath.Join(p.dir, "firstcome.db") }

// execute runs firstcome in a directory and returns its exit status and what it wrote.
func execute(t *testing.T, dir string, args ...string) (status int, output string) {
	t.Helper()
	return executeWith(t, dir, nil, args...)
}

// executeWith is execute with more variables.
func executeWith(t *testing.T, dir string, env []string, args ...string) (status int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, firstcomeBinary(), args...)
	cmd.Dir, cmd.Env = dir, append(environ(), env...)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	wantNoRace(t, string(text))
	return cmd.ProcessState.ExitCode(), string(text)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// audit has firstcome audit read the ledger and its file, and wants no breach.
func (p *process) audit() {
	p.t.Helper()
	p.wantNoBreach(execute(p.t, p.dir, "audit"))
}

func (p *process) wantNoBreach(status int, out string) {
	p.t.Helper()
	if status != 0 || !strings.Contains(out, "verdict: 0 breaches in ") || strings.Contains(out, " in 0 campaigns") || strings.Contains(out, "not checked") {
		p.t.Errorf("the audit ends with %d:\n%s", status, out)
	}
}

// status returns a line of /proc/PID/status in bytes, such as VmHWM, the most
// memory that was ever resident.
func (p *process) status(name string) int64 {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	stage.Must(p.t, err)
	var kib int64
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
				p.t.Fatal(err)
			}
			return kib << 10
		}
	}
	p.t.Fatalf("there is no %s", name)
	return 0
}

// mostResident returns the most memory that was ever resident, and wants that it is at most a
// limit. The limit is the released binary's: the race detector takes several times as much.
func (p *process) mostResident(limit int64) int64 {
	p.t.Helper()
	resident := p.status("VmHWM")
	if resident > limit && !underRace {
		p.t.Errorf("%d MiB were resident, want at most %d", resident>>20, limit>>20)
	}
	return resident
}

// waitFor polls until a condition holds.
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

// insist asks until the answer is not 503. A 503 says that it is unknown whether something was
// done, as on a busy machine, so the caller asks again.
func insist(t *testing.T, ask func() error) (err error) {
	t.Helper()
	waitFor(t, "an answer other than 503", func() bool {
		err = ask()
		p := isProblem(err)
		return p == nil || p.Status != http.StatusServiceUnavailable
	})
	return err
}
