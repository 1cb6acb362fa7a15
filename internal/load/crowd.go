package load

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
)

// A crowd is the users in line. Each follows their own place as a person's app does: they poll the campaign's line at the times that poll_after
// names, and ask for their own claim only when it is their turn.
//
// Each look is a request of its own, as without a CDN: a server must bear that. Timers start the looks, so ten thousand followers are ten thousand
// timers and no goroutines; as many look at once as there are connections. The lateness of looks is measured. With Options.CDN one look a second
// stands for all, as with a cache that obeys max-age: then only joining and asking for one's own claim cost the server anything.
type crowd struct {
	Options
	looks *looker
	may   chan struct{} // a semaphore of looks under way
	busy  sync.WaitGroup

	mu     sync.Mutex // guards what follows, and the followers
	over   bool       // no more looks
	lined  map[uint32]*follower
	inLine int           // followers whose place has not ended
	none   chan struct{} // closed when the line is empty and no more users join
	full   bool          // no more users join
	stats  lookStats
}

// A follower is a user in line, and their result.
type follower struct {
	user           uint32
	sent, received time.Time // of the claim that joined the line
	told           told
	place          client.Place // as last known to them
	leaves         int          // number of the look at which they leave the line; 0 if never
	looked         int
	due            time.Time // of the next look
	failures       time.Duration
	missing        bool // their claim was missing although no generation had ended: they look again
	timer          *time.Timer

	end    audit.End // empty while they are in line
	ended  time.Time
	asked  time.Time // when the request whose answer told them was sent
	answer Answer    // with the coupon, if they got one
}

// told is what a user was told on joining.
type told struct {
	ahead int64
	eta   *int64 // seconds; nil if unknown
}

// lookStats counts the crowd's requests.
type lookStats struct {
	took, late *durations
	trouble    map[string]int64
}

const (
	firstFailure   = 100 * time.Millisecond
	longestFailure = 2 * time.Second
	// stale is a little more than the age of a cache's answer, up to a second.
	stale = 1500 * time.Millisecond
	// leavesBefore is the number of looks during which users leave.
	leavesBefore = 3
)

func newCrowd(c Options, f *fleet) *crowd {
	return &crowd{
		Options: c, looks: &looker{Options: c, fleet: f}, may: make(chan struct{}, c.Concurrency),
		lined: map[uint32]*follower{}, none: make(chan struct{}),
		stats: lookStats{took: newDurations(), late: newDurations(), trouble: map[string]int64{}},
	}
}

// worker returns an Ask. A user who is told to wait joins the crowd.
func (c *crowd) worker(ask Ask) Ask {
	return func(user int) Answer {
		sent := time.Now()
		answer := ask(user)
		if answer.Outcome == firstcome.Waiting {
			c.join(&follower{user: uint32(user), sent: sent, received: time.Now(), place: *answer.Place})
		}
		return answer
	}
}

// join adds a follower. A user who claims again while in line already has one.
func (c *crowd) join(f *follower) {
	f.told = told{ahead: f.place.Ahead, eta: f.place.ETASeconds}
	random := rand.New(rand.NewPCG(c.Seed, uint64(f.user)))
	if random.Float64() < c.Leave {
		f.leaves = 1 + random.IntN(leavesBefore)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lined[f.user] != nil {
		return
	}
	c.lined[f.user] = f
	c.inLine++
	c.later(f, pollAfter(f.place))
}

func pollAfter(p client.Place) time.Duration {
	return time.Duration(p.PollAfter * float64(time.Second))
}

// later schedules a follower's next look. mu is held.
func (c *crowd) later(f *follower, wait time.Duration) {
	if c.over {
		return
	}
	f.due = time.Now().Add(wait)
	f.timer = time.AfterFunc(wait, func() { c.look(f) })
}

// begin reports whether a look may begin.
func (c *crowd) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.busy.Add(1)
	}
	return !c.over
}

// look makes one look for a follower.
func (c *crowd) look(f *follower) {
	if !c.begin() {
		return
	}
	defer c.busy.Done()
	c.may <- struct{}{}
	sent := time.Now()
	seen := c.ask(f)
	<-c.may
	c.mu.Lock()
	defer c.mu.Unlock()
	f.looked++
	c.stats.late.add(sent.Sub(f.due))
	c.stats.took.add(time.Since(sent))
	c.note(f, seen, sent)
}

// A sight is the result of a look: an end, a place, or an error.
type sight struct {
	end     audit.End
	answer  Answer
	place   client.Place
	missing bool // the claim is missing, for an unknown reason
	trouble string
	after   time.Duration // the server's Retry-After
}

// ask makes the request that a person's app would make now.
func (c *crowd) ask(f *follower) sight {
	if f.leaves == f.looked+1 {
		if seen, left := c.looks.leave(f); left || seen.trouble != "" {
			return seen
		}
		return c.own(f)
	}
	line, failed := c.looks.line(f.missing)
	switch {
	case failed.trouble != "":
		return failed
	case line.Generation == f.place.Generation && line.Serving <= f.place.Ticket && !f.missing:
		return sight{place: f.place.Moved(line)}
	}
	if end := endOf(f.place, line); end != "" {
		return sight{end: end}
	}
	if f.missing {
		return sight{end: audit.Vanished}
	}
	return c.own(f)
}

// own asks for the follower's own claim, and if it is missing, for the reason. If no reason is found, the follower looks again, because a cache may
// be out of date.
func (c *crowd) own(f *follower) sight {
	status, seen := c.looks.claim(f)
	if status != http.StatusNotFound {
		return seen
	}
	line, failed := c.looks.line(true)
	if failed.trouble != "" {
		return failed
	}
	end := endOf(f.place, line)
	return sight{end: end, missing: end == ""}
}

// endOf returns the outcome with which the generation of a place ended before its turn came, or "". The line shows that to everyone, so no user must
// ask for their own claim when all are sent away.
func endOf(p client.Place, line client.Line) audit.End {
	for _, e := range line.Ended {
		if e.Generation == p.Generation && e.LastTicketServed < p.Ticket {
			return audit.End(e.Reason)
		}
	}
	return ""
}

// note notes a follower's sight, and schedules their next look unless the place has ended. mu is held.
func (c *crowd) note(f *follower, seen sight, sent time.Time) {
	switch {
	case seen.trouble != "":
		c.stats.trouble[seen.trouble]++
		f.failures = min(max(firstFailure, 2*f.failures), longestFailure)
		f.looked-- // so that a user who must leave still does
		c.later(f, seen.after+rand.N(f.failures))
		return
	case seen.missing:
		f.missing = true
		c.later(f, stale)
		return
	case seen.end != "":
		f.end, f.answer, f.asked, f.ended = seen.end, seen.answer, sent, time.Now()
		c.inLine--
		c.check()
		return
	}
	f.failures, f.place = 0, seen.place
	c.later(f, pollAfter(f.place))
}

// check ends the crowd if the line is empty and no more users join. mu is held.
func (c *crowd) check() {
	if c.full && c.inLine == 0 {
		close(c.none)
	}
}

// waiting returns how many followers are in line.
func (c *crowd) waiting() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.inLine)
}

// watch waits for the crowd's end, and reports how many of the claims have come to their end.
func (c *crowd) watch(ctx context.Context, report func(done, total int64), claims int64) []*follower {
	over := make(chan struct{})
	var reporting sync.WaitGroup
	if report != nil {
		reporting.Go(func() {
			ticks := time.NewTicker(reportEvery)
			defer ticks.Stop()
			for {
				report(max(0, claims-c.waiting()), claims)
				select {
				case <-ticks.C:
				case <-over:
					return
				}
			}
		})
	}
	all := c.wait(ctx)
	close(over)
	reporting.Wait()
	if report != nil {
		report(max(0, claims-c.waiting()), claims)
	}
	return all
}

// wait returns all users who joined, in the order of their tickets, once each place has ended or, at the latest, when ctx ends. No more users
// join.
func (c *crowd) wait(ctx context.Context) []*follower {
	c.mu.Lock()
	c.full = true
	c.check()
	c.mu.Unlock()
	select {
	case <-c.none:
	case <-ctx.Done():
	}
	c.mu.Lock()
	c.over = true
	all := make([]*follower, 0, len(c.lined))
	for _, f := range c.lined {
		f.timer.Stop()
		all = append(all, f)
	}
	c.mu.Unlock()
	c.busy.Wait()
	slices.SortFunc(all, func(x, y *follower) int {
		return cmp.Or(cmp.Compare(x.place.Generation, y.place.Generation), cmp.Compare(x.place.Ticket, y.place.Ticket), cmp.Compare(x.user, y.user))
	})
	for _, f := range all {
		f.end = cmp.Or(f.end, audit.InLine)
	}
	return all
}
