//go:build !check

package docs_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestTheWalkThroughOfTheReadmeAnswersAsItSays(t *testing.T) {
	dir := t.TempDir()
	build(t, dir)
	address := serve(t, dir)
	all := blocks(read(t, "README.md"))
	ran, ours, theirs := 0, eye{}, eye{}
	for n, b := range all {
		if b.Language != "sh" {
			continue
		}
		if n+1 == len(all) || all[n+1].Language != "json" {
			t.Fatalf("no answer stands behind the command\n%s", b.Text)
		}
		ran++
		got, status := run(t, dir, strings.ReplaceAll(b.Text, "127.0.0.1:8080", address))
		if diff := cmp.Diff(ours.read(t, all[n+1].Text), theirs.read(t, got)); diff != "" {
			t.Errorf("%s\nanswers otherwise (-README +server):\n%s", b.Text, diff)
		}
		if want := promisedStatus(b.Text); want != status {
			t.Errorf("%s\nhas the status %q, the README says %q", b.Text, status, want)
		}
	}
	if ran == 0 {
		t.Error("the README has no walk-through")
	}
}

// build makes bin/firstcome in dir.
func build(t *testing.T, dir string) {
	t.Helper()
	c := exec.Command("go", "build", "-o", filepath.Join(dir, "bin", "firstcome"), "./cmd/firstcome")
	c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0") // as the tests of other packages have it compiled
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
}

var serving = regexp.MustCompile(`msg=serving .*address=(\S+)`)

// serve starts bin/firstcome serve in dir, on a free port, and returns its address.
// It ends with the test, gracefully.
func serve(t *testing.T, dir string) string {
	t.Helper()
	c := exec.Command("bin/firstcome", "serve", "--listen", "127.0.0.1:0", "--ops", "off")
	c.Dir, c.Env = dir, []string{}
	log, err := c.StderrPipe()
	stage.Must(t, err)
	stage.Must(t, c.Start())
	address, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			if found := serving.FindStringSubmatch(lines.Text()); found != nil {
				address <- found[1]
			}
		}
		ended <- c.Wait()
	}()
	select {
	case at := <-address:
		t.Cleanup(func() {
			_ = c.Process.Signal(syscall.SIGTERM)
			if err := <-ended; err != nil {
				t.Errorf("the server ended with %v", err)
			}
		})
		return at
	case err := <-ended:
		t.Fatalf("the server ended before it served: %v", err)
	case <-time.After(time.Minute):
		_ = c.Process.Kill()
		t.Fatal("the server does not say that it serves")
	}
	return ""
}

// run runs a command of the README in dir and returns what it prints, and the last
// HTTP status that a curl in it received; none if there is no curl.
func run(t *testing.T, dir, script string) (answer, status string) {
	t.Helper()
	home := t.TempDir()
	err := os.WriteFile(filepath.Join(home, ".curlrc"), []byte("write-out = \"%{stderr}%{http_code}\\n\"\n"), 0o600)
	stage.Must(t, err)
	c := exec.Command("sh", "-e", "-c", script)
	c.Dir, c.Env = dir, append(services.Environ(), "CURL_HOME="+home)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
	return string(out), lines[len(lines)-1]
}

var statusComment = regexp.MustCompile(`(?m)^# (\d{3})$`)

// promisedStatus returns the status in a command's comment, "" if there is none.
func promisedStatus(script string) string {
	if found := statusComment.FindStringSubmatch(script); found != nil {
		return found[1]
	}
	return ""
}

// What differs from run to run is compared on its shape.
var shapes = map[string]*regexp.Regexp{
	"code":        regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{16}$`),
	"issued_at":   microseconds,
	"opened_at":   microseconds,
	"sold_out_at": microseconds,
	"created_at":  microseconds,
	"server_time": microseconds,
}

var microseconds = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// An eye reads answers. What has its shape it sees as the name of the shape, and
// tells whether it is the same as before: the second code, the first issue.
type eye map[string][]string

// read decodes an answer.
func (e eye) read(t *testing.T, answer string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(answer), &value); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, answer)
	}
	return e.see(value)
}

func (e eye) see(value any) any {
	switch v := value.(type) {
	case []any:
		for n := range v {
			v[n] = e.see(v[n])
		}
	case map[string]any:
		for key, inner := range v {
			if after, ok := inner.(float64); ok && key == "poll_after" && after >= 1 && after <= 10 {
				v[key] = key
				continue
			}
			text, ok := inner.(string)
			if shape := shapes[key]; ok && shape != nil && shape.MatchString(text) {
				v[key] = e.name(key, text)
				continue
			}
			v[key] = e.see(inner)
		}
	}
	return value
}

// name returns which of the texts of a key this is.
func (e eye) name(key, text string) string {
	n := slices.Index(e[key], text)
	if n < 0 {
		n = len(e[key])
		e[key] = append(e[key], text)
	}
	return fmt.Sprintf("%s %d", key, n+1)
}

// measured are the rows of the figures that the READMEs quote, in their order.
var measured = []string{
	"winners, 64 connections, user ids in order", "winners, 64 connections, user ids scattered",
	"winners, 256 connections, user ids in order", "winners, 256 connections, user ids scattered",
	"sold_out, 64 connections", "already_issued, 64 connections",
}

// TestTheReadmesQuoteTheFiguresAsMeasured holds their tables against docs/benchmarks.md: scattered ids
// stand beside ids in order, and a rate is rounded to hundreds.
func TestTheReadmesQuoteTheFiguresAsMeasured(t *testing.T) {
	var want [][]string
	for _, row := range table(t, read(t, "docs/benchmarks.md"), "what") {
		if !slices.Contains(measured, row["what"]) {
			continue
		}
		rate, err := strconv.ParseFloat(strings.TrimSuffix(row["firstcome"], "/s"), 64)
		stage.Must(t, err)
		hundreds := int(math.Round(rate / 100))
		want = append(want, []string{fmt.Sprintf("%d,%d00", hundreds/10, hundreds%10), row["ratio"]})
	}
	if len(want) != len(measured) {
		t.Fatalf("docs/benchmarks.md has %d of the rows that the READMEs quote", len(want))
	}
	for _, file := range []string{"README.md", "README.ko.md"} {
		var got [][]string
		for _, cells := range regexp.MustCompile(`(?m)^\| .* \| ([\d,]+) \| (\d\.\d\d) \|$`).FindAllStringSubmatch(read(t, file), -1) {
			got = append(got, cells[1:])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s quotes other figures than docs/benchmarks.md (-benchmarks +README):\n%s", file, diff)
		}
	}
}

func TestTheReadmesSayWhichDocumentsAreEnglish(t *testing.T) {
	for file, want := range map[string]string{"README.md": "All other documents are in English.", "README.ko.md": "나머지 문서는 모두 영어입니다."} {
		if !strings.Contains(read(t, file), want) {
			t.Errorf("%s does not say that the other documents are English", file)
		}
	}
}
