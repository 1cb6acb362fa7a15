package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/services"
)

// A server is a process under load.
type server struct {
	address string
	ops     string
	process *os.Process
	exited  chan error
}

// build makes the firstcome binary.
func (b *bench) build(ctx context.Context) error {
	b.binary = filepath.Join(b.dir, "firstcome")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "./cmd/firstcome")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// firstcome starts a server on a ledger in the given directory.
func (b *bench) firstcome(ctx context.Context, ledger string) *server {
	return b.serve(ctx, nil, "--ledger", "sqlite:"+filepath.Join(b.dir, ledger))
}

// serve starts a server with more variables and arguments.
func (b *bench) serve(ctx context.Context, env []string, args ...string) *server {
	address, ops := value(services.Address()), value(services.Address())
	cmd := exec.Command(b.binary, append([]string{"serve", "--listen", address, "--ops", ops, "--log-level", "error"}, args...)...)
	cmd.Env = append(services.Environ(), env...)
	s := begin(ctx, cmd, address)
	s.ops = ops
	return s
}

// reference starts this program as a reference server.
func (b *bench) reference(ctx context.Context, args ...string) *server {
	address := value(services.Address())
	return begin(ctx, exec.Command(value(os.Executable()), append(args, "-listen", address)...), address)
}

// begin starts a process and waits until it answers.
func begin(ctx context.Context, cmd *exec.Cmd, address string) *server {
	cmd.Stderr = os.Stderr
	must(cmd.Start())
	s := &server{address: address, process: cmd.Process, exited: make(chan error, 1)}
	go func() { s.exited <- cmd.Wait() }()
	must(s.ready(ctx))
	return s
}

// ready waits until the server answers.
func (s *server) ready(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case err := <-s.exited:
			return fmt.Errorf("the server at %s ended: %w", s.address, err)
		default:
		}
		if client.New("http://"+s.address, "").Ready(ctx) == nil {
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return ctx.Err()
}

func (s *server) stop() {
	_ = s.process.Signal(syscall.SIGTERM)
	<-s.exited
}

// cpu returns the processor time that the process has used.
func (s *server) cpu() time.Duration {
	text := value(os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Pid)))
	// The fields behind the name in brackets: utime and stime are the 12th and 13th.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, system := value(strconv.ParseInt(fields[11], 10, 64)), value(strconv.ParseInt(fields[12], 10, 64))
	const tick = 10 * time.Millisecond // USER_HZ is 100 on Linux
	return time.Duration(user+system) * tick
}

// memory returns the resident memory of the process, in bytes.
func (s *server) memory() int64 {
	file := value(os.Open(fmt.Sprintf("/proc/%d/status", s.process.Pid)))
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if size, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			return 1024 * value(strconv.ParseInt(strings.Fields(size)[0], 10, 64))
		}
	}
	panic(failure{errors.New("the kernel does not say how much memory the process has")})
}

// metric returns the sum of a metric's samples.
func (s *server) metric(name string) (sum float64) {
	answer := value(http.Get("http://" + s.ops + "/metrics"))
	defer answer.Body.Close()
	found := false
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		sample, number, ok := strings.Cut(lines.Text(), " ")
		if base, _, _ := strings.Cut(sample, "{"); !ok || base != name {
			continue
		}
		sum, found = sum+value(strconv.ParseFloat(number, 64)), true
	}
	if !found {
		must(fmt.Errorf("the server has no metric %s", name))
	}
	return sum
}

// serveBare is the reference: a bare handler that reads the body of a request and, after
// first if there is one, answers with the status and the bytes that a PUT gave it before. The http.Server
// around it, as around the other reference, has the time-outs that any server in public
// needs, firstcome's own.
func serveBare(ctx context.Context, address string, first func(ctx context.Context, body []byte) error) error {
	status, kind, answer := http.StatusOK, "text/plain", []byte("ok")
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if r.Method == http.MethodPut {
			status, _ = strconv.Atoi(r.Header.Get("Status"))
			kind, answer = r.Header.Get("Content-Type"), body
		}
		if r.Method == http.MethodPut {
			return
		}
		if first != nil && r.Method == http.MethodPost {
			if err := first(r.Context(), body); err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}
	return serveHTTP(ctx, address, http.HandlerFunc(handler))
}

// serveHTTP serves until ctx ends.
func serveHTTP(ctx context.Context, address string, handler http.Handler) error {
	s := &http.Server{
		Addr: address, Handler: handler,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// fsyncTime returns the median time of a write of 64 KiB and its fdatasync.
func fsyncTime(dir string) (time.Duration, error) {
	file, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	block, times := make([]byte, 64<<10), make([]time.Duration, 200)
	for n := range times {
		began := time.Now()
		if _, err := file.WriteAt(block, 0); err != nil {
			return 0, err
		}
		if err := syncData(file); err != nil {
			return 0, err
		}
		times[n] = time.Since(began)
	}
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	return times[len(times)/2], nil
}
