package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/wire"
)

// appendPlace appends the answer to somebody in line.
func appendPlace(b []byte, p firstcome.Place) []byte {
	wire := client.Place{Ahead: p.Ahead, Serving: p.Serving}
	b = append(b, `{"outcome":"waiting","ticket":`...)
	b = strconv.AppendInt(b, p.Ticket, 10)
	b = append(b, `,"generation":`...)
	b = strconv.AppendInt(b, p.Generation, 10)
	b = append(b, `,"ahead":`...)
	b = strconv.AppendInt(b, p.Ahead, 10)
	b = append(b, `,"eta_seconds":`...)
	if p.ETA < 0 {
		b = append(b, "null"...)
	} else {
		eta := int64((p.ETA + time.Second - 1) / time.Second)
		wire.ETASeconds = &eta
		b = strconv.AppendInt(b, eta, 10)
	}
	b = append(b, `,"likely":`...)
	b = strconv.AppendBool(b, p.Likely)
	b = append(b, `,"serving":`...)
	b = strconv.AppendBool(b, p.Serving)
	b = append(b, `,"why":`...)
	if p.Serving {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, '"'), p.Why.String()...), '"')
	}
	b = append(b, `,"until":`...)
	b = appendTime(b, p.Until)
	b = append(b, `,"closes_at":`...)
	b = appendTime(b, p.ClosesAt)
	if p.Proof != "" {
		b = append(append(append(b, `,"proof":"`...), p.Proof...), '"')
	}
	b = append(b, `,"poll_after":`...)
	return append(strconv.AppendFloat(b, client.PollAfter(wire), 'f', 1, 64), '}')
}

const (
	// lineFresh is how long a node repeats what it told of a line. Caches on the way may keep it for a second more, and
	// people look once a second at most.
	lineFresh = 250 * time.Millisecond
	// maxLines bounds how many lines, also of campaigns that there are not, a node remembers: some 4 MB.
	maxLines = 10_000
)

// publicSecond lets caches keep an answer for a second, and no longer: without the last directive Varnish gives it away for
// ten seconds more while it asks again. It is never written to.
var publicSecond = []string{"public, max-age=1, stale-while-revalidate=0"}

// lines are the answers of GET /v1/campaigns/{id}/line that are fresh: whoever follows a place asks the same.
type lines struct {
	reads singleflight.Group
	mu    sync.RWMutex // guards what follows
	kept  map[firstcome.CampaignID]lineAnswer
}

// A lineAnswer is what was told of a line; no body: there is no such campaign.
type lineAnswer struct {
	body  []byte
	until time.Time
}

// readLine answers GET /v1/campaigns/{id}/line.
func (s *Server) readLine(w http.ResponseWriter, r *http.Request, _ auth.Caller, id firstcome.CampaignID) error {
	answer, err := s.freshLine(r.Context(), id)
	if err != nil {
		return err
	}
	if answer.body == nil {
		return firstcome.ErrNoCampaign
	}
	w.Header()["Cache-Control"] = publicSecond
	writeBody(w, http.StatusOK, answer.body)
	return nil
}

// freshLine returns what is told of a line. The caller who reads it does so for all who ask.
func (s *Server) freshLine(ctx context.Context, id firstcome.CampaignID) (lineAnswer, error) {
	l := &s.followed
	l.mu.RLock()
	answer, ok := l.kept[id]
	l.mu.RUnlock()
	if ok && time.Now().Before(answer.until) {
		return answer, nil
	}
	done := l.reads.DoChan(string(id), func() (any, error) {
		ctx, over := context.WithTimeout(context.WithoutCancel(ctx), readWait)
		defer over()
		body, err := s.lineBody(ctx, id)
		if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) {
			return lineAnswer{}, err
		}
		answer := lineAnswer{body, time.Now().Add(lineFresh)}
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.kept) >= maxLines || l.kept == nil {
			l.kept = map[firstcome.CampaignID]lineAnswer{}
		}
		l.kept[id] = answer
		return answer, nil
	})
	select {
	case r := <-done:
		answer, _ := r.Val.(lineAnswer)
		return answer, r.Err
	case <-ctx.Done():
		return lineAnswer{}, ctx.Err()
	}
}

// lineBody reads a line and returns it as the wire has it.
func (s *Server) lineBody(ctx context.Context, id firstcome.CampaignID) ([]byte, error) {
	state, at, err := s.lineOf(ctx, id)
	if err != nil {
		return nil, err
	}
	line := client.Line{
		CampaignID: string(id), Generation: at.Line.Generation, Serving: at.Line.Serving(), LastTicket: at.Line.LastTicket, Waiting: at.Line.Waiting,
		NextJoinedAt: wire.Time(at.Joined), Pace: wirePace(at.Campaign.Pace), State: state, Ended: []client.EndedLine{}, ServerTime: client.Time{Time: at.Now},
	}
	for _, p := range at.Past {
		line.Ended = append(line.Ended, client.EndedLine{
			Generation: p.Generation, Reason: p.Reason, EndedAt: client.Time{Time: p.EndedAt}, LastTicketServed: p.ServedThrough,
		})
	}
	return json.Marshal(line)
}

// lineOf returns a campaign's line, and what a newcomer's claim would get.
func (s *Server) lineOf(ctx context.Context, id firstcome.CampaignID) (state string, line flow.LineState, err error) {
	line, err = s.Places.LineOf(ctx, id)
	return stateOf(line.Campaign, line.Now, line.InForce), line, err
}
