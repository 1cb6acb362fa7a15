package api

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/wire"
)

// refusal returns the body of a refused claim under the given terms.
func refusal(o firstcome.Outcome, t firstcome.Terms) []byte {
	p := newProblem(code(o.String()), o.Reason())
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

// appendSince adds to a refusal's body when the campaign opened, and when the gate began to refuse, if known.
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
	// near is how long before its opening a campaign sends Retry-After. A client that asks earlier gets only the
	// opening time.
	near = 5 * time.Minute
	// spread is the time over which the retries of refused clients are spread.
	spread = 2 * time.Second
	// pauseRetry is the shortest time before a client refused with paused should ask again.
	pauseRetry = 5 * time.Second
)

// retryAfter returns how long a refused client should wait before asking again, or 0 if unknown. It adds jitter, so
// that a crowd does not return all at once.
func retryAfter(d firstcome.Decision, opensAt time.Time) time.Duration {
	switch d.Outcome {
	case firstcome.Paused:
		return pauseRetry + jitter(pauseRetry)
	case firstcome.NotOpen:
		// If the opening was moved forward, a gate may refuse until it gets the change.
		if wait := opensAt.Sub(d.At); wait <= near {
			return max(wait, 0) + jitter(spread)
		}
	}
	return 0
}

// jitter returns a random duration above 0 and at most most.
func jitter(most time.Duration) time.Duration { return 1 + rand.N(most) }

// seconds returns a wait as a header's value, rounded up so that clients do not retry early.
func seconds(wait time.Duration) []string {
	return []string{strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)}
}

// appendAnswer appends the answer to a claim that has a coupon.
func appendAnswer(b []byte, o firstcome.Outcome, c *firstcome.Coupon, t *terms) []byte {
	b = append(b, `{"outcome":"`...)
	b = append(b, o.String()...)
	b = append(b, `","coupon":`...)
	return append(appendCoupon(b, c, t), '}')
}

// appendCoupon appends a coupon with the terms under which it was issued.
func appendCoupon(b []byte, c *firstcome.Coupon, t *terms) []byte {
	rank := t.Rank(c.Number)
	good := t.prizeOf(rank)
	b = append(b, `{"campaign_id":"`...)
	b = append(b, c.Campaign...)
	b = append(b, `","number":`...)
	b = strconv.AppendInt(b, c.Number, 10)
	b = append(b, `,"rank":`...)
	b = strconv.AppendInt(b, rank, 10)
	b = append(b, `,"user_id":`...)
	b = appendText(b, string(c.User))
	b = append(b, `,"code":`...)
	if c.Code == "" {
		b = append(b, "null"...) // an imported code that is not shown here
	} else {
		b = appendText(b, c.Code)
	}
	b = append(b, `,"state":"`...)
	b = append(b, state(c)...)
	b = append(b, `","prize":`...)
	b = append(b, good.prize...)
	b = append(b, `,"benefit":`...)
	b = append(b, good.benefit...)
	b = append(b, `,"issued_at":`...)
	b = appendTime(b, c.IssuedAt)
	b = append(b, `,"expires_at":`...)
	b = appendTime(b, t.ExpiresAt(c.IssuedAt))
	b = append(b, `,"recorded":`...)
	b = strconv.AppendBool(b, c.Recorded)
	b = append(b, `,"generation":`...)
	b = appendOrNull(b, c.Generation)
	b = append(b, `,"ticket":`...)
	b = appendOrNull(b, c.Ticket)
	if c.Direct {
		b = append(b, `,"direct":true`...)
	}
	return append(b, '}')
}

// appendOrNull appends part of a coupon's ticket, or null if it is 0: the coupon was issued without a line.
func appendOrNull(b []byte, n int64) []byte {
	if n == 0 {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, n, 10)
}

// state returns the word for whether a coupon is in force.
func state(c *firstcome.Coupon) string {
	if c.VoidedAt.IsZero() {
		return "in_force"
	}
	return "voided"
}

// appendTime appends a time in client.TimeLayout, or null for the zero time. It formats with time.RFC3339 and adds the
// microseconds, which is several times as fast.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = t.UTC().AppendFormat(append(b, '"'), time.RFC3339)
	point := len(b) - len("Z")
	b = strconv.AppendInt(b[:point], 1_000_000+int64(t.Nanosecond()/1000), 10)
	b[point] = '.' // overwrites the 1 that kept the leading zeros
	return append(b, `Z"`...)
}

// appendText appends a string of well-formed UTF-8.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic(err) // a string
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
