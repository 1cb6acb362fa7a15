package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/designs/verdict"
	"github.com/firstcome/firstcome/internal/load"
)

// A crowd sends the requests of the users of a run. Each of the rival's processes gets an equal share of the connections. After a request without an
// answer, a connection goes to the next process.
type crowd struct {
	rival  *rival
	prefix string    // of the users' ids
	start  time.Time // all times are relative to it
	client *fasthttp.Client

	mu      sync.Mutex // guards the fields below
	said    []said
	next    int // process of the next worker
	known   int // number of requests with an answer
	tenth   int // number of answers at which reached is closed
	reached chan struct{}
}

// A said is a request with its answer.
type said struct {
	user           int
	sent, received time.Duration
	load.Answer
}

func newCrowd(r *rival, prefix string, t trial) *crowd {
	connections := t.connections
	return &crowd{rival: r, prefix: prefix, tenth: t.people / 10, reached: make(chan struct{}), client: &fasthttp.Client{
		MaxConnsPerHost: 2 * connections, MaxIdemponentCallAttempts: 1, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		Dial: func(address string) (net.Conn, error) { return net.DialTimeout("tcp", address, 10*time.Second) },
	}}
}

func (c *crowd) id(user int) string { return fmt.Sprint(c.prefix, user) }

// come sends the users' requests by a plan, and returns the load generator's figures.
func (c *crowd) come(ctx context.Context, plan load.Options) *load.Result {
	return load.Drive(ctx, plan, c.worker)
}

// worker returns a function that sends requests on one connection, to one process and then to the next if a request has no answer.
func (c *crowd) worker() load.Ask {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.next
	c.next++
	var request fasthttp.Request
	var response fasthttp.Response
	return func(user int) load.Answer {
		p := c.rival.processes[at%len(c.rival.processes)]
		request.Reset()
		c.rival.write(&request, p.base, c.id(user))
		one := said{user: user, sent: time.Since(c.start)}
		if err := c.client.Do(&request, &response); err != nil {
			one.Trouble = err.Error()
		} else {
			one.Answer = c.rival.read(response.StatusCode(), response.Body())
		}
		one.received = time.Since(c.start)
		if one.Outcome == 0 && one.Trouble != conflict {
			at++
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said = append(c.said, one)
		if one.Outcome != 0 {
			if c.known++; c.known == c.tenth {
				close(c.reached)
			}
		}
		return one.Answer
	}
}

// users returns what the answers told each user. open has the indexes of the users who must still ask for their result.
func (c *crowd) users() (users []verdict.User, open []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	index := map[int]int{}
	for _, one := range c.said {
		n, ok := index[one.user]
		if !ok {
			n = len(users)
			index[one.user] = n
			users = append(users, verdict.User{ID: c.id(one.user), Sent: one.sent, Answered: verdict.Never, Settled: verdict.Never})
		}
		u := &users[n]
		u.Sent = min(u.Sent, one.sent)
		if one.Trouble == conflict && u.Told == verdict.Nothing {
			u.Told, u.Answered = verdict.Refused, min(u.Answered, one.received)
		}
		if one.Outcome == 0 {
			continue
		}
		u.Answered = min(u.Answered, one.received)
		told := map[firstcome.Outcome]verdict.Told{firstcome.Issued: verdict.Issued, firstcome.SoldOut: verdict.SoldOut}[one.Outcome]
		if one.Outcome == firstcome.AlreadyIssued && c.rival.look == nil { // firstcome's answer has the coupon
			told = verdict.Issued
		}
		if told == verdict.Issued && u.Told != verdict.Issued || told == verdict.SoldOut && (u.Told == verdict.Nothing || u.Told == verdict.Refused) {
			u.Told, u.Settled, u.Place = told, one.received, one.Number
		}
	}
	for n := range users {
		if (users[n].Told == verdict.Nothing || users[n].Told == verdict.Refused) && users[n].Answered != verdict.Never && c.rival.look != nil {
			open = append(open, n)
		}
	}
	return users, open
}

// lookers is how many users ask for their result at once.
const lookers = 16

// settle asks for the results of the open users, after the load has ended. So these requests slow no design down.
func (c *crowd) settle(ctx context.Context, users []verdict.User, open []int) {
	var all sync.WaitGroup
	next := make(chan int)
	for range lookers {
		all.Go(func() {
			var request fasthttp.Request
			var response fasthttp.Response
			for n := range next {
				u := &users[n]
				for _, p := range c.rival.processes {
					request.Reset()
					c.rival.look(&request, p.base, u.ID)
					if c.client.Do(&request, &response) != nil {
						continue
					}
					found := c.rival.read(response.StatusCode(), response.Body()).Outcome
					switch {
					case found == firstcome.Issued:
						u.Told = verdict.Issued // judge takes the time from the rows
					case found == firstcome.SoldOut && u.Told != verdict.Refused:
						u.Told, u.Settled = verdict.SoldOut, u.Answered
					}
					if found != 0 {
						break
					}
				}
			}
		})
	}
	for _, n := range open {
		if ctx.Err() != nil {
			break
		}
		next <- n
	}
	close(next)
	all.Wait()
}

// troubles returns how many requests had no answer, by reason.
func (c *crowd) troubles() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[string]int{}
	for _, one := range c.said {
		if one.Trouble != "" {
			why, _, _ := strings.Cut(one.Trouble, ":")
			counts[why]++
		}
	}
	return counts
}
