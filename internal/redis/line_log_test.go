//go:build !check

package redis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// newLoggedShop returns a shop whose campaign has a log of its line that begins at offset 7.
func newLoggedShop(t *testing.T, quantity int64) *shop {
	t.Helper()
	s := newShop(t, services.Redis.Database(t), quantity)
	s.paced(2, quantity, &firstcome.LineLog{Topic: "lines", Partition: 3, First: 7})
	return s
}

// paced gives the campaign a pace, and possibly a log, by the change of a version.
func (s *shop) paced(version, quantity int64, log *firstcome.LineLog) {
	s.t.Helper()
	terms := stage.Terms(quantity)
	terms.Pace, terms.Log = &firstcome.Pace{}, log
	s.apply(firstcome.Change{Version: version, Kind: firstcome.ChangeTerms, Terms: terms})
}

// TestAPlaceInALoggedLineSaysWhereToLogIt claims, asks, leaves, leaves again and asks again.
func TestAPlaceInALoggedLineSaysWhereToLogIt(t *testing.T) {
	s := newLoggedShop(t, 2)
	decisions, err := s.gate.Claim(t.Context(), "c", crowd(0, 3))
	stage.Must(t, err)
	asked, _, err := s.gate.Place(t.Context(), "c", crowd(1, 1)[0])
	stage.Must(t, err)
	left, err := s.gate.Leave(t.Context(), "c", crowd(1, 1)[0])
	stage.Must(t, err)
	again, err := s.gate.Leave(t.Context(), "c", crowd(1, 1)[0])
	stage.Must(t, err)
	afterwards, _, err := s.gate.Place(t.Context(), "c", crowd(1, 1)[0])
	if !errors.Is(err, firstcome.ErrNoTicket) {
		t.Errorf("a user who left is told %v, want %v", err, firstcome.ErrNoTicket)
	}
	all := map[string]firstcome.Place{"claimed": decisions[1].Place, "asked": asked, "left": left, "left again": again, "asked afterwards": afterwards}
	for what, place := range all {
		if place.Log == nil || place.Log.At.IsZero() {
			t.Fatalf("%s: the log is %+v", what, place.Log)
		}
		want := firstcome.Logged{LineLog: firstcome.LineLog{Topic: "lines", Partition: 3, First: 7}, CampaignUID: "-", Epoch: 1, Began: 1, At: place.Log.At}
		if diff := cmp.Diff(want, *place.Log); diff != "" || place.Generation != 1 || place.Ticket != 2 {
			t.Errorf("%s: ticket %d.%d is logged otherwise (-want +got):\n%s", what, place.Generation, place.Ticket, diff)
		}
	}
	if served, err := s.gate.Serve(t.Context(), "c", 9); err != nil || served.Ended != "sold_out" {
		t.Fatalf("they are served: %+v, %v", served, err)
	}
	if place, _, err := s.gate.Place(t.Context(), "c", crowd(1, 1)[0]); !errors.Is(err, firstcome.ErrNoTicket) || place != (firstcome.Place{}) {
		t.Errorf("a user who left a generation that has ended gets the place %+v and %v", place, err)
	}
	over, err := s.gate.Leave(t.Context(), "c", crowd(1, 1)[0])
	if err != nil || over.Log == nil || over.Generation != 1 || over.Ticket != 2 {
		t.Errorf("who left an earlier generation of the epoch gives back %+v, %v", over, err)
	}
	field, err := s.do("HGET", keysOf[0], "line").ToString()
	stage.Must(t, err)
	s.do("HSET", keysOf[0], "line", strings.TrimSuffix(field, "1")+"2") // the generation with which the epoch began
	if over, err = s.gate.Leave(t.Context(), "c", crowd(1, 1)[0]); err != nil || over.Log != nil {
		t.Errorf("who left an earlier epoch gives back %+v, %v", over, err)
	}
}

// TestALineGetsItsLogOnce gives a line without a log first one log, and then another.
func TestALineGetsItsLogOnce(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 9)
	s.paced(2, 9, nil)
	log := func(user int) *firstcome.LineLog {
		t.Helper()
		decisions, err := s.gate.Claim(t.Context(), "c", crowd(user, 1))
		stage.Must(t, err)
		if decisions[0].Place.Log == nil {
			return nil
		}
		return &decisions[0].Place.Log.LineLog
	}
	first := firstcome.LineLog{Topic: "lines", Partition: 0, First: 0}
	stage.Same(t, "without a log", (*firstcome.LineLog)(nil), log(0))
	s.paced(3, 9, &first)
	stage.Same(t, "with one", &first, log(1))
	s.paced(4, 9, &firstcome.LineLog{Topic: "other"})
	stage.Same(t, "with another one", &first, log(2))
	s.paced(5, 9, nil)
	stage.Same(t, "with none", &first, log(3))
}

// TestAGateDecidesInOneEpoch asks about three epochs, and asks gates that are frozen, of another run, or incomplete.
func TestAGateDecidesInOneEpoch(t *testing.T) {
	s := newLoggedShop(t, 9)
	s.issue(0, 3)
	for epoch, want := range map[int64]bool{0: false, 1: true, 2: false} {
		if err := s.gate.Decides(t.Context(), "c", epoch); (err == nil) != want {
			t.Errorf("it decides in epoch %d: %v", epoch, err)
		}
	}
	for what, change := range map[string][]string{
		"frozen":       {"HSET", keysOf[0], "frozen", "1"},
		"another run":  {"HSET", keysOf[0], "run", "another"},
		"part is gone": {"DEL", keysOf[4]},
		"all is gone":  {"FLUSHALL"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newLoggedShop(t, 9)
			stage.Must(t, stage.Err(s.gate.Claim(t.Context(), "c", crowd(0, 3))))
			s.do(change...)
			if err := s.gate.Decides(t.Context(), "c", 1); err == nil {
				t.Error("it decides")
			}
		})
	}
}

// TestOnlyTheAttemptThatFrozeSeatsPeople lets one attempt seat people, and a later one freeze.
func TestOnlyTheAttemptThatFrozeSeatsPeople(t *testing.T) {
	s := newLoggedShop(t, 9)
	at := stage.Epoch
	people := []recovery.Waiting{{User: "a", Ticket: 2, At: at}, {User: "b", Ticket: 5, At: at}}
	r := recovery.Rebuild{Campaign: "c", CampaignUID: "-", Attempt: 1}
	stage.Must(t, stage.Err(s.gate.Freeze(t.Context(), r)))
	stage.Must(t, s.gate.Seat(t.Context(), r, 2, people))
	var seated []recovery.Waiting
	stage.Must(t, s.gate.Carried(t.Context(), r, func(one recovery.Waiting) error {
		seated = append(seated, one)
		return nil
	}))
	stage.Same(t, "who is in line", people, seated)
	later := r
	later.Attempt = 2
	stage.Must(t, stage.Err(s.gate.Freeze(t.Context(), later)))
	if err := s.gate.Seat(t.Context(), r, 2, people); !errors.Is(err, recovery.ErrSuperseded) {
		t.Errorf("the earlier attempt ends with %v", err)
	}
}
