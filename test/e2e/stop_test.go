//go:build linux && !check

package e2e_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/test/stage"
)

// A caller claims over bare connections, so that nothing is sent again behind its
// back: a connection that was accepted is answered, or that is an error.
type caller struct {
	*crowd
	address string
	keep    bool     // the connection for the next claim
	refused []string // the users whose connection was reset before any answer: it was made, and not accepted
}

// claimAll has new users claim until the server cannot be connected to any more. A connection
// that the kernel made while the server stopped may be reset before it is here.
func (c *caller) claimAll(t *testing.T) {
	t.Helper()
	dialer := net.Dialer{Timeout: patience}
	for {
		conn, err := dialer.DialContext(t.Context(), "tcp", c.address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if errors.Is(err, syscall.ECONNRESET) {
			continue
		}
		if err != nil {
			t.Errorf("a connection is not refused, but: %v", err)
			return
		}
		if err := c.converse(conn); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	}
}

// converse claims over one connection until an answer says that it closes.
func (c *caller) converse(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	answers := bufio.NewReader(conn)
	for n := 0; ; n++ {
		last, err := c.exchange(conn, answers, n == 0)
		if err != nil {
			return fmt.Errorf("request %d of a connection: %w", n+1, err)
		}
		if last {
			return nil
		}
	}
}

// exchange sends one claim and keeps its answer. It tells whether the connection is over. The first of a
// connection may be refused.
func (c *caller) exchange(conn net.Conn, answers *bufio.Reader, first bool) (last bool, err error) {
	user, header := c.user(), ""
	if !c.keep {
		header = "Connection: close\r\n"
	}
	body := `{"user_id":"` + user + `"}`
	claim := audit.Claim{User: firstcome.UserID(user), Sent: time.Since(c.start)}
	var said client.Answer
	defer func() {
		if first && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
			c.refused = append(c.refused, user)
			last, err = true, nil
			return
		}
		c.crowd.keep(claim, said, err)
	}()
	_, err = fmt.Fprintf(conn, "POST /v1/campaigns/%s/claims HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		c.campaign, header, len(body), body)
	if err != nil {
		return false, err
	}
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil || said.Coupon == nil {
		return false, fmt.Errorf("answered %s: %s, %w", response.Status, text, err)
	}
	return response.Close, nil
}

// TestF22SIGTERMUnderLoadAnswersEveryConnectionThatItAccepted stops the server repeatedly
// while clients claim that ignore its readiness. Some keep their
// connections, some make one for each claim, and some have one that they do not use. A connection that was not
// accepted is reset, and a claim sent on it has no effect. With a drain delay the server accepts for as long, at least.
func TestF22SIGTERMUnderLoadAnswersEveryConnectionThatItAccepted(t *testing.T) {
	stopsUnderLoad(t, 0, 300*time.Millisecond)
}

func stopsUnderLoad(t *testing.T, delays ...time.Duration) {
	const many, unused = 16, 8
	crowd := newCrowd("spring")
	var dir string
	var callers []*caller
	for n, delay := range delays {
		p := serve(t, launch{dir: dir, args: append(patient, "--drain-delay", delay.String(), "--shutdown-grace", "60s")})
		if dir = p.dir; n == 0 {
			p.create("spring", 10_000_000)
		}
		address := p.address()
		var all sync.WaitGroup
		for k := range many {
			c := &caller{crowd: crowd, address: address, keep: k%2 == 0}
			callers = append(callers, c)
			all.Go(func() { c.claimAll(t) })
		}
		crowd.awaitAnswers(t, 200)
		for range unused {
			c, err := net.Dial("tcp", address)
			stage.Must(t, err)
			defer c.Close()
		}
		signalled := time.Now()
		p.stop() // it is a failure if the server had to cut somebody off after the grace
		if took := time.Since(signalled); took < delay {
			t.Errorf("it stopped %v after the signal, and has a drain delay of %v", took, delay)
		}
		all.Wait()
	}
	p := serve(t, launch{dir: dir})
	if len(crowd.errs) > 0 {
		t.Errorf("%d claims were not answered", len(crowd.errs))
	}
	refused := 0
	for _, c := range callers {
		for _, user := range c.refused {
			if refused++; refused > len(delays)*many {
				t.Fatal("more connections were reset than one a client and stop")
			}
			if _, err := p.calls.ClaimOf(t.Context(), "spring", user); isProblem(err) == nil || isProblem(err).Status != http.StatusNotFound {
				t.Errorf("a claim on a connection that was reset is %v", err)
			}
		}
	}
	t.Logf("%d connections were reset before they were accepted", refused)
	crowd.verdict(p)
	p.stop()
}

// TestF22UntilItsDrainDelayIsOverAServerIsUnreadyAndAnswersAndASecondSignalEndsItAtOnce has clients behind a load balancer that takes its
// time: the server's delay does not end before the test does.
func TestF22UntilItsDrainDelayIsOverAServerIsUnreadyAndAnswersAndASecondSignalEndsItAtOnce(t *testing.T) {
	p := serve(t, launch{args: append(patient, "--drain-delay", "1h")})
	p.create("spring", 10_000_000)
	crowd := newCrowd("spring")
	stop := crowd.claimUntil(p, 8)
	defer stop()
	crowd.awaitAnswers(t, 100)
	stage.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	waitFor(t, "the server to be unready", func() bool { return p.calls.Ready(t.Context()) != nil })
	crowd.awaitAnswers(t, 100)
	p.calls.CloseIdle()
	crowd.awaitAnswers(t, 100) // over connections that are new, too
	stop()
	stage.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	waitFor(t, "the end", p.hasEnded)
	var exit *exec.ExitError
	if !errors.As(p.err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v, want the exit status 1", p.err)
	}
	again := serve(t, launch{dir: p.dir})
	crowd.verdict(again)
	again.stop()
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
