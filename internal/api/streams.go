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
	// defaultStreams is how many streams a node has at once, unless Config.MaxStreams says otherwise.
	defaultStreams = 10_000
	// streamsOfUser is how many streams a user has of a campaign: a phone and some tabs. The next one ends the oldest.
	streamsOfUser = 4
	// followEvery is how often the line of each campaign with streams is read: a place is told in less than a second, at
	// 10,000 writes each time.
	followEvery = 750 * time.Millisecond
	// heartbeat is how long a stream is silent at most: below the time-outs of common proxies.
	heartbeat = 15 * time.Second
	// firstRetry is how long a client waits at least before it comes back, and half of how long at most.
	firstRetry = 2 * time.Second
	// longestStream is how long a stream takes at most, and half of it at least, unless its token expires: who comes back shows
	// that the key is still good, and may find a node with fewer streams.
	longestStream = 30 * time.Minute
	// mostLines and mostAnswers are how many lines and claims are read for streams at once, and mostOpenings how many streams
	// look for their first places at once. All read by the connections that the API keys are read by: database/sql lets any of
	// those who wait go first, so a crowd would keep the keys from being read.
	mostLines, mostAnswers, mostOpenings = 2, 128, 64
	// A claim whose answer is unknown is asked for again after firstAsk, and then twice as long each time, up to longestAsk.
	firstAsk, longestAsk = 250 * time.Millisecond, 5 * time.Second
)

// streams are the people who follow their places by a stream. One goroutine writes to all: it reads the line of each campaign
// once for everybody, and a claim only when its place is over. A write never waits: who does not read is dropped.
//
//	                           the line is beyond the ticket, or its generation is over
//	joins → told each change ────────────────────────────────────────────────────────▶ asked for → outcome → closed
//	            ▲                             still in line                               │
//	            └─────────────────────────────────────────────────────────────────────────┘
type streams struct {
	*core
	claims                          *claims
	open, dropped, refused, entered atomic.Int64
	openings                        chan struct{} // holds one for each stream that looks for its first place
	addresses                       auth.Room     // of streams of users' own

	joins   chan *follower
	lines   chan lineRead
	answers chan answerRead

	// What follows is Run's alone.
	campaigns map[firstcome.CampaignID]*campaignStreams
	waiting   []*follower // to be asked for
	asked     int         // claims that are being read
	reads     chan struct{}
	reading   sync.WaitGroup
	buffer    []byte
}

// campaignStreams are the streams of a campaign.
type campaignStreams struct {
	followers map[*follower]struct{}
	of        map[firstcome.UserID][]*follower // the same, by their users
	reading   bool
}

// A follower is one stream.
type follower struct {
	id     firstcome.CampaignID
	user   firstcome.UserID
	key    string // the API key that it was asked for with; empty: none
	addr   string // that it was asked for from, or empty if it does not count
	nth    int64  // it was the nth to be let in
	to     sink
	place  firstcome.Place // as it was told last
	until  time.Time       // when the stream ends, whatever happens
	told   time.Time       // when it was last written to
	asking bool            // its claim is being read, or will be
	again  time.Time       // its claim is not read before
	fails  time.Duration   // how long it waits behind the next failure
	closed bool
}

// A sink takes what is sent to a follower. None of its methods waits.
type sink interface {
	Send(part []byte) error
	Gone() bool
	Close()
}

// A lineRead is a line as it was read.
type lineRead struct {
	id    firstcome.CampaignID
	state gate.LineState
	err   error
}

// An answerRead is a follower's claim as it was read: a place, or how it ended.
type answerRead struct {
	of     *follower
	place  firstcome.Place
	answer []byte
	err    error
}

// enter takes room for a stream, or says that there is none.
func (t *streams) enter(f *follower) error {
	select {
	case <-t.draining:
		return unavailable(stopping, "this node is stopping. Ask again: another one answers")
	default:
	}
	if f.addr != "" && !t.addresses.Enter(f.addr) {
		t.refused.Add(1)
		return unavailable(busy, "as many people follow their places from your network as may. Read the campaign's line instead, or ask again later")
	}
	if t.open.Add(1) > int64(t.MaxStreams) {
		t.leave(f)
		t.refused.Add(1)
		return unavailable(busy, "as many people follow their places here as may. Read the campaign's line instead, or ask again later")
	}
	f.nth = t.entered.Add(1)
	return nil
}

// leave gives the room of a stream back.
func (t *streams) leave(f *follower) {
	t.open.Add(-1)
	if f.addr != "" {
		t.addresses.Leave(f.addr)
	}
}

// join has a follower written to.
func (t *streams) join(f *follower) {
	f.told, f.fails = time.Now(), firstAsk
	select {
	case t.joins <- f:
	case <-t.draining:
		t.sayBye(f)
	}
}

// sayBye ends a stream whose client is to come back.
func (t *streams) sayBye(f *follower) {
	_ = f.to.Send(append(appendRetry(nil), ": come back\n\n"...))
	t.leave(f)
	f.to.Close()
}

// run writes to all until ctx ends.
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

// endAll has everybody come back to another node.
func (t *streams) endAll() {
	for _, c := range t.campaigns {
		for f := range c.followers {
			t.forget(f)
			t.sayBye(f)
		}
	}
}

// forget takes a follower out. Its claim, if that is being read, is for nobody.
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

// drop ends a stream at once.
func (t *streams) drop(f *follower) {
	t.forget(f)
	t.leave(f)
	f.to.Close()
}

// send writes to a follower, and drops one that does not read.
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

// look ends what is over, keeps silent streams alive, and reads the lines.
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

// isGood tells whether a key, if any, still opens streams: who shows a revoked one would else hear of a place for half an hour.
func (t *streams) isGood(key string) bool {
	if key == "" {
		return true
	}
	_, good := t.Auth.Key(key)
	return good
}

// read reads a line for all who follow it.
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

// tell tells each follower of a line whose place has changed, and notes whose turn has come.
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
			t.move(f, r.state.Campaign.Place(r.state.Line, f.place.Ticket, r.state.InForce, r.state.Now), now)
		}
	}
}

// move tells a follower a place that has changed. A new ETA alone is not told: the client has a clock, and whenever somebody
// leaves, the ETA of all later tickets changes a little.
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

// ask reads the claims of those whose turn has come.
func (t *streams) ask(ctx context.Context) {
	for t.asked < mostAnswers && len(t.waiting) > 0 && ctx.Err() == nil {
		f := t.waiting[0]
		t.waiting[0] = nil
		if t.waiting = t.waiting[1:]; f.closed {
			continue
		}
		t.asked++
		of := follower{id: f.id, user: f.user, place: f.place} // the rest is Run's alone
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

// errGone says that nobody knows any more what became of a place.
var errGone = errors.New("it is not known any more what became of the place")

// answerOf reads a follower's claim.
func (t *streams) answerOf(ctx context.Context, f follower) (a answerRead) {
	ctx, over := context.WithTimeout(ctx, readWait)
	defer over()
	if a.place, a.answer, a.err = t.claims.claimOf(ctx, f.id, f.user); !isNone(a.err) {
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

// The ends of a place whose user was not sent away with the generation.
const (
	left   = "left"
	voided = "voided"
)

// became returns how a place in line ended whose user was found to have neither a coupon nor a ticket: left, voided, or the reason why its
// generation ended. It returns "" if that is not known. It reads the line after the user was looked for, since the generation may have
// ended in between. It asks the ledger only about tickets that were served or left, and not about a whole crowd that is sent away at once.
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
		case c.Ticket == 0: // issued past the line, which ended the place, or before the user joined: nobody knows
			outcome = ""
		}
	}
	return outcome, err
}

// conclude goes by a claim that was read.
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
		if f.to.Send(appendOutcome(nil, a.answer)) != nil {
			t.dropped.Add(1)
		}
		t.leave(f)
		f.to.Close()
	}
}
