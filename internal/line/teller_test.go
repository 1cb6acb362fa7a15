package line_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/line"
)

// A logged gate gives each user a place in a line that has a log. It notes the calls of itself and of its log in did.
type logged struct {
	gate.Decider // for nothing but claims
	place        firstcome.Place
	did          []string
	full, gone   error // of the log, and of the gate's epoch
	left         bool  // the user has left
}

func (l *logged) Append(_ context.Context, _ firstcome.CampaignID, records []line.Record) error {
	for _, r := range records {
		what := "append"
		if r.Left {
			what = "append that left"
		}
		l.did = append(l.did, fmt.Sprintf("%s: %s %d/%d.%d", what, r.User, r.Epoch, r.Generation, r.Number))
	}
	return l.full
}

func (l *logged) Decides(_ context.Context, _ firstcome.CampaignID, epoch int64) error {
	l.did = append(l.did, fmt.Sprintf("check: %d", epoch))
	return l.gone
}

func (l *logged) Place(context.Context, firstcome.CampaignID, firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	if l.left {
		return l.place, firstcome.Coupon{}, firstcome.ErrNoTicket
	}
	return l.place, firstcome.Coupon{}, nil
}

func (l *logged) Leave(context.Context, firstcome.CampaignID, firstcome.UserID) (firstcome.Place, error) {
	return l.place, nil
}

func (l *logged) Stays(context.Context, firstcome.CampaignID, firstcome.UserID) ([]gate.Stay, error) {
	return nil, nil
}

func (l *logged) LineOf(context.Context, firstcome.CampaignID) (gate.LineState, error) {
	return gate.LineState{}, nil
}

func (l *logged) Claim(_ context.Context, _ firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	all := make([]firstcome.Decision, len(users))
	for n := range users {
		all[n] = firstcome.Decision{Outcome: firstcome.Waiting, Place: l.place}
	}
	return all, nil
}

func placeOf(epoch, generation, ticket int64) firstcome.Place {
	return firstcome.Place{Generation: generation, Ticket: ticket, Log: &firstcome.Logged{Epoch: epoch, At: time.Unix(1, 0)}}
}

func TestAPlaceIsToldOnlyOnceTheLogHasItAndTheEpochStillDecides(t *testing.T) {
	away, over := errors.New("the log is away"), errors.New("the epoch has ended")
	gate := &logged{place: placeOf(1, 1, 65)}
	teller := line.NewTeller(gate, gate)
	issuer := issue.NewIssuer(gate, issue.Options{Teller: teller})
	defer func() { _ = issuer.Stop(t.Context()) }()
	claim := func() error { _, err := issuer.Claim(t.Context(), "drop", "ann"); return err }
	ask := func() error { _, _, err := teller.Place(t.Context(), "drop", "ann"); return err }
	leave := func() error { _, err := teller.Leave(t.Context(), "drop", "ann"); return err }
	askAfterwards := func() error {
		gate.left = true
		defer func() { gate.left = false }()
		return ask()
	}
	for _, step := range []struct {
		name       string
		do         func() error
		place      firstcome.Place
		full, gone error
		did        []string
		want       error
	}{
		{"the log is away", claim, placeOf(1, 1, 65), away, nil, []string{"append: ann 1/1.65"}, away},
		{"asked while it is away", ask, placeOf(1, 1, 65), away, nil, []string{"append: ann 1/1.65"}, away},
		{"the epoch has ended", claim, placeOf(1, 1, 65), nil, over, []string{"append: ann 1/1.65", "check: 1"}, over},
		{"told", claim, placeOf(1, 1, 65), nil, nil, []string{"append: ann 1/1.65", "check: 1"}, nil},
		{"told again", claim, placeOf(1, 1, 65), away, over, nil, nil},
		{"asked", ask, placeOf(1, 1, 65), away, over, nil, nil},
		{"another ticket", ask, placeOf(1, 1, 1), nil, nil, []string{"append: ann 1/1.1", "check: 1"}, nil},
		{"another generation", ask, placeOf(1, 2, 65), nil, nil, []string{"append: ann 1/2.65", "check: 1"}, nil},
		{"another epoch", ask, placeOf(2, 2, 65), nil, nil, []string{"append: ann 2/2.65", "check: 2"}, nil},
		{"a line without a log", ask, firstcome.Place{Generation: 1, Ticket: 1}, away, over, nil, nil},
		{"left while the log is away", leave, placeOf(2, 2, 65), away, nil, []string{"append that left: ann 2/2.65"}, away},
		{"left while the epoch has ended", leave, placeOf(2, 2, 65), nil, over, []string{"append that left: ann 2/2.65", "check: 2"}, over},
		{"left", leave, placeOf(2, 2, 65), nil, nil, []string{"append that left: ann 2/2.65", "check: 2"}, nil},
		{"asked after leaving while the log is away", askAfterwards, placeOf(2, 2, 66), away, nil, []string{"append that left: ann 2/2.66"}, away},
		{"asked after leaving while the epoch has ended", askAfterwards, placeOf(2, 2, 66), nil, over, []string{"append that left: ann 2/2.66", "check: 2"}, over},
		{"asked after leaving", askAfterwards, placeOf(2, 2, 66), nil, nil, []string{"append that left: ann 2/2.66", "check: 2"}, firstcome.ErrNoTicket},
		{"asked again after leaving", askAfterwards, placeOf(2, 2, 66), away, over, nil, firstcome.ErrNoTicket},
		{"left again", leave, placeOf(2, 2, 65), away, over, nil, nil},
		{"another left, of a generation that has ended", leave, placeOf(2, 1, 3), nil, nil, []string{"append that left: ann 2/1.3", "check: 2"}, nil},
		{"asked, of the generation after", ask, placeOf(2, 2, 65), away, over, nil, nil},
		{"asked by a user who never joined", askAfterwards, firstcome.Place{}, away, over, nil, firstcome.ErrNoTicket},
		{"left, and no ticket is known", leave, firstcome.Place{}, away, over, nil, nil},
	} {
		t.Run(step.name, func(t *testing.T) {
			gate.place, gate.full, gate.gone, gate.did = step.place, step.full, step.gone, nil
			if err := step.do(); !errors.Is(err, step.want) {
				t.Errorf("the answer is %v, want %v", err, step.want)
			}
			if diff := cmp.Diff(step.did, gate.did); diff != "" {
				t.Errorf("it was done (-want +got):\n%s", diff)
			}
		})
	}
}

func TestANodeWithoutTheLogTellsNoPlaceThatHasOne(t *testing.T) {
	gate := &logged{place: placeOf(1, 1, 1)}
	_, _, err := line.NewTeller(gate, nil).Place(t.Context(), "drop", "ann")
	if !errors.Is(err, firstcome.ErrLineLogAway) || len(gate.did) > 0 {
		t.Errorf("a node without the log tells %v after %v, want that the log is away", err, gate.did)
	}
}
