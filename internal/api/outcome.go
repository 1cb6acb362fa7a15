package api

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/wire"
)

// replies is the one table from outcomes to HTTP. Each refusal has its words.
var replies = [...]struct {
	status int
	detail string
}{
	firstcome.AlreadyIssued: {status: http.StatusOK},
	firstcome.NotOpen:       {http.StatusForbidden, "the campaign has not opened yet"},
	firstcome.Closed:        {http.StatusGone, "the campaign is closed"},
	firstcome.Paused:        {http.StatusForbidden, "an operator paused the campaign: ask again later"},
	firstcome.SoldOut:       {http.StatusGone, "every coupon of the campaign is taken"},
	firstcome.Waiting:       {status: http.StatusAccepted},
	firstcome.Issued:        {status: http.StatusCreated},
}

// refusal returns the body of a refused claim under the given terms.
func refusal(o firstcome.Outcome, t firstcome.Terms) []byte {
	reply := replies[o]
	p := newProblem(code(o.String()), reply.detail)
	p.Outcome = o.String()
	switch o {
	case firstcome.NotOpen:
		p.OpensAt = wire.Time(t.OpensAt)
	case firstcome.Closed:
		p.ClosesAt = wire.Time(t.ClosesAt)
	}
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers
	}
	return body
}

// appendSince adds to a refusal's body when the campaign opened, and since when the gate refuses, if known.
func appendSince(body []byte, d *firstcome.Decision) []byte {
	if !d.OpenedAt.IsZero() {
		body = append(appendTime(append(body[:len(body)-1], `,"opened_at":`...), d.OpenedAt), '}')
	}
	if d.Since.IsZero() {
		return body
	}
	name := `,"sold_out_at":`
	if d.Outcome == firstcome.Closed {
		name = `,"closed_at":`
	}
	body = append(body[:len(body)-1], name...)
	return append(appendTime(body, d.Since), '}')
}

const (
	// near is how close to its opening a campaign tells a client when to come back
	// instead of only that it is early: a crowd gathers in the last minutes.
	near = 5 * time.Minute
	// spread is the time over which clients that got the same answer come back.
	spread = 2 * time.Second
	// pauseRetry is when to look again after a pause, which may end at any time.
	pauseRetry = 5 * time.Second
)

// retryAfter returns how long a refused client should wait before asking again, spread so that a crowd does not
// come back at once; 0 if it is not known.
func retryAfter(d firstcome.Decision, opensAt time.Time) time.Duration {
	switch d.Outcome {
	case firstcome.Paused:
		return pauseRetry + jitter(pauseRetry)
	case firstcome.NotOpen:
		// A gate that has not heard yet of an earlier opening refuses for a moment after it.
		if wait := opensAt.Sub(d.At); wait <= near {
			return max(wait, 0) + jitter(spread)
		}
	}
	return 0
}

// jitter returns a duration above 0, and at most most.
func jitter(most time.Duration) time.Duration { return 1 + rand.N(most) }

// seconds returns a wait as a header's value, rounded up so that nobody comes early.
func seconds(wait time.Duration) []string {
	return []string{strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)}
}
