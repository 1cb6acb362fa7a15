package gate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A meeting is a gate that answers about the campaign c-0 at once, and about the others once it has been asked about all of them.
type meeting struct {
	together sync.WaitGroup
	first    error
	mu       sync.Mutex
	asked    int
}

func (m *meeting) State(_ context.Context, id firstcome.CampaignID) (gate.State, error) {
	m.mu.Lock()
	m.asked++
	m.mu.Unlock()
	if id == "c-0" {
		return gate.State{Issued: int64(len(id))}, m.first
	}
	m.together.Done()
	m.together.Wait()
	if id == "c-7" {
		return gate.State{}, gate.ErrGone
	}
	return gate.State{Issued: int64(len(id))}, nil
}

func TestTheStatesOfAPageOfCampaignsAreAskedForAtOnce(t *testing.T) {
	const page = 50
	ids := make([]firstcome.CampaignID, page)
	for n := range ids {
		ids[n] = firstcome.CampaignID(fmt.Sprint("c-", n))
	}
	for _, first := range []error{nil, gate.ErrGone, firstcome.ErrGateMismatch} {
		m := &meeting{first: first}
		m.together.Add(page - 1)
		got := gate.States(t.Context(), m, ids)
		for _, id := range ids {
			want := map[firstcome.CampaignID]error{"c-0": first, "c-7": gate.ErrGone}[id]
			if state, told := got[id]; !told || !errors.Is(state.Err, want) || want == nil && state.Err != nil || want == nil && state.Issued != int64(len(id)) {
				t.Errorf("%s: %+v, want the error %v", id, state, want)
			}
		}
	}
	away := errors.New("it does not answer")
	m := &meeting{first: away}
	for id, state := range gate.States(t.Context(), m, ids) {
		if !errors.Is(state.Err, away) {
			t.Errorf("%s of a gate that is away: %+v", id, state)
		}
	}
	if m.asked != 1 {
		t.Errorf("a gate that does not answer was asked %d times", m.asked)
	}
	if got := gate.States(t.Context(), m, nil); len(got) != 0 || m.asked != 1 {
		t.Errorf("about nothing it says %v", got)
	}
}
