//go:build linux && !check

package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/firstcome/firstcome/test/stage"
)

// onDisk runs a test in a child process with a file system of its own: a few megabytes, in the
// directory that the child is given. That needs only the right to make a user namespace,
// which root has.
func onDisk(t *testing.T, test func(t *testing.T, disk string)) {
	const child = "E2E_DISK"
	if disk := os.Getenv(child); disk != "" {
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=16m"); err != nil {
			t.Fatalf("mount a small disk: %v", err)
		}
		test(t, disk)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), child+"="+t.TempDir())
	cmd.SysProcAttr = namespace(syscall.CLONE_NEWNS, 0, os.Getuid(), os.Getgid())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("on a disk of its own: %v\n%s", err, out)
	}
}

// namespace has a process begin in a new user namespace, as inside there and as
// uid and gid outside.
func namespace(flags uintptr, inside, uid, gid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  flags | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: inside, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: inside, HostID: gid, Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
}

// serveUnprivileged starts a server that owns its files and is nobody special:
// what is neither root nor kept across exec has no capability, so that the modes
// of files bind it, also where the tests run as root.
func serveUnprivileged(t *testing.T, dir string) *process {
	t.Helper()
	return serve(t, launch{dir: dir, attr: namespace(0, 1000, 0, 0)})
}

// fill takes all room on a disk except what a server needs to start. It returns a function
// that frees the room again.
func fill(t *testing.T, disk string, room int64) (free func()) {
	t.Helper()
	var f syscall.Statfs_t
	stage.Must(t, syscall.Statfs(disk, &f))
	ballast := filepath.Join(disk, "ballast")
	stage.Must(t, os.WriteFile(ballast, make([]byte, int64(f.Bavail)*f.Bsize-room), 0o600))
	return func() {
		stage.Must(t, os.Remove(ballast))
	}
}

// claimUntilUnknown has clients claim for new users until each client has got an
// error. The error must say that asking again is safe.
func (c *crowd) claimUntilUnknown(p *process) {
	p.t.Helper()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100_000 {
				_, err := c.claim(p.t.Context(), p.calls, c.user())
				if err == nil {
					continue
				}
				problem := isProblem(err)
				if problem == nil || problem.Status != http.StatusServiceUnavailable || problem.RetryAfter == 0 || !strings.Contains(problem.Detail, "Ask again: it is safe") {
					p.t.Errorf("without a disk a claim gets %v", err)
				}
				return
			}
			p.t.Error("every claim was answered")
		})
	}
	all.Wait()
}

// isHonest checks a server whose disk takes no writes: claims get 503 as problem+json, reads are
// answered, and the server is alive and ready, because no other node would do better.
func (c *crowd) isHonest(p *process) {
	p.t.Helper()
	for _, path := range []string{"/livez", "/readyz", "/v1/campaigns/spring/claims/" + c.holders[0]} {
		if got, text := p.ask(http.MethodGet, p.url+path, ""); got.StatusCode != http.StatusOK {
			p.t.Errorf("GET %s: %s %s", path, got.Status, text)
		}
	}
	// What a larger transaction could not use up may be enough for some small ones.
	got, text := c.post(p, c.user())
	for tries := 0; got.StatusCode == http.StatusCreated && tries < 1000; tries++ {
		got, text = c.post(p, c.user())
	}
	if got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" || got.Header.Get("Content-Type") != "application/problem+json" {
		p.t.Errorf("a claim gets %s, %v: %s", got.Status, got.Header, text)
	}
	if _, text := p.ask(http.MethodGet, p.url+"/readyz?verbose", ""); !strings.Contains(string(text), "did not take the last write") {
		p.t.Errorf("whoever asks is not told of the disk: %s", text)
	}
}

// heals waits until claims are issued again, and has everybody ask again.
func (c *crowd) heals(p *process) {
	p.t.Helper()
	user := c.user()
	waitFor(p.t, "a claim to be issued again", func() bool {
		_, err := c.claim(p.t.Context(), p.calls, user)
		return err == nil
	})
	c.findAgain(p)
}

func TestF55AFullDiskIs503AndHealsWithoutARestart(t *testing.T) { aFullDisk(t, 2) }

// aFullDisk has a disk fill up and be freed so often.
func aFullDisk(t *testing.T, times int) {
	onDisk(t, func(t *testing.T, disk string) {
		p := serveUnprivileged(t, disk)
		p.create("spring", 1_000_000)
		crowd := newCrowd("spring")
		for range times {
			free := fill(t, disk, 256<<10)
			crowd.claimUntilUnknown(p)
			crowd.isHonest(p)
			free()
			crowd.heals(p)
		}
		crowd.verdict(p)
		p.stop()
	})
}

// TestF55AFileThatBecomesReadOnlyIs503AndHealsWithoutARestart takes the right to
// write from a running server. A mode does not touch files that are open, and a
// disk with files open for writing cannot be made read-only; so the disk is filled
// first: after the failure the ledger opens its files anew, and by then may only
// read them.
func TestF55AFileThatBecomesReadOnlyIs503AndHealsWithoutARestart(t *testing.T) {
	onDisk(t, func(t *testing.T, disk string) {
		p := serveUnprivileged(t, disk)
		p.create("spring", 1_000_000)
		crowd := newCrowd("spring")
		free := fill(t, disk, 256<<10)
		crowd.claimUntilUnknown(p)
		mode(t, p, 0o400)
		free()
		crowd.claimUntilUnknown(p)
		crowd.isHonest(p)
		// The server logs one failure a second.
		waitFor(t, "the log to say that the ledger is read-only", func() bool {
			crowd.post(p, crowd.user())
			return strings.Contains(p.text(), "readonly")
		})
		mode(t, p, 0o600)
		crowd.heals(p)
		crowd.verdict(p)
		p.stop()
	})
}

// mode changes the mode of the ledger's files.
func mode(t *testing.T, p *process, mode os.FileMode) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		stage.Must(t, os.Chmod(p.ledger()+suffix, mode))
	}
}
