package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// patience bounds every wait for a server. It is long enough for slow and busy machines.
	patience = 3 * time.Minute
	// pause is the time between two checks whether a server answers or has ended.
	pause = 5 * time.Millisecond
	// tries bounds how often a server is started on another port, because another process took the port
	// between the check and the start.
	tries = 5
)

// A Server is a real server with a loopback port and a temporary directory. One goroutine at a time may use
// its methods.
type Server struct {
	kind      Kind
	recipe    recipe
	arguments []string
	directory string
	port      *port    // nil before the first start
	process   *process // nil if it does not run
}

// Start starts a server and returns when it answers. The server is durable: after a kill it has what it confirmed
// (Redis has nearly all: see redisRecipe), and it syncs as in production. arguments follow the recipe's own on the
// command line, and override them. ErrMissing says that there is no binary. The caller closes the server.
func (k Kind) Start(ctx context.Context, arguments ...string) (*Server, error) {
	recipe, err := k.recipe()
	if err != nil {
		return nil, err
	}
	return k.start(ctx, recipe, arguments...)
}

// start is Start with a recipe.
func (k Kind) start(ctx context.Context, recipe recipe, arguments ...string) (*Server, error) {
	s := &Server{kind: k, recipe: recipe, arguments: arguments}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", k, err), s.Close())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	err := s.prepare(ctx, os.TempDir()) // it may wait for a template, which has a minute of its own
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for try := 1; ; try++ {
		if s.port, err = takePort(); err != nil {
			return err
		}
		err = s.run(ctx)
		if err == nil || try == tries || !errors.Is(err, errEnded) {
			return err
		}
		s.port.release()
	}
}

// prepare makes the server's directory in parent and fills it.
func (s *Server) prepare(ctx context.Context, parent string) error {
	var err error
	if s.directory, err = os.MkdirTemp(parent, "firstcome-"); err != nil {
		return err
	}
	if err := os.Mkdir(s.data(), 0o700); err != nil {
		return err
	}
	for _, directory := range []string{s.directory, s.data()} {
		if err := give(directory, s.recipe.account); err != nil {
			return err
		}
	}
	if s.recipe.prepare == nil {
		return nil
	}
	line := s.recipe.prepare(s.data())
	if s.recipe.template != nil {
		template, err := s.recipe.template()
		if err != nil {
			return err
		}
		line = []string{"cp", "-R", "-p", template.data() + "/.", s.data()}
	}
	c := exec.CommandContext(ctx, line[0], line[1:]...)
	c.Dir, c.Env = s.directory, environment(s.directory)
	if c.SysProcAttr, err = attributes(s.recipe.account); err != nil {
		return err
	}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", line[0], err, out)
	}
	return nil
}

// environment returns a server's environment. It only has the PATH of the caller's environment, so that no
// other settings reach the server.
func environment(directory string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + directory, "TMPDIR=" + directory, "LC_ALL=C"}
}

func (s *Server) data() string { return filepath.Join(s.directory, "data") }

var errEnded = errors.New("the server has ended")

// run launches the server and waits until it answers.
func (s *Server) run(ctx context.Context) error {
	line := append(s.recipe.command(s.data(), s.port.String()), s.arguments...)
	var err error
	if s.process, err = launch(s.directory, s.recipe.account, s.recipe.end, line); err != nil {
		return err
	}
	if err := s.Wait(ctx); err != nil {
		return errors.Join(err, s.finish())
	}
	return nil
}

// Address returns the server's HOST:PORT, which stays the same until Close.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", s.port.String()) }

// URL returns the server's URL for a user with all rights. It names no new database; see Database.
func (s *Server) URL() string { return s.recipe.url(s.Address()) }

// Log returns what the server wrote, the last 8 KiB at most.
func (s *Server) Log() string {
	text, err := os.ReadFile(filepath.Join(s.directory, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-8<<10):])
}

// Wait returns when the server answers. It returns an error when the server has ended, when the context is
// done, or after three minutes.
func (s *Server) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	err := until(ctx, func() bool {
		last = s.recipe.ping(ctx, s.URL())
		return last == nil || s.process == nil || s.process.ended()
	})
	switch {
	case err != nil:
		return fmt.Errorf("%s does not answer: %w\n%s", s.kind, errors.Join(err, last), s.Log())
	case last != nil:
		return fmt.Errorf("%w: %w\n%s", errEnded, last, s.Log())
	}
	return nil
}

// until polls until a condition holds, or the context is done.
func until(ctx context.Context, so func() bool) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Kill sends SIGKILL to the server and to all processes that it has started, at one instant, and returns when
// they have ended.
func (s *Server) Kill() error {
	if err := s.Freeze(); err != nil {
		return err
	}
	return s.tell("kill", func(p *process) error {
		family, err := p.signalAll(syscall.SIGKILL)
		if err != nil {
			return err
		}
		return s.ended(family...)
	})
}

// Stop asks the server to end, as an operator does, and returns when the server has ended. The server closes
// its clients' connections. Stop fails if that takes three minutes.
func (s *Server) Stop() error {
	return s.tell("stop", func(p *process) error {
		if err := p.signal(s.recipe.stop); err != nil {
			return err
		}
		return s.ended()
	})
}

// tell calls do with the process, which has to be running.
func (s *Server) tell(what string, do func(*process) error) error {
	err := errEnded
	if s.process != nil {
		err = do(s.process)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, s.kind, err)
	}
	return nil
}

// ended waits until the server and the processes that it had started have ended. It keeps the server's
// directory.
func (s *Server) ended(family ...int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := until(ctx, func() bool { return s.process.ended() && allEnded(family) }); err != nil {
		return fmt.Errorf("%s does not end: %w\n%s", s.kind, err, s.Log())
	}
	return s.finish()
}

// finish ends the keeper of a server that has ended.
func (s *Server) finish() error {
	p := s.process
	s.process = nil
	return p.end(true)
}

// Freeze stops the server and all processes that it has started (SIGSTOP). Its connections stay open, and the
// system accepts new ones. The server answers nothing until Continue.
func (s *Server) Freeze() error {
	return s.tell("freeze", func(p *process) error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		// The server comes first: a stopped server starts no more processes.
		err := p.signal(sigFreeze)
		if err == nil {
			err = until(ctx, p.stopped)
		}
		if err == nil {
			_, err = p.signalAll(sigFreeze)
		}
		return err
	})
}

// Continue ends Freeze (SIGCONT).
func (s *Server) Continue() error {
	return s.tell("continue", func(p *process) error {
		_, err := p.signalAll(sigThaw)
		return err
	})
}

// Restart starts the server again after Kill or Stop, with the same address and the same data, and returns
// when the server answers. If the server runs, Restart kills it first.
func (s *Server) Restart(ctx context.Context) error {
	if s.process != nil {
		if err := s.Kill(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("restart %s: %w", s.kind, err)
	}
	return nil
}

// Close ends the server and removes its directory. It may be called again.
func (s *Server) Close() error {
	var err error
	if s.process != nil {
		err = errors.Join(s.Continue(), s.process.end(false))
		s.process = nil
	} else if s.recipe.remove != nil {
		err = s.recipe.remove(s.data())
	}
	s.port.release()
	// If there was a keeper, it has removed the directory.
	return errors.Join(err, os.RemoveAll(s.directory))
}
