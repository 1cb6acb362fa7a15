//go:build linux && !check

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// early records what a crowd was told before the opening.
type early struct {
	mu      sync.Mutex // guards what follows
	refused int
	waits   map[string]int // by Retry-After
	wrong   []string
	calls   float64 // of the gate meanwhile
}

// note keeps a refusal that was received at an instant, from which its Retry-After counts:
// the gate may have decided long after the claim was sent. It names one of the openings.
func (e *early) note(answer *http.Response, text []byte, received time.Time, openings []time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused++
	header := answer.Header.Get("Retry-After")
	e.waits[header]++
	var said client.Problem
	if err := json.Unmarshal(text, &said); err != nil || answer.StatusCode != http.StatusForbidden ||
		said.Outcome != firstcome.NotOpen.String() || said.OpensAt == nil || !slices.ContainsFunc(openings, said.OpensAt.Equal) {
		e.wrong = append(e.wrong, answer.Status+string(text))
		return
	}
	if seconds, err := strconv.Atoi(header); err != nil || received.Add(time.Duration(seconds)*time.Second).Before(said.OpensAt.Time) {
		e.wrong = append(e.wrong, fmt.Sprintf("%v before the opening: come back in %q seconds", said.OpensAt.Sub(received), header))
	}
}

// comeEarly has clients ask nodes in turn without pause until so many were refused, and wants that the gate got few calls: ten a second of
// each node, which may repeat an answer for a fifth of a second, and some of each client before a node knows that.
func (c *crowd) comeEarly(t *testing.T, nodes []*process, opens time.Time, clients, refusals int) *early {
	t.Helper()
	told := &early{waits: map[string]int{}}
	for _, p := range nodes {
		c.untilRepeated(t, p, told, opens)
	}
	began, before := time.Now(), callsOfTheGate(nodes)
	c.askAtOnce(nodes, clients, func(p *process) bool {
		if !c.askEarly(p, told, opens) {
			t.Error("a claim before the opening was not refused")
			return false
		}
		return told.count() < refusals
	})
	told.calls = callsOfTheGate(nodes) - before
	if most := 10*time.Since(began).Seconds()*float64(len(nodes)) + 2*float64(clients); told.calls > most {
		t.Errorf("the gate was called %v times for %d refusals, want at most %v", told.calls, refusals, most)
	}
	for _, wrong := range told.wrong {
		t.Error(wrong)
	}
	if len(told.waits) < 2 { // of three that come up: two seconds are the spread
		t.Errorf("everybody was told to come back at once: %v", told.waits)
	}
	return told
}

// awaitOpening has clients ask nodes in turn without pause until the campaign opens, and wants that nobody is issued a coupon early. A node
// may repeat for a moment when it would have opened before.
func (c *crowd) awaitOpening(t *testing.T, nodes []*process, opens, before time.Time, clients int) {
	t.Helper()
	told := &early{waits: map[string]int{}}
	c.askAtOnce(nodes, clients, func(p *process) bool {
		if c.askEarly(p, told, opens, before) {
			return true
		}
		if now := time.Now(); now.Before(opens) {
			t.Errorf("a coupon was issued %v early", opens.Sub(now))
		}
		return false
	})
	for _, wrong := range told.wrong {
		t.Error(wrong)
	}
}

// askAtOnce has each client ask one of the nodes until it is told not to go on.
func (c *crowd) askAtOnce(nodes []*process, clients int, ask func(*process) bool) {
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			for ask(nodes[n%len(nodes)]) {
			}
		})
	}
	all.Wait()
}

func (e *early) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refused
}

// askEarly has a new user claim, and tells whether the campaign is not open yet.
func (c *crowd) askEarly(p *process, told *early, openings ...time.Time) bool {
	answer, text := c.post(p, c.user())
	received := time.Now()
	if answer.StatusCode != http.StatusForbidden {
		return false // the verdict wants that it was issued
	}
	told.note(answer, text, received, openings)
	return true
}

// untilRepeated asks a node until it repeats what the gate said. For that it reads who holds
// a coupon, the first time over connections that it has to make: on a machine with other work
// the gate may decide hundreds of batches meanwhile, over connections that are there.
func (c *crowd) untilRepeated(t *testing.T, p *process, told *early, opens time.Time) {
	t.Helper()
	waitFor(t, "a refusal to be repeated", func() bool {
		if !c.askEarly(p, told, opens) {
			t.Fatal("it opened before a refusal was repeated")
		}
		return p.metric("firstcome_cached_answers_total") > 0
	})
}

// callsOfTheGate returns how often nodes called the gate.
func callsOfTheGate(nodes []*process) (sum float64) {
	for _, p := range nodes {
		sum += p.metric("firstcome_batch_claims_count")
	}
	return sum
}

// openAt makes a campaign that opens at an instant.
func (p *process) openAt(id string, quantity int64, opens time.Time) {
	p.t.Helper()
	_, err := p.calls.CreateCampaign(p.t.Context(), client.NewCampaign{ID: id, Name: id, Quantity: &quantity, OpensAt: &client.Time{Time: opens}})
	if err != nil {
		p.t.Fatal(err)
	}
}

// rush has so many users claim, forty of them at once, and each attempts times at once at nodes in turn. Every claim has an answer.
func (c *crowd) rush(t *testing.T, nodes []*process, users, attempts int) {
	t.Helper()
	const clients = 40 // six times as many are fewer than the connections that a client.Client keeps
	work := make(chan string)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for user := range work {
				var tries sync.WaitGroup
				for n := range attempts {
					tries.Go(func() {
						p := nodes[n%len(nodes)]
						if _, err := c.claim(t.Context(), p.calls, user); err != nil {
							t.Errorf("%s claims: %v", user, err)
						}
					})
				}
				tries.Wait()
			}
		})
	}
	for range users {
		work <- c.user()
	}
	close(work)
	all.Wait()
}
