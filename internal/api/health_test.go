package api_test

import (
	"errors"
	"strings"
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

func TestTheRootSaysWhatThisIs(t *testing.T) {
	r := open(t).call("GET", "/", "").want(t, 200, "")
	if !strings.Contains(string(r.body), "firstcome") || !strings.Contains(string(r.body), "/openapi.yaml") {
		t.Errorf("it says %s", r.body)
	}
}
