package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// Line returns a campaign's waiting line. It needs no key. A cache may answer with a state that is a second old.
func (c *Client) Line(ctx context.Context, id string) (Line, error) {
	return ask[Line](ctx, c, request{method: http.MethodGet, path: campaignPath(id, "line")})
}

// Leave takes a user out of a campaign's waiting line. It may be repeated, and succeeds for a user who was sent away or whose coupon was voided.
// Statuses of a Problem: 404, they never joined; 409, they were served, and the Problem has their coupon.
func (c *Client) Leave(ctx context.Context, id, user string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: campaignPath(id, "claims", user)}, nil)
}

// Follow waits in line for a user whose claim was answered with a place, from, and returns the result: a coupon, or the outcome with which all users
// in line were sent away. The outcome Lost means that Redis lost the place: the user may claim again. Voided means that the user was served, and the
// coupon was voided before they were told. A Problem with status 404 means that the user left, or that the result is unknown. each, if not nil, is
// called with each new place.
//
// Follow gets each change on a stream from the server. While there is no stream, because the node has no room, a proxy holds it back or it broke,
// Follow polls the campaign's line, which is cheap for the server. It asks for the user's own claim only when their turn has come. While the server
// does not answer, Follow asks again, no sooner than Retry-After says, until ctx ends.
//
// Over HTTP/1.1 a stream has a connection of its own. A program that follows for many users must allow its transport as many connections
// (http.Transport.MaxConnsPerHost), or claims wait until a stream ends.
func (c *Client) Follow(ctx context.Context, id, user string, from Place, each func(Place)) (Answer, error) {
	f := follower{client: c, id: id, user: user, place: from, each: each, streams: firstStream}
	for failures := firstAgain; ; {
		f.tell()
		if answer, done := f.tryStream(ctx); done {
			return answer, nil
		}
		wait := time.Duration(f.place.PollAfter * float64(time.Second))
		answer, done, err := f.look(ctx, wait)
		var p *Problem
		switch told := errors.As(err, &p); {
		case err == nil && done:
			return answer, nil
		case err == nil:
			failures = firstAgain
			continue
		case told && p.Status < 500 && p.Status != http.StatusTooManyRequests:
			return Answer{}, err
		}
		pause := rand.N(failures)
		if p != nil {
			pause += p.RetryAfter
		}
		if failures = min(2*failures, longestAgain); sleep(ctx, pause) != nil {
			return Answer{}, fmt.Errorf("the result of the place in line is still unknown: %w", errors.Join(ctx.Err(), err))
		}
	}
}

// A follower follows a place.
type follower struct {
	client   *Client
	id, user string
	place    Place
	each     func(Place)

	heard   string        // id of the last event of a stream; empty if there was none
	next    time.Time     // when a stream may be tried again
	streams time.Duration // the wait after the next broken stream
}

func (f *follower) tell() {
	if f.each != nil {
		f.each(f.place)
	}
}

// look waits, polls the line, and reports whether the user's place has ended.
func (f *follower) look(ctx context.Context, wait time.Duration) (answer Answer, done bool, err error) {
	if err := sleep(ctx, wait); err != nil {
		return answer, false, err
	}
	line, err := f.client.Line(ctx, f.id)
	if err != nil {
		return answer, false, err
	}
	if line.Generation == f.place.Generation && line.Serving <= f.place.Ticket {
		f.place = f.place.Moved(line)
		return answer, false, nil
	}
	answer, err = f.client.ClaimOf(ctx, f.id, f.user, f.place)
	switch became := missing(err); {
	case became != nil && became.Outcome == Voided:
		return Answer{Outcome: Voided}, true, nil
	case became != nil:
		return f.sentAway(ctx, err)
	case err != nil:
		return answer, false, err
	case answer.Place == nil:
		return answer, true, nil
	}
	f.place = *answer.Place
	return answer, false, nil
}

// Moved returns the place after the line has advanced to l. Fields that only the user's own claim has stay the same.
func (p Place) Moved(l Line) Place {
	p.Ahead, p.Serving, p.Reason, p.Until, p.ETASeconds = p.Ticket-l.Serving, true, nil, nil, nil
	p.Likely = l.LikelyThrough == nil || p.Ticket <= *l.LikelyThrough
	switch {
	case l.State == NotOpen, l.State == Paused:
		p.Serving, p.Reason = false, &l.State
	case l.Waitlist && !p.Likely:
	case l.Pace != nil && l.Pace.PerSecond != nil:
		line := firstcome.Line{LastTicket: l.LastTicket, ServedThrough: l.Serving - 1, Waiting: l.Waiting}
		p.ETASeconds = ETASeconds(firstcome.Pace{PerSecond: *l.Pace.PerSecond}.ETA(line, p.Ticket))
	}
	p.PollAfter = PollAfter(p)
	return p
}

// ETASeconds returns an ETA of a firstcome.Place in whole seconds, rounded up, or nil if it is unknown.
func ETASeconds(eta time.Duration) *int64 {
	if eta < 0 {
		return nil
	}
	seconds := int64((eta + time.Second - 1) / time.Second)
	return &seconds
}

// missing returns the Problem with status 404 that an error is, or nil.
func missing(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		return p
	}
	return nil
}

// stale is a little more than the greatest age of a cache's answer.
const stale = 1500 * time.Millisecond

// sentAway returns the outcome of a user who is no longer in line and holds no coupon, or the error none. It reads the line again, because the line
// may have ended between the two answers, and the first may have come from a cache.
func (f *follower) sentAway(ctx context.Context, none error) (Answer, bool, error) {
	for _, pause := range []time.Duration{0, stale} {
		if err := sleep(ctx, pause); err != nil {
			return Answer{}, false, err
		}
		line, err := f.client.Line(ctx, f.id)
		if err != nil {
			return Answer{}, false, err
		}
		if n := slices.IndexFunc(line.Ended, func(e EndedLine) bool { return e.Generation == f.place.Generation }); n >= 0 {
			return Answer{Outcome: line.Ended[n].Reason}, true, nil
		}
	}
	return Answer{}, false, none
}

// sleep waits, and returns an error if ctx ends first.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	// aPause is the number of seconds that a wait of unknown length counts as, in a pause or for returned stock: then users poll about every 5 s.
	aPause = 35
	// unpaced is the assumed rate of a line without a pace, in users a second: less than any gate achieves.
	unpaced = 1000
)

// PollAfter returns after how many seconds the user at a place should poll the line again: 1 to 2 near the front, and 8 to 10 from a minute away on.
// The value is partly random, so that users do not poll at the same time.
func PollAfter(p Place) float64 {
	seconds := float64(p.Ahead) / unpaced
	switch {
	case p.ETASeconds != nil:
		seconds = float64(*p.ETASeconds)
	case !p.Serving || !p.Likely:
		seconds = max(seconds, aPause)
	}
	far := min(1, max(0, (seconds-10)/50))
	least, most := 1+7*far, 2+8*far
	return math.Round((least+(most-least)*rand.Float64())*10) / 10
}
