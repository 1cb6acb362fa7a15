//go:build linux

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
}

// note keeps a refusal that was received at an instant, from which its Retry-After counts:
// the gate may have decided long after the claim was sent.
func (e *early) note(answer *http.Response, text []byte, received, opens time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused++
	header := answer.Header.Get("Retry-After")
	e.waits[header]++
	var said client.Problem
	if err := json.Unmarshal(text, &said); err != nil || answer.StatusCode != http.StatusForbidden ||
		said.Outcome != firstcome.NotOpen.String() || said.OpensAt == nil || !said.OpensAt.Equal(opens) {
		e.wrong = append(e.wrong, answer.Status+string(text))
	}
	if seconds, err := strconv.Atoi(header); err != nil || received.Add(time.Duration(seconds)*time.Second).Before(opens) {
		e.wrong = append(e.wrong, fmt.Sprintf("%v before the opening: come back in %q seconds", opens.Sub(received), header))
	}
}

// comeEarly has clients ask nodes in turn without pause until the campaign opens, and wants
// that nobody is issued early. It returns what they were told, how often the nodes called the
// gate by the first answer other than not_open, and how often they may have.
func (c *crowd) comeEarly(t *testing.T, nodes []*process, opens time.Time, clients int) (told *early, calls, most float64) {
	t.Helper()
	told = &early{waits: map[string]int{}}
	for _, p := range nodes {
		c.untilRepeated(t, p, told, opens)
	}
	began, before := time.Now(), callsOfTheGate(nodes)
	gate := make(chan float64, clients)
	var all sync.WaitGroup
	for n := range clients {
		p := nodes[n%len(nodes)]
		all.Go(func() {
			for c.askEarly(p, told, opens) {
			}
			if now := time.Now(); now.Before(opens) {
				t.Errorf("a coupon was issued %v early", opens.Sub(now))
			}
			gate <- callsOfTheGate(nodes)
		})
	}
	all.Wait()
	for _, wrong := range told.wrong {
		t.Error(wrong)
	}
	if len(told.waits) < 2 {
		t.Errorf("everybody was told to come back at once: %v", told.waits)
	}
	// Five a second of each node before the opening, one for each who was issued, and some
	// around the opening, up to which the gate's leases become shorter.
	return told, <-gate - before, 5*opens.Sub(began).Seconds()*float64(len(nodes)) + 2*float64(clients)
}

// askEarly has a new user claim, and tells whether the campaign is not open yet.
func (c *crowd) askEarly(p *process, told *early, opens time.Time) bool {
	answer, text := c.post(p, c.user())
	received := time.Now()
	if answer.StatusCode != http.StatusForbidden {
		return false // the verdict wants that it was issued
	}
	told.note(answer, text, received, opens)
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
		return p.metric("firstcome_repeated_claims_total") > 0
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

// rate has so many users claim, each of them attempts times at once at nodes in turn,
// and returns how many users a second were answered.
func (c *crowd) rate(t *testing.T, nodes []*process, users, attempts int) float64 {
	t.Helper()
	const clients = 40 // six times as many are fewer than the connections that a client.Client keeps
	started := time.Now()
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
	return float64(users) / time.Since(started).Seconds()
}

// notCollapsing has users of one crowd claim once and those of another six times at once,
// in turn, with as many claims in each. So whatever else the machine does, it does to both: a
// round's ratio is of the storm to the calm before and after it, and the median of the rounds
// is the verdict. In a soak there are twice as many users.
func notCollapsing(t *testing.T, nodes []*process, calm, storm *crowd, users int) {
	t.Helper()
	const attempts, rounds = 6, 5
	storm.rate(t, nodes, users, attempts) // connections are made, and caches filled
	before := calm.rate(t, nodes, users*attempts, 1)
	ratios := make([]float64, rounds)
	for n := range ratios {
		often := storm.rate(t, nodes, users, attempts)
		after := calm.rate(t, nodes, users*attempts, 1)
		ratios[n] = 2 * often / (before + after)
		t.Logf("%.0f users a second who claim once, then %.0f who claim %d times at once, then %.0f: %.3f", before, often, attempts, after, ratios[n])
		before = after
	}
	slices.Sort(ratios)
	if median := ratios[rounds/2]; median < 1/float64(attempts)/2 {
		t.Errorf("the useful answers fell to %.3f of those without retries", median)
	}
}
