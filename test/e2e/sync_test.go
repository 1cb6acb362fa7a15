//go:build linux && !check

package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/stage"
)

// A trace is what strace saw of the ledger's log and of the answers, by the lines of
// its output: a lower line came first.
type trace struct {
	commits []commit
	answers map[string]int // by the code of the coupon, the line in which the answer 201 is begun
}

// A commit is one transaction in the log: the coupons that its writes brought, by their codes, and the line in
// which its sync ends.
type commit struct {
	codes  []string
	own    bool // it brings the node's row in the table nodes
	synced int
}

var (
	logWrite = regexp.MustCompile(`^\d+ +pwrite64\(\d+<[^>]*\.db-wal>`)
	logSync  = regexp.MustCompile(`^(\d+) +f(?:data)?sync\(\d+<[^>]*\.db-wal>(.*)`)
	resumed  = regexp.MustCompile(`^(\d+) +<\.\.\. f(?:data)?sync resumed>`)
	answered = regexp.MustCompile(`^\d+ +write\(.*HTTP/1\.1 201.*\\"code\\":\\"([^\\]+)\\"`)
)

// readTrace reads a trace of a server that issued coupons of these codes. Threads run beside each other, so a sync
// may end lines below its beginning. A page is written again with each of its coupons: what counts is the first
// time that a code is written. The node's own row is known by its address.
func readTrace(text string, codes []string, address string) (trace, error) {
	found := trace{answers: map[string]int{}}
	unseen, fresh, own, syncing, n := slices.Clone(codes), []string(nil), false, "", 0
	for line := range strings.Lines(text) {
		n++
		sync, again := logSync.FindStringSubmatch(line), resumed.FindStringSubmatch(line)
		switch answer := answered.FindStringSubmatch(line); {
		case logWrite.MatchString(line):
			if syncing != "" {
				return found, fmt.Errorf("line %d writes to the log while it is synced", n)
			}
			own = own || strings.Contains(line, address)
			unseen = slices.DeleteFunc(unseen, func(code string) bool {
				there := strings.Contains(line, code)
				if there {
					fresh = append(fresh, code)
				}
				return there
			})
		case sync != nil && strings.Contains(sync[2], "unfinished"):
			syncing = sync[1]
		case sync != nil && !strings.Contains(sync[2], "= 0"), again != nil && again[1] == syncing && !strings.Contains(line, "= 0"):
			return found, fmt.Errorf("a sync failed: %s", line)
		case sync != nil, again != nil && again[1] == syncing:
			found.commits = append(found.commits, commit{fresh, own, n})
			fresh, own, syncing = nil, false, ""
		case answer != nil:
			found.answers[answer[1]] = n
		}
	}
	if len(unseen)+len(fresh) > 0 {
		return found, fmt.Errorf("%d coupons are not in the log, and %d are not synced", len(unseen), len(fresh))
	}
	return found, nil
}

// codesOf returns the codes of a campaign's coupons.
func codesOf(t *testing.T, p *process, id string) (codes []string) {
	t.Helper()
	err := p.calls.Coupons(t.Context(), id, true, func(c client.Coupon) error {
		codes = append(codes, c.Code)
		return nil
	})
	stage.Must(t, err)
	return codes
}

// strace is the command that traces the system calls of the server which it is put before, into a file.
// -D has strace beside the server instead of above it, so that signals reach the server.
func strace(t *testing.T, file string, options ...string) []string {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Fatal("strace is missing: make install installs it, or apt-get install strace")
	}
	return append([]string{"strace", "-D", "-f", "-y", "-o", file}, options...)
}

// TestF55EveryBatchIsOnTheDiskBeforeItsFirstAnswer traces the server's system
// calls while many claim at once: SIGKILL alone does not show durability, because
// the kernel keeps what was written. Each coupon is found in the write to the log that brings it;
// that is followed by a sync of the log, and only then by its answer.
func TestF55EveryBatchIsOnTheDiskBeforeItsFirstAnswer(t *testing.T) {
	const clients, each, page = 16, 12, 4096
	file := filepath.Join(t.TempDir(), "trace")
	p := serve(t, launch{args: patient, under: strace(t, file, "-s", fmt.Sprint(page), "-e", "trace=pwrite64,fsync,fdatasync,write")})
	p.create("spring", 1_000_000)
	crowd := newCrowd("spring")
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range each {
				if _, err := crowd.claim(t.Context(), p.calls, crowd.user()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	codes := codesOf(t, p, "spring")
	crowd.verdict(p)
	p.stop()
	text, err := os.ReadFile(file)
	stage.Must(t, err)
	found, err := readTrace(string(text), codes, strings.TrimPrefix(p.url, "http://"))
	stage.Must(t, err)
	found.hold(t, len(codes))
}

// hold wants each coupon answered behind the sync of its transaction, and no sync between the first
// transaction and the last that brings none. The node writes its own row every two seconds, whatever else it does.
func (f trace) hold(t *testing.T, coupons int) {
	t.Helper()
	commits := slices.Clone(f.commits)
	bringsNone := func(c commit) bool { return len(c.codes) == 0 }
	for len(commits) > 0 && bringsNone(commits[0]) { // the schema, the campaign
		commits = commits[1:]
	}
	for len(commits) > 0 && bringsNone(commits[len(commits)-1]) { // the checkpoint at the end
		commits = commits[:len(commits)-1]
	}
	held := 0
	for n, c := range commits {
		if bringsNone(c) && !c.own {
			t.Errorf("of %d transactions number %d is synced, in line %d of the trace, and brings no coupon", len(commits), n, c.synced)
		}
		for _, code := range c.codes {
			held++
			if line, ok := f.answers[code]; !ok || line < c.synced {
				t.Errorf("%s is answered in line %d of the trace, its sync ends in line %d", code, line, c.synced)
			}
		}
	}
	if held != coupons || len(f.answers) != coupons {
		t.Errorf("of %d coupons %d are in transactions, %d are answered", coupons, held, len(f.answers))
	}
	t.Logf("%d coupons in %d transactions", coupons, len(commits))
}

// TestF52ACouponWhoseSyncFailedIsFoundAgain has the kernel refuse a sync of a commit: whether what was written
// before it stays is then not known to anybody. The server says so, is killed, and finds the coupon at its next start.
func TestF52ACouponWhoseSyncFailedIsFoundAgain(t *testing.T) {
	// Each thread counts its own: the first syncs are those of the start.
	fault := strace(t, filepath.Join(t.TempDir(), "trace"), "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO:when=50+")
	p := serve(t, launch{under: fault})
	p.create("spring", 1_000_000)
	crowd := newCrowd("spring")
	user, err := "", error(nil)
	for n := 0; err == nil && n < 10_000; n++ {
		user = crowd.user()
		_, err = crowd.claim(t.Context(), p.calls, user)
	}
	if problem := isProblem(err); problem == nil || problem.Status != http.StatusServiceUnavailable || problem.RetryAfter == 0 {
		t.Fatalf("when a sync fails a claim gets %v", err)
	}
	p.kill()
	p = serve(t, launch{dir: p.dir})
	answer, err := crowd.claim(t.Context(), p.calls, user)
	if err != nil || answer.Outcome != "already_issued" {
		t.Errorf("asked again it is %+v, %v", answer, err)
	}
	crowd.findAgain(p)
	crowd.verdict(p)
	p.stop()
}
