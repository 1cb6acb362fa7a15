//go:build linux

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome/client"
)

// A trace is what strace saw of the ledger's log and of the answers, in lines of
// the trace: what stands above came first.
type trace struct {
	commits []commit
	answers map[int64]int // the line in which the answer 201 with a number is begun
}

// A commit is one transaction in the log: its writes, and their way to the disk.
type commit struct{ written, synced int } // lines of the last write, and of the end of the sync

var (
	logWrite = regexp.MustCompile(`^\d+ +pwrite64\(\d+<[^>]*\.db-wal>`)
	logSync  = regexp.MustCompile(`^(\d+) +f(?:data)?sync\(\d+<[^>]*\.db-wal>(.*)`)
	resumed  = regexp.MustCompile(`^(\d+) +<\.\.\. f(?:data)?sync resumed>`)
	answered = regexp.MustCompile(`^\d+ +write\(.*HTTP/1\.1 201.*\\"number\\":(\d+)`)
)

// readTrace reads a trace. Threads run beside each other, so a sync may end lines
// below its beginning.
func readTrace(text string) (trace, error) {
	found := trace{answers: map[int64]int{}}
	written, syncing := 0, ""
	n := 0
	for line := range strings.Lines(text) {
		n++
		sync, again := logSync.FindStringSubmatch(line), resumed.FindStringSubmatch(line)
		switch answer := answered.FindStringSubmatch(line); {
		case logWrite.MatchString(line):
			if syncing != "" {
				return found, fmt.Errorf("line %d writes to the log while it is synced", n)
			}
			written = n
		case sync != nil && strings.Contains(sync[2], "unfinished"):
			syncing = sync[1]
		case sync != nil && !strings.Contains(sync[2], "= 0"), again != nil && again[1] == syncing && !strings.Contains(line, "= 0"):
			return found, fmt.Errorf("a sync failed: %s", line)
		case sync != nil, again != nil && again[1] == syncing:
			found.commits = append(found.commits, commit{written, n})
			written, syncing = 0, ""
		case answer != nil:
			number, err := strconv.ParseInt(answer[1], 10, 64)
			if err != nil {
				return found, err
			}
			found.answers[number] = n
		}
	}
	return found, nil
}

// batches returns the coupons' numbers by the instant of their batch, in order: a
// batch has one.
func batches(t *testing.T, p *process, id string) (numbers [][]int64) {
	t.Helper()
	var last client.Time
	err := p.calls.Coupons(t.Context(), id, true, func(c client.Coupon) error {
		if len(numbers) == 0 || !c.IssuedAt.Equal(last.Time) {
			numbers = append(numbers, nil)
		}
		last = c.IssuedAt
		numbers[len(numbers)-1] = append(numbers[len(numbers)-1], c.Number)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

// TestF55EveryBatchIsOnTheDiskBeforeItsFirstAnswer traces the server's system
// calls while many claim at once: SIGKILL alone does not show durability, because
// the kernel keeps what was written. The n-th batch is the n-th transaction: its
// writes are followed by one sync of the log, and only then by its answers.
func TestF55EveryBatchIsOnTheDiskBeforeItsFirstAnswer(t *testing.T) {
	const clients, each = 16, 12
	if _, err := exec.LookPath("strace"); err != nil {
		t.Fatal("strace is missing: make install installs it, or apt-get install strace")
	}
	file := filepath.Join(t.TempDir(), "trace")
	// -D has strace beside the server instead of above it, so that signals reach the server.
	p := serve(t, launch{under: []string{
		"strace", "-D", "-f", "-y", "-s", "512", "-e", "trace=pwrite64,fsync,fdatasync,write", "-o", file,
	}})
	p.create("spring", 1_000_000)
	crowd := newCrowd("spring")
	// The first batch is one claim, so that its transaction is told from what came before.
	if _, err := crowd.claim(t.Context(), p.calls, crowd.user()); err != nil {
		t.Fatal(err)
	}
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
	numbers := batches(t, p, "spring")
	crowd.verdict(p)
	p.stop()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found, err := readTrace(string(text))
	if err != nil {
		t.Fatal(err)
	}
	found.hold(t, numbers)
	t.Logf("%d coupons in %d batches", 1+clients*each, len(numbers))
}

// hold wants one sync for each batch, after its writes and before its answers.
func (f trace) hold(t *testing.T, batches [][]int64) {
	t.Helper()
	if len(f.commits) < len(batches) {
		t.Fatalf("%d batches were on the disk after %d syncs", len(batches), len(f.commits))
	}
	// What came before the claims, and what came after them: the schema and the
	// campaign; the checkpoint at the end.
	first := f.firstBatch(batches[0])
	for n, numbers := range batches {
		commit := f.commits[first+n]
		if commit.written == 0 {
			t.Errorf("sync %d has no writes before it", first+n)
		}
		for _, number := range numbers {
			if line, ok := f.answers[number]; !ok || line < commit.synced {
				t.Errorf("number %d of batch %d is answered in line %d of the trace, its sync ends in line %d", number, n, line, commit.synced)
			}
		}
	}
	if last := first + len(batches) - 1; last+1 < len(f.commits) && f.commits[last+1].synced < f.lastAnswer() {
		t.Errorf("there are more syncs than batches")
	}
}

// firstBatch returns the commit of the first batch: the last that was synced
// before its first answer.
func (f trace) firstBatch(numbers []int64) int {
	answer := 0
	for _, number := range numbers {
		if line := f.answers[number]; answer == 0 || line < answer {
			answer = line
		}
	}
	found := 0
	for n, c := range f.commits {
		if c.synced < answer {
			found = n
		}
	}
	return found
}

func (f trace) lastAnswer() int {
	last := 0
	for _, line := range f.answers {
		last = max(last, line)
	}
	return last
}
