package api_test

import (
	"errors"
	"testing"
	"time"
)

func TestALedgerThatDoesNotTakeWritesIsShownUntilItDoes(t *testing.T) {
	s := open(t)
	s.ledger.OnCommit(1, time.Millisecond, errors.New("the disk is full"))
	if r := s.call("GET", "/readyz?verbose", ""); r.status != 200 || r.text("ledger") != "did not take the last write: the log says why" {
		t.Errorf("while it fails: %d %s", r.status, r.body)
	}
	s.create(`{"id":"c","name":"n","quantity":1}`)
	if r := s.call("GET", "/readyz?verbose", ""); r.status != 200 || r.text("ledger") != "ok" {
		t.Errorf("once it writes: %d %s", r.status, r.body)
	}
}
