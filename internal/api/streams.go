package api

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/internal/ledger"
)

const (
	// defaultStreams is the default Options.MaxStreams.
	defaultStreams = 10_000
	// streamsOfUser is how many streams a user may have per campaign, for a phone and some tabs. Another one ends the oldest.
	streamsOfUser = 4
	// followEvery is the default Options.FollowEvery. With 10,000 streams to write to each time, a changed place is sent
	// within a second.
	followEvery = 750 * time.Millisecond
	// heartbeat is the longest silence of a stream. It is below the time-outs of common proxies.
	heartbeat = 15 * time.Second
	// A client reconnects after firstRetry to twice firstRetry.
	firstRetry = 2 * time.Second
	// A stream ends after half of longestStream to longestStream, or when its token expires. A client that reconnects is
	// authenticated again, and may reach a node with fewer streams.
	longestStream = 30 * time.Minute
	// mostLines and mostAnswers are how many lines and claims are read for streams at once. mostOpenings is how many new
	// streams read their first places at once. These reads share connections with the reads of API keys. database/sql does
	// not serve waiters in order, so without these limits a crowd could starve the keys.
	mostLines, mostAnswers, mostOpenings = 2, 128, 64
	// After an error, a claim is read again after about firstAsk. The wait doubles each time, up to longestAsk.
	firstAsk, longestAsk = 250 * time.Millisecond, 5 * time.Second
)

// streams serves the streams on which users follow their places. One goroutine, Run, writes to all streams. It has the line
// of each campaign read once for all its streams, and a claim only when its ticket was served or its generation ended. A
// write never blocks: a client that does not read is dropped.
//
//	                          the ticket was served, or its generation has ended
//	joins → sent each change ─────────────────────────────────────────────────────────▶ claim read → outcome → closed
//	            ▲                             still in line                               │
//	            └─────────────────────────────────────────────────────────────────────────┘
type streams struct {
	*core
	claims                          *claims
	open, dropped, refused, entered atomic.Int64
	openings                        chan struct{} // one element per stream that is reading its first place
	addresses                       auth.Room     // by address, for streams with users' own tokens

	joins   chan *follower
	lines   chan lineRead
	answers chan answerRead

	// Only Run uses the fields below.
	campaigns map[firstcome.CampaignID]*campaignStreams
	waiting   []*follower // their claims must be read
	asked     int         // how many claims are being read
	reads     chan struct{}
	reading   sync.WaitGroup
	buffer    []byte
}

// campaignStreams has the streams of a campaign.
type campaignStreams struct {
	followers map[*follower]struct{}
	of        map[firstcome.UserID][]*follower // the same streams by user
	reading   bool
}

// A follower is one stream.
type follower struct {
	id     firstcome.CampaignID
	user   firstcome.UserID
	caller auth.Caller
	key    string // id of the API key that opened it, or empty if none
	addr   string // the client's address, or empty if addresses are not limited
	nth    int64  // its position in the order of opening
	to     sink
	place  firstcome.Place // as last sent
	until  time.Time       // when the stream must end
	told   time.Time       // when it was last written to
	asking bool            // its claim is being read, or is in waiting
	again  time.Time       // its claim must not be read before
	fails  time.Duration   // the wait after the next error
	closed bool
}

// A sink is the connection of a follower. None of its methods may block.
type sink interface {
	Send(part []byte) error
	Gone() bool
	Close()
}

// A lineRead is the result of reading a line.
type lineRead struct {
	id    firstcome.CampaignID
	state gate.LineState
	err   error
}

// An answerRead is the result of reading a follower's claim: a place, or the answer that ends the stream.
type answerRead struct {
	of     *follower
	place  firstcome.Place
	answer []byte
	err    error
}

// enter counts a new stream. It returns a 503 if a limit is reached or the node is stopping.
func (t *streams) enter(f *follower) error {
	select {
	case <-t.draining:
		return unavailable(stopping, "this node is stopping. Ask again: another node answers")
	default:
	}
	if f.addr != "" && !t.addresses.Enter(f.addr) {
		t.refused.Add(1)
		return unavailable(busy, "too many streams are open from your network. Read the campaign's line instead, or ask again later")
	}
	if t.open.Add(1) > int64(t.MaxStreams) {
		t.leave(f)
		t.refused.Add(1)
		return unavailable(busy, "too many streams are open on this node. Read the campaign's line instead, or ask again later")
	}
	f.nth = t.entered.Add(1)
	return nil
}

// leave uncounts a stream.
func (t *streams) leave(f *follower) {
	t.open.Add(-1)
	if f.addr != "" {
		t.addresses.Leave(f.addr)
	}
}

// join passes a follower to Run, which writes to it from then on.
func (t *streams) join(f *follower) {
	f.told, f.fails = time.Now(), firstAsk
	select {
	case t.joins <- f:
	case <-t.draining:
		t.sayBye(f)
	}
}

// sayBye ends a stream and tells the client to reconnect.
func (t *streams) sayBye(f *follower) {
	_ = f.to.Send(append(retryField(), ": come back\n\n"...))
	t.leave(f)
	f.to.Close()
}

// run writes to all streams until ctx ends.
func (t *streams) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	t.reads = make(chan struct{}, mostLines)
	tick := time.NewTicker(t.FollowEvery)
	defer tick.Stop()
	defer t.reading.Wait()
	defer cancel()
	draining := t.draining
	for {
		select {
		case <-ctx.Done():
			t.endAll()
			return nil
		case <-draining:
			t.endAll()
			draining = nil
		case f := <-t.joins:
			t.add(f)
		case l := <-t.lines:
			t.tell(l)
		case a := <-t.answers:
			t.conclude(a)
		case now := <-tick.C:
			t.look(ctx, now)
		}
		t.ask(ctx)
	}
}

func (t *streams) add(f *follower) {
	c := t.campaigns[f.id]
	if c == nil {
		c = &campaignStreams{followers: map[*follower]struct{}{}, of: map[firstcome.UserID][]*follower{}}
		t.campaigns[f.id] = c
	}
	theirs := append(c.of[f.user], f)
	c.followers[f], c.of[f.user] = struct{}{}, theirs
	if len(theirs) > streamsOfUser {
		oldest := slices.MinFunc(theirs, func(a, b *follower) int { return cmp.Compare(a.nth, b.nth) })
		t.forget(oldest)
		t.sayBye(oldest)
	}
}

// endAll ends all streams. Their clients reconnect to another node.
func (t *streams) endAll() {
	for _, c := range t.campaigns {
		for f := range c.followers {
			t.forget(f)
			t.sayBye(f)
		}
	}
}

// forget removes a follower. If its claim is being read, the result is discarded.
func (t *streams) forget(f *follower) {
	f.closed = true
	c := t.campaigns[f.id]
	theirs := c.of[f.user]
	if c.of[f.user] = slices.DeleteFunc(theirs, func(one *follower) bool { return one == f }); len(theirs) == 1 {
		delete(c.of, f.user)
	}
	if delete(c.followers, f); len(c.followers) == 0 {
		delete(t.campaigns, f.id)
	}
}

// drop ends a stream without telling the client to reconnect.
func (t *streams) drop(f *follower) {
	t.forget(f)
	t.leave(f)
	f.to.Close()
}

// send writes to a follower. It drops the follower after an error, such as a client that does not read.
func (t *streams) send(f *follower, part []byte, now time.Time) {
	f.told = now
	switch err := f.to.Send(part); {
	case err == nil:
		return
	case errors.Is(err, httpd.ErrSlow):
		t.dropped.Add(1)
	}
	t.drop(f)
}

// look ends streams that are due, sends heartbeats, and starts to read the lines.
func (t *streams) look(ctx context.Context, now time.Time) {
	for id, c := range t.campaigns {
		for f := range c.followers {
			switch {
			case f.to.Gone():
				t.drop(f)
			case !now.Before(f.until), !t.isGood(f.key):
				t.forget(f)
				t.sayBye(f)
			case now.Sub(f.told) >= heartbeat:
				t.send(f, []byte(": here\n\n"), now)
			}
		}
		if !c.reading && len(c.followers) > 0 {
			c.reading = true
			t.reading.Go(func() { t.read(ctx, id) })
		}
	}
}

// isGood reports whether a stream's key is still valid. Otherwise the holder of a revoked key would receive places for up to
// longestStream. A stream without a key is good.
func (t *streams) isGood(key string) bool {
	if key == "" {
		return true
	}
	_, good := t.Auth.Key(key)
	return good
}

// read reads a line for all its followers.
func (t *streams) read(ctx context.Context, id firstcome.CampaignID) {
	r := lineRead{id: id}
	select {
	case t.reads <- struct{}{}:
		bounded, over := context.WithTimeout(ctx, readWait)
		r.state, r.err = t.Places.LineOf(bounded, id)
		over()
		<-t.reads
	case <-ctx.Done():
		return
	}
	select {
	case t.lines <- r:
	case <-ctx.Done():
	}
}

// tell sends changed places to the followers of a line. It adds the followers whose place has ended to waiting.
func (t *streams) tell(r lineRead) {
	c := t.campaigns[r.id]
	if c == nil {
		return
	}
	c.reading = false
	if r.err != nil {
		t.Observer.Warn("a waiting line was not read for those who follow it", "campaign", r.id, "err", r.err)
		return
	}
	now := time.Now()
	for f := range c.followers {
		switch {
		case f.asking || now.Before(f.again):
		case f.place.Generation != r.state.Line.Generation || f.place.Ticket < r.state.Line.Serving():
			f.asking = true
			t.waiting = append(t.waiting, f)
		default:
			t.move(f, r.state.Place(f.place.Ticket), now)
		}
	}
}

// move sends a follower its place if it changed. It does not send a place of which only the ETA changed: clients count down
// themselves, and each user who leaves changes the ETA of all later tickets a little.
func (t *streams) move(f *follower, to firstcome.Place, now time.Time) {
	was := f.place
	was.Log = to.Log
	if !to.Serving || was.ETA >= 0 && to.ETA >= 0 {
		was.ETA = to.ETA
	}
	if f.place = to; was == to {
		return
	}
	t.buffer = appendPlaceEvent(t.buffer[:0], to)
	t.send(f, t.buffer, now)
}

// ask starts to read the claims of the followers in waiting, up to mostAnswers at once.
func (t *streams) ask(ctx context.Context) {
	for t.asked < mostAnswers && len(t.waiting) > 0 && ctx.Err() == nil {
		f := t.waiting[0]
		t.waiting[0] = nil
		if t.waiting = t.waiting[1:]; f.closed {
			continue
		}
		t.asked++
		of := follower{id: f.id, user: f.user, place: f.place} // only Run uses the other fields
		t.reading.Go(func() {
			a := t.answerOf(ctx, of)
			a.of = f
			select {
			case t.answers <- a:
			case <-ctx.Done():
			}
		})
	}
}

// errGone means that it is no longer known how a place ended.
var errGone = errors.New("it is no longer known how the place ended")

// answerOf reads a follower's claim, or how its place ended.
func (t *streams) answerOf(ctx context.Context, f follower) (a answerRead) {
	ctx, over := context.WithTimeout(ctx, readWait)
	defer over()
	if a.place, a.answer, a.err = t.claims.claimOf(ctx, f.caller, f.id, f.user); !isNone(a.err) {
		return a
	}
	outcome, err := t.claims.became(ctx, f.id, f.user, firstcome.Ticket{Generation: f.place.Generation, Number: f.place.Ticket})
	switch {
	case err != nil:
		return answerRead{err: err}
	case outcome == "":
		return answerRead{err: errGone}
	}
	return answerRead{answer: outcomeBody(outcome)}
}

// The outcomes of a place that ended otherwise than with its generation.
const (
	left   = "left"
	voided = "voided"
)

// became returns how a place in line ended: left, voided, or the reason why its generation ended. It returns "" if that is
// unknown. The caller must have found before that the user has neither a coupon nor a ticket, because the generation may end
// in between. became queries the ledger only about tickets that were served or left. So it does not when a generation ends
// and a whole crowd asks at once.
func (s *claims) became(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, at firstcome.Ticket) (outcome string, err error) {
	state, err := s.Places.LineOf(ctx, id)
	if err != nil {
		return "", err
	}
	over := false
	if state.Line.Generation == at.Generation {
		outcome, over = left, true
	}
	for _, p := range state.Past {
		if p.Generation == at.Generation {
			outcome, over = p.Reason, at.Number <= p.ServedThrough
		}
	}
	if !over {
		return outcome, nil
	}
	found, _, err := s.Ledger.Find(ctx, id, ledger.Choice{User: user, Page: ledger.Page{Voided: true}})
	for _, c := range found {
		switch {
		case c.VoidedAt.IsZero():
		case c.Generation == at.Generation && c.Ticket == at.Number:
			return voided, err
		case c.Ticket == 0: // issued directly, either before the user joined or after, which ended the place: unknown which
			outcome = ""
		}
	}
	return outcome, err
}

// conclude handles the result of reading a claim.
func (t *streams) conclude(a answerRead) {
	t.asked--
	f, now := a.of, time.Now()
	switch f.asking = false; {
	case f.closed:
	case errors.Is(a.err, errGone):
		t.forget(f)
		t.sayBye(f)
	case a.err != nil:
		f.again = now.Add(f.fails/2 + rand.N(f.fails))
		f.fails = min(2*f.fails, longestAsk)
	case a.answer == nil:
		f.fails = firstAsk
		t.move(f, a.place, now)
	default:
		t.forget(f)
		if f.to.Send(outcomeEvent(a.answer)) != nil {
			t.dropped.Add(1)
		}
		t.leave(f)
		f.to.Close()
	}
}
