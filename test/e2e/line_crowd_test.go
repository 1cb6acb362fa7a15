//go:build linux && !check

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/stage"
)

// An entrance is what the people in front of a fleet reach: a load balancer that gives one request after the other to the next
// node, dead or alive, lets a few follow their place by a stream, and a cache that keeps a line for as long as its answer says.
type entrance struct {
	f       *fleet
	turn    atomic.Int64
	nodes   *http.Transport
	streams atomic.Int64 // which take a connection each

	mu    sync.Mutex // guards what follows, also while the line is read
	line  []byte
	until time.Time
}

// maxStreams is how many streams an entrance lets through. To everybody else it says 503, so they read the line.
const maxStreams = 100

// newEntrance returns a client of whoever is behind it.
func newEntrance(f *fleet) *client.Client {
	e := &entrance{f: f, nodes: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64 + maxStreams, ResponseHeaderTimeout: patience}}
	f.t.Cleanup(e.nodes.CloseIdleConnections)
	return client.New("http://fleet", "").WithHTTP(&http.Client{Transport: e})
}

// RoundTrip answers a request.
func (e *entrance) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/events") {
		return e.stream(r)
	}
	if !strings.HasSuffix(r.URL.Path, "/line") {
		return e.next(r)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Now().After(e.until) {
		answer, err := e.next(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			return answer, err
		}
		e.line, err = io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			return nil, err
		}
		if kept := answer.Header.Get("Cache-Control"); kept != "public, max-age=1, stale-while-revalidate=0" {
			return nil, fmt.Errorf("a line may be kept for %q", kept)
		}
		e.until = time.Now().Add(time.Second)
	}
	return says(r, http.StatusOK, e.line), nil
}

// says is an answer of the entrance itself.
func says(r *http.Request, status int, body []byte) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// stream lets a stream through, if there is room.
func (e *entrance) stream(r *http.Request) (*http.Response, error) {
	if e.streams.Add(1) > maxStreams {
		e.streams.Add(-1)
		return says(r, http.StatusServiceUnavailable, []byte(`{}`)), nil
	}
	context.AfterFunc(r.Context(), func() { e.streams.Add(-1) }) // a follower ends the context of a stream with it
	return e.next(r)
}

// next sends a request to the next node. One that reads and reaches nobody, because the node was killed, goes to the one behind it.
func (e *entrance) next(r *http.Request) (*http.Response, error) {
	for try := 0; ; try++ {
		sent := r.Clone(r.Context())
		sent.Host = e.f.node(int(e.turn.Add(1))).address()
		sent.URL.Host = sent.Host
		answer, err := e.nodes.RoundTrip(sent)
		var refused *net.OpError
		if r.Method != http.MethodGet || !errors.As(err, &refused) || refused.Op != "dial" || try == 100 {
			return answer, err
		}
		<-time.After(50 * time.Millisecond)
	}
}

// A visitor is somebody who claims, and follows their place to its end.
type visitor struct {
	user           string
	sent, received time.Duration // of the first claim: when it was sent, and its answer known
	ticket         int64         // 0: never told
	outcome        string        // the last one, or left
	coupon         *client.Coupon
}

// left is the outcome of a visitor who left the line.
const left = "left"

// A lineCrowd is many visitors of one campaign with a line, who reach it through an entrance.
type lineCrowd struct {
	t        *testing.T
	calls    *client.Client
	campaign string
	start    time.Time
	all      []visitor
	anew     bool         // the gate is made anew, of the line's log: it goes on in other generations, and numbers are lost
	others   int64        // who have tickets, too
	joined   atomic.Int64 // who have heard what became of their first claim
	ended    atomic.Int64 // who have heard what became of them in the end
	done     sync.WaitGroup
}

// come has so many visitors come, all at once.
func come(f *fleet, campaign string, visitors int) *lineCrowd {
	return (&lineCrowd{t: f.t, calls: newEntrance(f), campaign: campaign, all: make([]visitor, visitors)}).come()
}

// comeToLose is come where the gate will be made anew.
func comeToLose(f *fleet, campaign string, visitors int) *lineCrowd {
	return (&lineCrowd{t: f.t, calls: newEntrance(f), campaign: campaign, all: make([]visitor, visitors), anew: true}).come()
}

func (c *lineCrowd) come() *lineCrowd {
	c.start = time.Now()
	c.t.Cleanup(c.done.Wait)
	for n := range c.all {
		v := &c.all[n]
		v.user = fmt.Sprint("user-", n+1)
		c.done.Go(func() {
			defer c.ended.Add(1)
			if err := c.visit(v, n); err != nil && c.t.Context().Err() == nil { // a test that has failed does not hear it of each
				c.t.Errorf("%s, with ticket %d, ends with: %v", v.user, v.ticket, err)
			}
		})
	}
	return c
}

// visit claims until it is known what of, and follows. One in ten claims again meanwhile, one in twenty leaves.
func (c *lineCrowd) visit(v *visitor, n int) error {
	ctx := c.t.Context()
	v.sent = time.Since(c.start)
	answer, err := c.calls.ClaimUntilKnown(ctx, c.campaign, v.user)
	v.received = time.Since(c.start)
	c.joined.Add(1)
	if err == nil && answer.Place != nil {
		v.ticket = answer.Ticket
		answer, err = c.wait(ctx, v, n, *answer.Place)
	}
	if err == nil {
		v.outcome, v.coupon = answer.Outcome, answer.Coupon
	}
	return err
}

// wait waits in line.
func (c *lineCrowd) wait(ctx context.Context, v *visitor, n int, at client.Place) (client.Answer, error) {
	if n%10 == 0 {
		again, err := c.calls.ClaimUntilKnown(ctx, c.campaign, v.user)
		if err != nil || again.Place == nil {
			return again, err
		}
		if again.Ticket != at.Ticket || again.Generation != at.Generation && !c.anew {
			return again, fmt.Errorf("the claim that is repeated has ticket %d.%d", again.Generation, again.Ticket)
		}
	}
	if n%20 == 1 {
		if gone, err := c.leave(ctx, v, at); gone || err != nil {
			return client.Answer{Outcome: left}, err
		}
	}
	return c.calls.Follow(ctx, c.campaign, v.user, at, nil)
}

// leave leaves the line until it is known whether that came in time.
func (c *lineCrowd) leave(ctx context.Context, v *visitor, at client.Place) (gone bool, err error) {
	for {
		err = c.calls.Leave(ctx, c.campaign, v.user)
		switch p := isProblem(err); {
		case err == nil:
			return true, nil
		case p != nil && p.Status == http.StatusConflict:
			return false, nil
		case p != nil && p.Status == http.StatusNotFound && c.anew: // the log says that they left, who heard 503
			return true, nil
		case p != nil && p.Status < http.StatusInternalServerError:
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// verdict waits until everybody knows, and holds what they know against the ledger, which has coupons without a void, and
// against each other. Of a gate that was made anew, everybody has the ticket that they were told, and numbers may be lost.
func (c *lineCrowd) verdict() (coupons []client.Coupon) {
	c.t.Helper()
	c.awaitEnds()
	of := map[string]client.Coupon{}
	stage.Must(c.t, c.calls.Coupons(c.t.Context(), c.campaign, true, func(k client.Coupon) error {
		coupons = append(coupons, k)
		of[k.UserID] = k
		return nil
	}))
	last := int64(0)
	for _, k := range coupons {
		next := k.Number == last+1 || c.anew && k.Number > last
		if last = k.Number; !next || k.State != "in_force" || k.Ticket == nil || k.Generation == nil {
			c.t.Fatalf("a coupon that should be the next is %+v", k)
		}
	}
	outcomes := map[string]int{}
	for n := range c.all {
		v := &c.all[n]
		outcomes[v.outcome]++
		kept, holds := of[v.user]
		told := v.coupon != nil
		if holds && v.ticket == 0 {
			v.ticket = *kept.Ticket // the claim whose answer was lost has it
		}
		switch {
		case told != holds, told && (v.coupon.Number != kept.Number || v.coupon.Code != kept.Code || *kept.Ticket != v.ticket || *kept.Generation != 1 && !c.anew),
			!told && v.outcome != left && v.outcome != client.SoldOut:
			c.t.Errorf("%s, with ticket %d, is told %s in the end, %+v; the ledger has number %d", v.user, v.ticket, v.outcome, v.coupon, kept.Number)
		}
	}
	c.t.Logf("%d visitors: %v", len(c.all), outcomes)
	c.inOrder(of)
	return coupons
}

// awaitJoined waits until so many people have heard what became of their first claim. It fails if a minute passes in which nobody new hears: for
// all of a crowd of thousands a busy machine takes longer.
func (c *lineCrowd) awaitJoined(t *testing.T, want int) {
	t.Helper()
	for now := c.joined.Load(); now < int64(want); now = c.joined.Load() {
		waitFor(t, "one more of the crowd", func() bool { return c.joined.Load() > now })
	}
}

// awaitEnds waits until all visitors know, as long as there are more and more of them.
func (c *lineCrowd) awaitEnds() {
	c.t.Helper()
	for now := c.ended.Load(); now < int64(len(c.all)); now = c.ended.Load() {
		waitFor(c.t, "another visitor who knows", func() bool { return c.ended.Load() > now })
	}
	c.done.Wait()
}

// inOrder wants that tickets were given without a gap in the order of the claims, and that numbers follow them exactly. A gate that was made anew
// has gaps, of who was never told. Its numbers follow within a generation: who was served and not recorded is served again, with the same ticket.
func (c *lineCrowd) inOrder(of map[string]client.Coupon) {
	c.t.Helper()
	var told []*visitor
	for n := range c.all {
		if v := &c.all[n]; v.ticket > 0 {
			told = append(told, v)
		}
	}
	slices.SortFunc(told, func(a, b *visitor) int { return int(a.ticket - b.ticket) })
	number, unknown := map[int64]int64{}, int64(len(c.all)-len(told))+c.others // the last number of each generation
	for n, v := range told {
		if gap := v.ticket - int64(n+1); gap < 0 || gap > unknown && !c.anew {
			c.t.Fatalf("%s has ticket %d, and %d visitors have one before it, of %d who were told", v.user, v.ticket, n, len(told))
		}
		k, holds := of[v.user]
		if !holds {
			continue
		}
		if before := number[*k.Generation]; k.Number <= before {
			c.t.Errorf("ticket %d has number %d, behind number %d", v.ticket, k.Number, before)
		}
		number[*k.Generation] = k.Number
	}
	first := time.Duration(1<<63 - 1) // when somebody behind was answered
	for _, v := range slices.Backward(told) {
		if first < v.sent {
			c.t.Errorf("%s has ticket %d, and claimed after somebody behind was answered", v.user, v.ticket)
		}
		first = min(first, v.received)
	}
}
