package main

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A notice signals that a text was written.
type notice struct {
	text  string
	found chan struct{} // closed once the text was written
	all   bytes.Buffer
}

func (n *notice) Write(part []byte) (int, error) {
	before := strings.Contains(n.all.String(), n.text)
	n.all.Write(part)
	if !before && strings.Contains(n.all.String(), n.text) {
		close(n.found)
	}
	return len(part), nil
}

// TestAMigrationThatTakesLongShowsProgress locks the file, so that the migration waits for it, until the migration shows progress.
func TestAMigrationThatTakesLongShowsProgress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "firstcome.db")
	db := services.Beside(t, file)
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"CREATE TABLE held (x)", "DROP TABLE held", "BEGIN EXCLUSIVE"} {
		stage.Must(t, stage.Err(db.ExecContext(t.Context(), statement)))
	}
	errs := &notice{text: "migrate, 2s", found: make(chan struct{})}
	status := make(chan int, 1)
	go func() {
		status <- run(t.Context(), []string{"migrate", "--ledger", "sqlite:" + file}, terminal{out: io.Discard, err: errs})
	}()
	select {
	case <-errs.found:
	case early := <-status:
		t.Fatalf("it ended with %d before it showed progress: %s", early, &errs.all)
	}
	stage.Must(t, stage.Err(db.ExecContext(t.Context(), "ROLLBACK")))
	if got := <-status; got != exitOK {
		t.Errorf("it ended with %d: %s", got, &errs.all)
	}
}
