package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait of these tests, for slow machines under the race detector.
const patience = 30 * time.Second

// A process is a firstcome serve of its own.
type process struct {
	cmd     *exec.Cmd
	address string        // of the API
	ops     string        // of the metrics, or off
	ended   chan struct{} // closed when it has ended
	err     error         // why it ended

	out string // the file with its standard output

	mu  sync.Mutex // guards log
	log strings.Builder
}

var servingLine = regexp.MustCompile(`msg=serving .*address=(\S+) .*ops=(\S+)`)

// launch starts firstcome with the arguments and waits until it serves.
func launch(dir string, env []string, args ...string) (*process, error) {
	return launchCommand(dir, env, "firstcome", args...)
}

func launchCommand(dir string, env []string, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, env
	out, err := os.CreateTemp(dir, "out")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p.cmd.Stdout, p.out = out, out.Name()
	dieWithTests(p.cmd)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	address := make(chan [2]string, 1)
	go p.read(stderr, address)
	select {
	case at := <-address:
		p.address, p.ops = at[0], at[1]
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%s %v ended: %w\n%s", name, args, p.err, p.text())
	case <-time.After(patience):
		p.kill()
		return nil, errors.New("the server does not say that it serves")
	}
}

// read reads the log until the process ends.
func (p *process) read(stderr io.Reader, address chan<- [2]string) {
	defer close(p.ended)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		p.mu.Lock()
		p.log.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		if found := servingLine.FindStringSubmatch(lines.Text()); found != nil {
			address <- [2]string(found[1:])
		}
	}
	p.err = p.cmd.Wait()
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// printed returns the last line of what it wrote to standard output: a file, since
// it may still run.
func (p *process) printed(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// signal sends a signal and returns how the process ended.
func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return err
	}
	return p.wait()
}

func (p *process) wait() error {
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		p.kill()
		return errors.New("the process does not end")
	}
}

// serveIn starts a server in a directory, which ends with the test.
func serveIn(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p, err := launch(dir, pathOnly(), append([]string{"serve", "--listen", "127.0.0.1:0", "--ops", "off"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// execute runs firstcome in a directory and returns its exit status and output.
func execute(t *testing.T, dir string, args ...string) (status int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "firstcome", args...)
	cmd.Dir, cmd.Env = dir, pathOnly()
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}
