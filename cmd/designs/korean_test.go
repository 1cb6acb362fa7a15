package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/designs/verdict"
	"github.com/firstcome/firstcome/test/stage"
)

// TestTheKoreanTableHasNoEnglish whatever went wrong.
func TestTheKoreanTableHasNoEnglish(t *testing.T) {
	all := verdict.Verdict{Oversold: 1, Promised: 2, Twice: 3, Lost: 4, Untold: 5, Open: 6, Denied: 7, Named: 8, Order: verdict.Order{Overtaken: 9000}}
	reported := all
	reported.Named, reported.Reported = all.Lost, all.Lost
	for _, c := range contestants() {
		for _, f := range faultsOf(c) {
			for _, v := range []verdict.Verdict{all, reported, {}} {
				rep := &report{Results: []*result{
					{Contestant: c.name, Trial: "exact", Verdict: v},
					{Contestant: c.name, Trial: "crowd", Unfinished: "1 of 2 stored"},
					{Contestant: c.name, Trial: "speed-64", Winners: 1},
					{Contestant: c.name, Trial: "speed-64, 128 to the database", Winners: 2},
					{Contestant: c.name, Trial: underFault.Name, Fault: f.name, Verdict: v},
				}}
				var table strings.Builder
				stage.Must(t, writeKoreanMarkdown(&table, rep, []contestant{c}))
				names := regexp.MustCompile("`[^`]*`|p95|\\bms\\b|Redis|\\((exact|crowd)\\)|" + regexp.QuoteMeta(strings.TrimPrefix(strings.TrimPrefix(f.name, "killed at "), "stopped at ")) + "에서")
				if left := regexp.MustCompile(`[A-Za-z]+`).FindString(names.ReplaceAllString(table.String(), "")); left != "" {
					t.Errorf("%q is English in\n%s", left, table.String())
				}
			}
		}
	}
}

// TestBothPagesHaveTheSameTable, since one run writes both.
func TestBothPagesHaveTheSameTable(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| (design|설계) \\| (exact\\?|수량 정확).*\n(\\|.*\n)+")
	tables := map[string]string{}
	for _, page := range []string{"designs.md", "designs.ko.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		stage.Must(t, err)
		if tables[page] = rows.FindString(string(text)); tables[page] == "" {
			t.Fatalf("%s has no table", page)
		}
	}
	if diff := cmp.Diff(inKorean(tables["designs.md"]), tables["designs.ko.md"]); diff != "" {
		t.Errorf("designs.ko.md has another table than designs.md (-en +ko):\n%s", diff)
	}
}

// TestTheTextHasTheSpeedsOfTheTable: a design's row says what the table says.
func TestTheTextHasTheSpeedsOfTheTable(t *testing.T) {
	for page, speed := range map[string]string{"designs.md": `([\d,]+)(?: \(64[^)]*\)[^|]*?)? a second`, "designs.ko.md": `초당 ([\d,]+)장`} {
		text, err := os.ReadFile("../../docs/" + page)
		stage.Must(t, err)
		told := 0
		for _, c := range contestants() {
			row := regexp.MustCompile("(?m)^\\| `" + c.name + "` \\|(?:[^|]*\\|){3} ([\\d,]+) ").FindStringSubmatch(string(text))
			says := regexp.MustCompile("(?m)^\\| \\[`" + c.name + "`\\].*").FindString(string(text))
			if row == nil || says == "" {
				continue // firstcome's own set-ups have no row of text
			}
			if found := regexp.MustCompile(speed).FindStringSubmatch(strings.ReplaceAll(says, "requests a second", "")); found != nil {
				if told++; found[1] != row[1] {
					t.Errorf("%s: %s stores %s a second in the table, and %s in the text", page, c.name, row[1], found[1])
				}
			}
		}
		if told < 9 {
			t.Errorf("%s says the speed of %d designs only", page, told)
		}
	}
}
