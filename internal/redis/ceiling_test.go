//go:build !check

package redis_test

import (
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// newCeiled returns a shop whose ledger grants numbers up to a ceiling.
func newCeiled(t *testing.T, ceiling int64, terms firstcome.Terms) *shop {
	t.Helper()
	url := services.Redis.Database(t)
	s := &shop{t: t, url: url, gate: open(t, url), client: connect(t, url)}
	s.apply(firstcome.Change{Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1, Ceiling: ceiling, Terms: terms})
	return s
}

// grants brings the gate a grant of the ledger, as a recorder without new coupons does.
func (s *shop) grants(epoch, ceiling int64) {
	s.t.Helper()
	drained := record.Result{Grant: record.Grant{Epoch: epoch, Ceiling: ceiling}}
	stage.Must(s.t, stage.Err(s.gate.Settle(s.t.Context(), "c", "", drained)))
}

// TestNothingIsGivenAboveTheCeiling claims below the ceiling, at it, and across it. Recordings and changes raise it, and nothing lowers it.
func TestNothingIsGivenAboveTheCeiling(t *testing.T) {
	s := newCeiled(t, 3, firstcome.Terms{Quantity: 9})
	s.want(s.gate, crowd(0, 5), "issued:1", "issued:2", "issued:3", "undecided", "undecided")
	s.want(s.gate, crowd(2, 2), "already_issued:3", "undecided")
	s.grants(1, 3)
	s.want(s.gate, crowd(3, 1), "undecided")
	s.grants(1, 4)
	s.want(s.gate, crowd(3, 2), "issued:4", "undecided")
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangePause, Ceiling: 6})
	s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeResume, Ceiling: 5})
	s.grants(1, 2)
	s.want(s.gate, crowd(4, 3), "issued:5", "issued:6", "undecided")
	direct, err := s.gate.Issue(t.Context(), gate.Order{Actor: "op"}, "c", crowd(6, 1))
	stage.Must(t, err)
	if got := outcomes(direct)[0]; got != "undecided" {
		t.Errorf("who is issued a coupon directly is %s", got)
	}
	s.grants(1, 100)
	s.want(s.gate, crowd(6, 4), "issued:7", "issued:8", "issued:9", "sold_out")
	if state := s.state(); state.LastNumber != 9 || state.InForce != 9 {
		t.Errorf("the state is %+v", state)
	}
}

// TestALineIsServedUpToTheCeiling has five people in line, and only three numbers may be given.
func TestALineIsServedUpToTheCeiling(t *testing.T) {
	s := newCeiled(t, 3, withPace(100, 0))
	join(t, s.gate, 0, 5)
	served := func() int64 {
		t.Helper()
		for range 2 {
			stage.Must(t, stage.Err(s.gate.Serve(t.Context(), "c", 10)))
		}
		return s.state().LastNumber
	}
	if last := served(); last != 3 {
		t.Errorf("below a ceiling of 3 people are served up to number %d", last)
	}
	s.grants(1, 4)
	if last := served(); last != 4 {
		t.Errorf("below a ceiling of 4 people are served up to number %d", last)
	}
}

// TestF03F18AGateTakesCeilingsOfItsOwnEpochOnly brings a gate grants of the epoch before its own and of the one after. A recorder does this if it was
// stalled during a rebuild, or if it reaches an old primary after one.
func TestF03F18AGateTakesCeilingsOfItsOwnEpochOnly(t *testing.T) {
	s := newCeiled(t, 1, firstcome.Terms{Quantity: 100})
	s.want(s.gate, crowd(0, 2), "issued:1", "undecided")
	s.grants(2, 50)
	s.want(s.gate, crowd(1, 1), "undecided")
	s.do("HSET", keysOf[0], "epoch", "2")
	s.grants(1, 50)
	s.want(s.gate, crowd(1, 1), "undecided")
	s.grants(2, 2)
	s.want(s.gate, crowd(1, 2), "issued:2", "undecided")
}
