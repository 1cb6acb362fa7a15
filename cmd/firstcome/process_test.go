package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// patience is the longest wait in these tests, for slow machines under the race detector.
const patience = time.Minute

// A process is the server of a script. test/e2e tests servers as processes.
type process struct {
	cmd     *exec.Cmd
	address string        // of the API
	log     string        // up to when it served
	ended   chan struct{} // closed when it has ended
	err     error         // why it ended
}

var servingLine = regexp.MustCompile(`msg=serving .*address=(\S+)`)

// launch starts firstcome with the arguments and waits until it serves.
func launch(dir string, env []string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command("firstcome", args...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, env
	dieWithTests(p.cmd)
	stderr, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	serving := make(chan struct{})
	go p.read(stderr, serving)
	select {
	case <-serving:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("firstcome %v ended: %w\n%s", args, p.err, p.log)
	case <-time.After(patience):
		p.kill()
		return nil, errors.New("the server does not say that it serves")
	}
}

// read reads the log until the process ends.
func (p *process) read(stderr io.Reader, serving chan<- struct{}) {
	defer close(p.ended)
	var log strings.Builder
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && p.address == "" {
		log.WriteString(lines.Text() + "\n")
		if found := servingLine.FindStringSubmatch(lines.Text()); found != nil {
			p.address, p.log = found[1], log.String()
			close(serving)
		}
	}
	_, _ = io.Copy(io.Discard, stderr)
	if p.address == "" {
		p.log = log.String()
	}
	p.err = p.cmd.Wait()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// stop sends SIGTERM and returns how the process ended.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		p.kill()
		return errors.New("the process does not end")
	}
}
