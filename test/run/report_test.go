package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// after returns the end of a report on the events of one pass.
func after(t *testing.T, events ...event) (text string, err error) {
	t.Helper()
	t.Chdir("../..")
	var lines, out bytes.Buffer
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	r, err := newReport(&out, 7)
	if err != nil {
		t.Fatal(err)
	}
	r.read(pass{name: "race", arguments: []string{"-race", "-count=1", "-tags=soak"}, prefix: "SOAK=0 "}, &lines)
	dir := t.TempDir()
	t.Chdir(dir) // a red run writes a file
	err = r.end()
	return out.String(), err
}

const pkg = "github.com/firstcome/firstcome/internal/issue"

func of(action, test, output string) event {
	return event{Action: action, Package: pkg, Test: test, Output: output}
}

func TestARedRunEndsWithWhatFailedAndHowToRepeatIt(t *testing.T) {
	test, part := "TestF41P4Numbers", "TestF41P4Numbers/two_(of)_three"
	text, err := after(t,
		of("output", part, "=== RUN   "+part+"\n"),
		of("output", part, "    a_test.go:7: got 2, want 3\n"),
		of("output", part, "    a_test.go:9: the end of Redis's log:\nnoise of a server\n"),
		of("output", part, "    seed.go:1: to make the same random choices again: FIRSTCOME_TEST_SEED=99\n"),
		of("fail", part, ""), of("fail", test, ""),
		of("output", "", "FAIL\t"+pkg+"\t0.1s\n"), of("fail", "", ""),
	)
	if err == nil {
		t.Error("the run is green")
	}
	_, got, _ := strings.Cut(text, "\nFAIL ")
	want := `TestF41P4Numbers/two_(of)_three ./internal/issue
  F41: a recorder is killed before its commit, and after it but before it settles the batch
  P4: first come, first served
      a_test.go:7: got 2, want 3
      seed.go:1: to make the same random choices again: FIRSTCOME_TEST_SEED=99
  again: FIRSTCOME_TEST_SEED=99 SOAK=0 go test -count=1 -race -tags=soak -run '^TestF41P4Numbers$/^two_\(of\)_three$' ./internal/issue
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the end of the report (-want +got):\n%s", diff)
	}
	if log, err := os.ReadFile(".tools/failed.log"); err != nil || !strings.Contains(string(log), "noise of a server") {
		t.Errorf("the log of the failure has %q, %v", log, err)
	}
}

func TestAGreenRunEndsWithTheSlowestTests(t *testing.T) {
	quick, slow := of("pass", "TestQuick", ""), of("pass", "TestSlow", "")
	slow.Elapsed = 2
	text, err := after(t, quick, slow, of("output", "", "ok  \t"+pkg+"\t2.1s\n"), of("pass", "", ""))
	for _, want := range []string{"ok  \t" + pkg + "\t2.1s (race)\n", "2.0 s  race ./internal/issue TestSlow\n     0.0 s  race ./internal/issue TestQuick\n", "2 tests in 1 packages\n"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("it does not say %q, %v:\n%s", want, err, text)
		}
	}
}

func TestWhatDoesNotRunIsRed(t *testing.T) {
	for name, events := range map[string][]event{
		"TestAway ./internal/issue": {of("fail", "TestAway", "")},
		"./internal/issue TestAway": {of("skip", "TestAway", ""), of("pass", "", "")},
		"the package ./internal/issue": {
			of("pass", "TestFine", ""), of("output", "", "found unexpected goroutines\n"), of("fail", "", ""),
		},
		"the package ./internal/issue\n": {
			{Action: "build-output", ImportPath: pkg + " [issue.test]", Output: "a.go:1: undefined: x\n"},
			{Action: "build-fail", ImportPath: pkg + " [issue.test]"},
			{Action: "output", Package: pkg, Output: "FAIL\t" + pkg + " [build failed]\n"},
			{Action: "fail", Package: pkg},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := after(t, events...)
			if err == nil || !strings.Contains(text, "\nFAIL "+name) || !strings.Contains(text, " 1 failed.") {
				t.Errorf("it ends with %v and says\n%s", err, text)
			}
		})
	}
}
