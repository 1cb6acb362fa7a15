package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestAMissedTargetIsNamed(t *testing.T) {
	for _, row := range []struct{ measured, ratio, want, judged string }{
		{"15925/s", "0.46", "≥ 0.50", "≥ 0.50, missed"},
		{"15925/s", "0.50", "≥ 0.50", "≥ 0.50"},
		{"48.2 µs", "2.51", "≤ 2.5", "≤ 2.5, missed"},
		{"4.9", "", "≤ 5", "≤ 5"},
		{"12", "1.00", "< 1", "< 1, missed"},
		{"p50 2.8, p99 25.2, max 47.7 ms", "", "p99 ≤ 10 ms", "p99 ≤ 10 ms, missed"},
		{"p50 459, p99 939, max 1015 ms", "", "max ≤ 1,500 ms", "max ≤ 1,500 ms"},
		{"123,000/s", "", "≥ 20,000/s", "≥ 20,000/s"},
		{"0.999; 201.0 ahead", "", "≥ 0.98, at most a bucket ahead", "≥ 0.98, at most a bucket ahead"},
		{"1", "0.99", "≥ 1 within the noise", "≥ 1 within the noise"},
		{"1", "2", "", ""},
	} {
		if got := judged(row.measured, row.ratio, row.want); got != row.judged {
			t.Errorf("%s, %s: %q, want %q", row.measured, row.ratio, got, row.judged)
		}
	}
}

// TestThePageOfFiguresNamesItsMissedTargets in each table that has targets.
func TestThePageOfFiguresNamesItsMissedTargets(t *testing.T) {
	text, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	var headings []string
	rows, missed := 0, 0
	for line := range strings.SplitSeq(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for n := range cells {
			cells[n] = strings.TrimSpace(cells[n])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			headings = nil
			continue
		case headings == nil:
			headings = cells
			continue
		case headings[len(headings)-1] != "wanted" || strings.HasPrefix(line, "|---"):
			continue
		}
		ratio := ""
		if n := slices.Index(headings, "ratio"); n >= 0 {
			ratio = cells[n]
		}
		told := cells[len(cells)-1]
		want, _ := strings.CutSuffix(told, ", missed")
		if rows++; judged(cells[1], ratio, want) != told && oneNumber.MatchString(want) {
			t.Errorf("this row does not tell whether its target was missed: %s", line)
		}
		if want != told {
			missed++
		}
	}
	if rows < 50 || missed < 5 {
		t.Errorf("%d rows have targets, %d of them missed", rows, missed)
	}
}

func TestABusyMachineIsNamed(t *testing.T) {
	if quiet, loud := busy(.3, 2), busy(.6, 2); quiet != "" || !strings.Contains(loud, "busy") || !strings.Contains(loud, "0.6, on 2 processors") {
		t.Errorf("a quiet machine is called %q, a busy one %q", quiet, loud)
	}
}
