package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A report gathers what tests did, prints how far the run is, and in the end what failed.
type report struct {
	out   io.Writer
	seed  uint64
	start time.Time
	rows  map[string]string // what a promise (P4) or a fault row (F41) says

	mu       sync.Mutex           // guards the rest
	running  map[string]*progress // by pass and package
	ended    int                  // packages
	failures []failure
	skipped  []string
	took     []duration
	log      strings.Builder // all that failed tests and packages printed
}

// progress is what is known of a package that runs.
type progress struct {
	passed int
	output map[string][]string // of each test that has not ended, and of the package itself as ""
	failed map[string]bool     // tests
}

type failure struct{ name, pkg, test, repeat, seed, text string }

type duration struct {
	name string
	took time.Duration
}

// An event is a line of go test -json. See go doc test2json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

func newReport(out io.Writer, seed uint64) (*report, error) {
	rows := map[string]string{}
	for file, row := range map[string]*regexp.Regexp{
		"README.md":      regexp.MustCompile(`(?m)^\| (P\d) ([^|]*?) \|`),
		"docs/faults.md": regexp.MustCompile(`(?m)^\| (F\d\d) \| ([^|]*?) \|`),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%w: run this in the repository's root", err)
		}
		for _, found := range row.FindAllStringSubmatch(string(text), -1) {
			if rows[found[1]] == "" { // the plan comes first
				rows[found[1]] = found[2]
			}
		}
	}
	fmt.Fprintf(out, "random choices: SEED=%d\n", seed)
	return &report{out: out, seed: seed, start: time.Now(), rows: rows, running: map[string]*progress{}}, nil
}

// run runs a pass.
func (r *report) run(ctx context.Context, p pass, env []string) {
	c := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-json"}, p.arguments, p.packages)...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGINT) } // go test alone would wait for its tests
	c.Env = slices.Concat(env, p.env)
	c.Stderr = r.out
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err == nil {
		failed := r.read(p, out)
		err = c.Wait()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && failed {
			err = nil // the events have told why
		}
	}
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failures = append(r.failures, failure{name: "the " + p.name + " pass", text: err.Error()})
	}
}

// read reads the events of a pass, and reports whether something failed.
func (r *report) read(p pass, events io.Reader) (failed bool) {
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			e = event{Action: "output", Package: p.name, Output: lines.Text() + "\n"}
		}
		r.mu.Lock()
		failed = r.event(p, e) || failed
		r.mu.Unlock()
	}
	return failed
}

// event takes one event, and reports whether something failed.
func (r *report) event(p pass, e event) (failed bool) {
	name := cmp.Or(e.Package, e.ImportPath)
	at := r.running[p.name+" "+name]
	if at == nil {
		at = &progress{output: map[string][]string{}, failed: map[string]bool{}}
		r.running[p.name+" "+name] = at
	}
	switch e.Action {
	case "output", "build-output":
		at.output[e.Test] = append(at.output[e.Test], e.Output)
		if e.Test == "" && closing.MatchString(e.Output) {
			fmt.Fprintf(r.out, "%s %s", r.clock(), strings.TrimSuffix(e.Output, "\n")+map[bool]string{true: " (" + p.name + ")\n", false: "\n"}[p.name != "plain"])
		}
	case "pass", "skip":
		if e.Test == "" {
			r.close(p, name)
			return false
		}
		if e.Action == "skip" {
			r.skipped = append(r.skipped, short(e.Package)+" "+e.Test)
		}
		if at.passed++; !strings.Contains(e.Test, "/") {
			r.took = append(r.took, duration{p.name + " " + short(e.Package) + " " + e.Test, time.Duration(e.Elapsed * float64(time.Second))})
		}
		delete(at.output, e.Test)
	case "fail", "build-fail":
		r.fail(p, e, at)
		return true
	}
	return false
}

// closing is the line with which go test ends a package that has tests.
var closing = regexp.MustCompile(`^(ok|FAIL) *\t`)

// fail takes the failure of a test or of a package.
func (r *report) fail(p pass, e event, at *progress) {
	name := cmp.Or(e.Package, e.ImportPath)
	text := strings.Join(at.output[e.Test], "")
	if e.Test == "" { // a package that ends in the middle of a test says so there
		for _, test := range slices.Sorted(maps.Keys(at.output)) {
			if lines := at.output[test]; test != "" {
				text += strings.Join(lines[max(0, len(lines)-unfinished):], "")
			}
		}
	}
	fmt.Fprintf(&r.log, "=== %s %s %s\n%s\n", p.name, name, e.Test, text)
	switch {
	case e.Test != "":
		parent := slices.ContainsFunc(slices.Collect(maps.Keys(at.failed)), func(other string) bool { return strings.HasPrefix(other, e.Test+"/") })
		at.failed[e.Test] = true
		delete(at.output, e.Test)
		if parent {
			return // its parts say why
		}
	case len(at.failed) > 0 || e.Action == "fail" && strings.Contains(text, "[build failed]"):
		r.close(p, name) // a test, or the build, has said why
		return
	}
	fmt.Fprintf(r.out, "%s FAIL %s %s (%s); the end of this run says why\n", r.clock(), cmp.Or(e.Test, "the package"), short(name), p.name)
	r.failures = append(r.failures, failure{
		name: cmp.Or(e.Test, "the package"), pkg: short(name), test: e.Test, text: text,
		seed: lastSeed(text, r.seed), repeat: p.repeat(short(name), e.Test),
	})
	if e.Test == "" && e.Action == "fail" {
		r.close(p, name)
	}
}

// close notes that a package has ended.
func (r *report) close(p pass, name string) {
	if _, ok := r.running[p.name+" "+name]; ok {
		delete(r.running, p.name+" "+name)
		r.ended++
	}
}

// repeat returns the command that repeats a test, or the tests of a package, but for the seed.
func (p pass) repeat(pkg, test string) string {
	var flags []string
	for _, a := range p.arguments {
		if a == "-race" || strings.HasPrefix(a, "-tags=") || strings.HasPrefix(a, "-gcflags=") {
			flags = append(flags, a)
		}
	}
	if test != "" {
		var parts []string
		for part := range strings.SplitSeq(test, "/") {
			parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
		}
		flags = append(flags, "-run", "'"+strings.ReplaceAll(strings.Join(parts, "/"), "'", ".")+"'")
	}
	return p.prefix + "go test -count=1 " + strings.Join(append(flags, pkg), " ")
}

var seeds = regexp.MustCompile(`FIRSTCOME_TEST_SEED=(\d+)`)

// lastSeed returns the seed that a failed test names, or the run's.
func lastSeed(text string, run uint64) string {
	if all := seeds.FindAllStringSubmatch(text, -1); len(all) > 0 {
		return all[len(all)-1][1]
	}
	return fmt.Sprint(run)
}

// short returns a package as go test takes it.
func short(name string) string {
	const module = "github.com/firstcome/firstcome"
	name, _, _ = strings.Cut(name, " [") // of a build that failed
	if rest, ok := strings.CutPrefix(name, module); ok {
		return "." + path.Clean("/"+rest)
	}
	return name
}

func (r *report) clock() string {
	t := time.Since(r.start)
	return fmt.Sprintf("[%2d:%02d]", int(t.Minutes()), int(t.Seconds())%60)
}

// tick prints every 20 seconds what runs.
func (r *report) tick(ctx context.Context) {
	tick := time.NewTicker(20 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.mu.Lock()
			fmt.Fprintln(r.out, r.state())
			r.mu.Unlock()
		}
	}
}

// state says how far the run is.
func (r *report) state() string {
	var all []string
	for name, at := range r.running {
		if at.passed > 0 {
			kind, pkg, _ := strings.Cut(name, " ")
			all = append(all, fmt.Sprintf("%s %s (%d tests passed)", kind, short(pkg), at.passed))
		}
	}
	slices.Sort(all)
	return fmt.Sprintf("%s %d packages have ended, %d tests failed; running: %s", r.clock(), r.ended, len(r.failures), strings.Join(all, ", "))
}

const (
	shown     = 3   // failures in full; of the others the name and the command
	named     = 12  // failures in all
	textLines = 8   // of a failure
	lineBytes = 220 // of a line
	slowest   = 5
	// unfinished is how many of its last lines are kept of a test that did not end.
	unfinished = 500
)

// end prints the result. It returns an error if the run is red.
func (r *report) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, test := range r.skipped {
		r.failures = append(r.failures, failure{name: test, text: "it was skipped: what does not run proves nothing"})
	}
	if len(r.failures) == 0 {
		slices.SortFunc(r.took, func(a, b duration) int { return int(b.took - a.took) })
		fmt.Fprintln(r.out, "the slowest tests:")
		for _, d := range r.took[:min(slowest, len(r.took))] {
			fmt.Fprintf(r.out, "  %6.1f s  %s\n", d.took.Seconds(), d.name)
		}
		fmt.Fprintf(r.out, "green after %v: %d tests in %d packages\n", time.Since(r.start).Round(time.Second), len(r.took), r.ended)
		return nil
	}
	file := filepath.Join(".tools", "failed.log")
	if err := errors.Join(os.MkdirAll(".tools", 0o755), os.WriteFile(file, []byte(r.log.String()), 0o644)); err != nil {
		fmt.Fprintln(r.out, err)
	}
	fmt.Fprintf(r.out, "\nred after %v: %d failed. All that they printed is in %s\n", time.Since(r.start).Round(time.Second), len(r.failures), file)
	for n, f := range r.failures[:min(named, len(r.failures))] {
		r.tell(f, n < shown)
	}
	if more := len(r.failures) - named; more > 0 {
		fmt.Fprintf(r.out, "\nand %d more\n", more)
	}
	return errors.New("tests failed")
}

var ids = regexp.MustCompile(`F\d\d|P\d`)

// tell prints a failure.
func (r *report) tell(f failure, inFull bool) {
	fmt.Fprintf(r.out, "\nFAIL %s %s\n", f.name, f.pkg)
	if inFull {
		for _, id := range ids.FindAllString(f.test, -1) {
			if r.rows[id] != "" {
				fmt.Fprintf(r.out, "  %s: %s\n", id, r.rows[id])
			}
		}
		for _, line := range essence(f.text) {
			fmt.Fprintln(r.out, "  "+line)
		}
	}
	if f.repeat != "" {
		fmt.Fprintf(r.out, "  again: FIRSTCOME_TEST_SEED=%s %s\n", f.seed, f.repeat)
	}
}

var (
	noise = regexp.MustCompile(`^(=== |--- |\s*--- )`)
	said  = regexp.MustCompile(`^\s+\S+\.go:\d+: |^panic: |DATA RACE`) // a line of t.Error or t.Log, or worse
)

// essence returns the lines in which a test said what it wanted and saw. It leaves out the logs of servers.
func essence(text string) (lines []string) {
	inLog := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if noise.MatchString(line) {
			continue
		}
		if said.MatchString(line) {
			inLog = strings.Contains(line, "the end of ")
		}
		if inLog {
			continue
		}
		if len(line) > lineBytes {
			line = line[:lineBytes] + " …"
		}
		lines = append(lines, line)
	}
	if len(lines) > textLines { // a test that logs much fails at its end, a race is told at its beginning
		head := textLines / 2
		return append(append(lines[:head:head], "…"), lines[len(lines)-(textLines-head):]...)
	}
	return lines
}
