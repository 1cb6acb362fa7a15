package console_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// paced creates a campaign with a line.
func (h *house) paced(id firstcome.CampaignID, quantity int64) {
	h.t.Helper()
	terms := firstcome.Terms{Name: "줄 " + string(id), Quantity: quantity, Answer: firstcome.Recorded, Pace: &firstcome.Pace{PerSecond: 5}}
	stage.Must(h.t, stage.Err(h.config.Operator.Create(h.t.Context(), "a test", id, terms)))
}

// finds fails unless a customer's page has all of these texts, and none of those.
func (b *visitor) finds(query string, status int, says []string, not ...string) {
	b.h.t.Helper()
	got := b.get("/console/customer?" + query)
	for _, text := range says {
		if got.status != status || !strings.Contains(got.text(), text) {
			b.h.t.Errorf("%s: %d, and should be %d with %q: %s", query, got.status, status, text, got.text())
		}
	}
	for _, text := range not {
		if strings.Contains(got.text(), text) {
			b.h.t.Errorf("%s says %q: %s", query, text, got.text())
		}
	}
}

// loggedPlaces are those of a gate whose lines have a log. They cannot be read while the log is away.
type loggedPlaces struct {
	gate.Places
	away atomic.Bool
}

func (p *loggedPlaces) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	place, coupon, err := p.Places.Place(ctx, id, user)
	if err == nil && coupon.Number == 0 && p.away.Load() {
		err = fmt.Errorf("%w: no route to host", firstcome.ErrLineLogAway)
	}
	return place, coupon, err
}

// openLogged opens a house with the campaign drop, whose line has a log that may be away.
func openLogged(t *testing.T) (*house, *atomic.Bool) {
	t.Helper()
	places := &loggedPlaces{}
	e := &edited{edit: func(s *ledger.Status) {
		if s.Pace != nil {
			s.Log = &firstcome.LineLog{Topic: "topic"}
		}
	}}
	h := openFar(t, editing(e), func(h *house) {
		places.Places = h.config.Places
		h.config.Places = places
	})
	h.paced("drop", 500)
	return h, &places.away
}

// TestThePagesSayThatALineIsLogged, and say nothing of a log for a line without one.
func TestThePagesSayThatALineIsLogged(t *testing.T) {
	h, _ := openLogged(t)
	h.campaign("none", 9)
	b := h.browser()
	const says = "Places in line are also kept in Kafka, so they survive when Redis loses its data."
	for path, logged := range map[string]bool{"drop": true, "drop/steer": true, "none": false, "none/steer": false} {
		if got := b.get("/console/campaigns/" + path).text(); strings.Contains(got, says) != logged {
			t.Errorf("%s: %s", path, got)
		}
	}
	for id, says := range map[string]string{"drop": "People in line keep the places that Kafka has.", "none": "People in line keep their places if Redis still has them"} {
		if got := b.post("/console/campaigns/"+id+"/rebuild", url.Values{"version": {"1"}}).text(); !strings.Contains(got, says) {
			t.Errorf("before a rebuild of %s: %s", id, got)
		}
	}
}

// TestNoPlaceIsToldThatTheLogLacks: support sees that the place cannot be told. A coupon is still found, and a user who is not in line may join.
func TestNoPlaceIsToldThatTheLogLacks(t *testing.T) {
	h, away := openLogged(t)
	h.claim("drop", "mina", "jun")
	stage.Must(t, stage.Err(h.decides.Serve(t.Context(), "drop", 1)))
	b := h.browser()
	const untold, why = "Whether you are in line cannot be told now.", "Kafka, which has the copy of the line, takes no record, so no place is told."
	b.finds("campaign=drop&user_id=jun", 200, []string{"In line now"}, untold, why)
	away.Store(true)
	b.finds("campaign=drop&user_id=jun", 200, []string{"You have no coupon", untold, why}, "In line now", "You may join")
	b.finds("campaign=drop&user_id=mina", 200, []string{"is being recorded now. We will tell you more in a moment.", "joined the line: ticket 1", "was served, and was issued number 1"}, untold, why)
	b.finds("campaign=drop&user_id=nobody", 200, []string{"You may join the line now."}, untold, why)
}
