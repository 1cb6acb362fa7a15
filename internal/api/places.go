package api

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/wire"
)

// appendPlace appends the answer for a user in line.
func appendPlace(b []byte, p firstcome.Place) []byte {
	wire := client.Place{Ahead: p.Ahead, Serving: p.Serving, Likely: p.Likely, ETASeconds: client.ETASeconds(p.ETA)}
	b = append(b, `{"outcome":"waiting","ticket":`...)
	b = strconv.AppendInt(b, p.Ticket, 10)
	b = append(b, `,"generation":`...)
	b = strconv.AppendInt(b, p.Generation, 10)
	b = append(b, `,"ahead":`...)
	b = strconv.AppendInt(b, p.Ahead, 10)
	b = append(b, `,"eta_seconds":`...)
	if wire.ETASeconds == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, *wire.ETASeconds, 10)
	}
	b = append(b, `,"likely":`...)
	b = strconv.AppendBool(b, p.Likely)
	b = append(b, `,"serving":`...)
	b = strconv.AppendBool(b, p.Serving)
	b = append(b, `,"reason":`...)
	if p.Serving {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, '"'), p.Why.String()...), '"')
	}
	b = append(b, `,"until":`...)
	b = appendTime(b, p.Until)
	b = append(b, `,"closes_at":`...)
	b = appendTime(b, p.ClosesAt)
	b = append(b, `,"poll_after":`...)
	return append(strconv.AppendFloat(b, client.PollAfter(wire), 'f', 1, 64), '}')
}

const (
	// lineFresh is how long a node caches the answer about a line. HTTP caches may keep it for another second. Clients poll
	// at most once a second.
	lineFresh = 250 * time.Millisecond
	// maxLines limits how many answers about lines a node caches. They take about 4 MB.
	maxLines = 10_000
)

// publicSecond lets HTTP caches keep an answer for one second. Without stale-while-revalidate=0, Varnish would serve it for
// another ten seconds while it revalidates. It must not be modified.
var publicSecond = []string{"public, max-age=1, stale-while-revalidate=0"}

// lines caches the answers of GET /v1/campaigns/{id}/line, which are the same for all users.
type lines struct {
	*core
	reads singleflight.Group
	kept  *lru.Cache[firstcome.CampaignID, lineAnswer]
}

func newLines(c *core) lines {
	kept, err := lru.New[firstcome.CampaignID, lineAnswer](maxLines)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return lines{core: c, kept: kept}
}

// A lineAnswer is a cached answer about a line.
type lineAnswer struct {
	body  []byte
	until time.Time
}

// read answers GET /v1/campaigns/{id}/line.
func (l *lines) read(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	if err := l.existing.meet(r.Context(), c, id); err != nil {
		return err
	}
	body, err := l.fresh(r.Context(), id)
	if err != nil {
		return err
	}
	w.Header()["Cache-Control"] = publicSecond
	writeBody(w, http.StatusOK, body)
	return nil
}

// fresh returns the answer about a line, cached or read. Concurrent callers share one read.
func (l *lines) fresh(ctx context.Context, id firstcome.CampaignID) ([]byte, error) {
	if answer, ok := l.kept.Get(id); ok && time.Now().Before(answer.until) {
		return answer.body, nil
	}
	done := l.reads.DoChan(string(id), func() (any, error) {
		ctx, over := context.WithTimeout(context.WithoutCancel(ctx), readWait)
		defer over()
		body, err := l.body(ctx, id)
		if err == nil {
			l.kept.Add(id, lineAnswer{body, time.Now().Add(lineFresh)})
		}
		return body, err
	})
	select {
	case r := <-done:
		body, _ := r.Val.([]byte)
		return body, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// body reads a line and returns its JSON.
func (l *lines) body(ctx context.Context, id firstcome.CampaignID) ([]byte, error) {
	at, err := l.Places.LineOf(ctx, id)
	if err != nil {
		return nil, err
	}
	line := client.Line{
		CampaignID: string(id), Generation: at.Line.Generation, Serving: at.Line.Serving(), LastTicket: at.Line.LastTicket, Waiting: at.Line.Waiting,
		NextJoinedAt: wire.Time(at.Joined), Pace: wirePace(at.Campaign.Pace), Waitlist: at.Campaign.Waitlist, State: at.Campaign.StateAt(at.Now, at.InForce), Ended: []client.EndedLine{}, ServerTime: client.Time{Time: at.Now},
	}
	if through := at.LikelyThrough(); through < math.MaxInt64 {
		line.LikelyThrough = &through
	}
	for _, p := range at.Past {
		line.Ended = append(line.Ended, client.EndedLine{
			Generation: p.Generation, Reason: p.Reason, EndedAt: client.Time{Time: p.EndedAt}, LastTicketServed: p.ServedThrough,
		})
	}
	return json.Marshal(line)
}
