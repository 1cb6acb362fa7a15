package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/wire"
)

// maxWait is the longest wait for facts. It is below the time-outs of common proxies.
const maxWait = time.Minute

// facts serves facts.
type facts struct {
	*core
	follows auth.Room // by actor
}

// list answers GET /v1/campaigns/{id}/facts.
func (s *facts) list(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	q := parseQuery(r)
	after, most, wait := q.number("after"), q.limit(), q.wait()
	if q.err() != nil {
		return q.err()
	}
	if err := s.known(r, id); err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		wait = 0 // the answer has no body
	}
	if wait > 0 {
		if !s.follows.Enter(c.Name) {
			return unavailable(busy, "too many requests of this key are waiting for facts. Ask again")
		}
		defer s.follows.Leave(c.Name)
	}
	extend(http.NewResponseController(w), wait+s.PartTime)
	facts, err := s.wait(r, id, after, most, wait)
	if err != nil {
		return err
	}
	// next is set even on the last page, so that the follower can continue.
	next := strconv.FormatInt(after+int64(len(facts)), 10)
	return writeJSON(w, http.StatusOK, client.List[wire.Fact]{Items: facts, Next: &next})
}

// known returns an error if the campaign does not exist or cannot be read.
func (s *core) known(r *http.Request, id firstcome.CampaignID) error {
	r, over := reading(r)
	defer over()
	_, err := s.Ledger.Campaign(r.Context(), id)
	return err
}

// wait returns how long to wait for facts.
func (q *query) wait() time.Duration {
	text, ok := q.given("wait")
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxWait {
		q.refuse("wait", "must be a duration of at most "+maxWait.String())
	}
	return d
}

// wait returns facts as soon as there are any. It returns none when the wait ends or the server drains.
func (s *facts) wait(r *http.Request, id firstcome.CampaignID, after int64, most int, wait time.Duration) ([]wire.Fact, error) {
	end := time.NewTimer(wait)
	defer end.Stop()
	for {
		// Subscribe before reading the ledger, so that no fact is missed in between.
		news, forget := s.Ledger.NewFacts(id)
		defer forget()
		facts, err := s.after(r, id, after, most)
		if err != nil || len(facts) > 0 || wait == 0 {
			return facts, err
		}
		select {
		case <-news:
			continue
		case <-end.C:
		case <-s.draining:
		case <-r.Context().Done():
		}
		return facts, nil
	}
}

func (s *facts) after(r *http.Request, id firstcome.CampaignID, after int64, most int) ([]wire.Fact, error) {
	r, over := reading(r)
	defer over()
	facts := []wire.Fact{}
	err := s.Ledger.Facts(r.Context(), id, after, most, func(f firstcome.Fact) error {
		var t firstcome.Terms
		var err error
		if f.Coupon.User != "" { // the ledger has not lost the coupon
			t, err = s.Terms.Terms(r.Context(), id, f.Coupon.TermsVersion)
		}
		facts = append(facts, wire.FactOf(&f, &t))
		return err
	})
	return facts, err
}
