//go:build soak

package main_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// Figures are asked for seldom, so that what they need of the packages breaks unseen. Left
// out are the rows that take their time: latency, growth, recorded and pace.
func TestRowsGiveFiguresOfAFewClaims(t *testing.T) {
	const rows = "winners,floor,refused,campaigns,consoles,claimants,sql-gates,decided,set-ups,nodes,drain,line,line-redis,line-servers,line-read,memory,prizes"
	binary := filepath.Join(t.TempDir(), "bench")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	bench := exec.CommandContext(t.Context(), binary, "-only", rows, "-rounds", "1", "-claims", "500", "-holders", "2000")
	bench.Dir = "../.."
	out, err := bench.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"user ids in order", "user ids scattered", "synced a batch", "sold_out, 64", "already_issued, 64", "already_issued, of 2000 holders", "1,000 open campaigns", "8 consoles open", "the same twice", "256 claimants", "MariaDB decides", "PostgreSQL decides",
		"nobody records", "64 connections, user ids scattered, Redis decides, answered when decided", "256 connections, user ids scattered, SQLite decides", "while MariaDB records", "two nodes", "recorder alone, MariaDB", "recorder alone, PostgreSQL", "memory a holder", "GET …/line",
		"a line, 64 connections, SQLite", "a line, 64 connections, Redis", "a line, 64 connections, MariaDB", "a line, 64 connections, PostgreSQL", "being served without a pace",
		"of 16 prizes, 64 connections, SQLite decides", "of 16 prizes, 64 connections, MariaDB decides", "of 16 prizes, 64 connections, Redis decides, answered when recorded",
	} {
		row := regexp.MustCompile(`(?m)^\| [^|]*` + regexp.QuoteMeta(want) + `[^|]*\| [1-9]`)
		if !row.Match(out) {
			t.Errorf("no figure of %q in\n%s", want, out)
		}
	}
}
