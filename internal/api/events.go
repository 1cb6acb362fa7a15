package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/httpd"
)

// lastEvent is the id of the event with the outcome. A client that sends it as Last-Event-ID has received all events.
const lastEvent = "end"

// typeEvents is the Content-Type of a stream. It must not be modified.
var typeEvents = []string{"text/event-stream"}

// unbuffered tells nginx and other proxies to forward each event immediately.
var unbuffered = []string{"no"}

// follow answers GET /v1/campaigns/{id}/claims/{user_id}/events.
func (t *streams) follow(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	user, err := t.claims.userOf(r, c, id)
	if err != nil {
		return err
	}
	heard := strings.Clone(r.Header.Get("Last-Event-ID"))
	if heard == lastEvent {
		w.WriteHeader(http.StatusNoContent) // makes a browser's EventSource stop reconnecting
		return nil
	}
	f := &follower{id: id, user: user, caller: c, key: c.Key, until: time.Now().Add(longestStream/2 + rand.N(longestStream/2))}
	if !c.Until.IsZero() && c.Until.Before(f.until) {
		f.until = c.Until
	}
	if c.User != "" && t.AddressLimit != nil {
		f.addr = t.address(r)
	}
	answer, err := t.placeOrEnd(r.Context(), f, heard)
	if err != nil {
		return err
	}
	h := w.Header()
	h["Content-Type"], h["X-Accel-Buffering"] = typeEvents, unbuffered
	switch {
	case answer != nil:
		_, _ = w.Write(outcomeEvent(answer))
		return nil
	case r.Method == http.MethodHead:
		return nil
	}
	if err := t.enter(f); err != nil {
		return err
	}
	first := retryField()
	if id := eventID(f.place); id != heard {
		first = appendPlaceEvent(first, f.place)
	}
	return t.stream(w, r, f, first)
}

// stream starts to write to a follower: on the detached connection, or in the request's goroutine.
func (t *streams) stream(w http.ResponseWriter, r *http.Request, f *follower, first []byte) error {
	taken, err := httpd.Detach(w, first)
	switch {
	case errors.Is(err, http.ErrNotSupported):
		return t.streamHere(w, r, f, first)
	case err != nil: // the client disconnected
		t.leave(f)
		return nil
	}
	f.to = taken
	t.join(f)
	return nil
}

// placeOrEnd sets a follower's place, or returns the answer that ends the stream.
func (t *streams) placeOrEnd(ctx context.Context, f *follower, heard string) (answer []byte, err error) {
	ctx, over := context.WithTimeout(ctx, readWait)
	defer over()
	select {
	case t.openings <- struct{}{}:
		defer func() { <-t.openings }()
	case <-ctx.Done():
		return nil, unavailable(busy, "too many streams are being opened. Ask again")
	}
	f.place, answer, err = t.claims.claimOf(ctx, f.caller, f.id, f.user)
	at := ticketOf(heard)
	if !isNone(err) || at.Generation == 0 {
		return answer, err
	}
	outcome, failed := t.claims.became(ctx, f.id, f.user, at)
	if failed != nil || outcome == "" || outcome == left {
		return nil, err
	}
	return outcomeBody(outcome), nil
}

// isNone reports whether an error means that a user has neither a coupon nor a ticket.
func isNone(err error) bool {
	return errors.Is(err, firstcome.ErrNoCoupon) || errors.Is(err, firstcome.ErrNoTicket)
}

func outcomeBody(reason string) []byte { return []byte(`{"outcome":"` + reason + `"}`) }

// eventID returns the id of the event for a place. Clients only send it back; ticketOf reads it.
func eventID(p firstcome.Place) string {
	b := strconv.AppendInt(nil, p.Generation, 10)
	b = strconv.AppendInt(append(b, '.'), p.Ticket, 10)
	b = strconv.AppendInt(append(b, '.'), p.Ahead, 10)
	if !p.Serving {
		b = append(append(b, '.'), p.Why.String()...)
	}
	return string(b)
}

// ticketOf returns the ticket in an id from eventID. For any other text it returns a ticket that never existed.
func ticketOf(event string) (at firstcome.Ticket) {
	generation, rest, _ := strings.Cut(event, ".")
	ticket, _, _ := strings.Cut(rest, ".")
	at.Generation, _ = parseInteger(generation)
	at.Number, _ = parseInteger(ticket)
	return at
}

// appendPlaceEvent appends the event with a place.
func appendPlaceEvent(b []byte, p firstcome.Place) []byte {
	b = append(append(b, "event: place\nid: "...), eventID(p)...)
	b = appendPlace(append(b, "\ndata: "...), p)
	return append(b, "\n\n"...)
}

// outcomeEvent returns the event that ends a stream.
func outcomeEvent(answer []byte) []byte {
	if bytes.ContainsAny(answer, "\r\n") { // a benefit may have line breaks between its tokens
		var line bytes.Buffer
		if json.Compact(&line, answer) == nil {
			answer = line.Bytes()
		}
	}
	b := []byte("event: outcome\nid: " + lastEvent + "\ndata: ")
	return append(append(b, answer...), "\n\n"...)
}

// retryField returns how long the client must wait before it reconnects, as the field of a stream. The time is random, so that clients do not
// reconnect all at once.
func retryField() []byte {
	return fmt.Appendf(nil, "retry: %d\n\n", (firstRetry + jitter(firstRetry)).Milliseconds())
}

// streamHere writes a stream in the request's goroutine, for connections that cannot be detached, such as TLS and HTTP/2.
func (t *streams) streamHere(w http.ResponseWriter, r *http.Request, f *follower, first []byte) error {
	p := &pipe{events: make(chan []byte, pipeEvents), gone: r.Context().Done()}
	f.to = p
	_ = p.Send(first)
	go t.join(f)
	out := http.NewResponseController(w)
	for {
		select {
		case part, ok := <-p.events:
			if !ok {
				return nil
			}
			extend(out, t.PartTime+heartbeat)
			if _, err := w.Write(part); err != nil || out.Flush() != nil {
				return nil
			}
		case <-p.gone:
			return nil
		}
	}
}

// A pipe passes events to a request's goroutine.
type pipe struct {
	events chan []byte
	gone   <-chan struct{}
}

// pipeEvents is how many unsent events a pipe holds. A client that falls further behind is dropped.
const pipeEvents = 16

func (p *pipe) Send(part []byte) error {
	select {
	case p.events <- bytes.Clone(part):
		return nil
	default:
		return httpd.ErrSlow
	}
}

func (p *pipe) Gone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

func (p *pipe) Close() { close(p.events) }
