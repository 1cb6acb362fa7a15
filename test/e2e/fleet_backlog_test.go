//go:build linux

package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
)

// quantile returns how long a part of the crowd's answered claims took at most, of those sent in a span.
func (c *crowd) quantile(of span, part float64) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var took []time.Duration
	for _, claim := range c.claims {
		if claim.Sent >= of.from && claim.Received <= of.to && claim.Outcome != 0 {
			took = append(took, claim.Received-claim.Sent)
		}
	}
	slices.Sort(took)
	if len(took) == 0 {
		return 0
	}
	return took[int(float64(len(took)-1)*part)]
}

// during returns the time span in which the crowd gets so many more answers.
func (c *crowd) during(t *testing.T, answers int) span {
	t.Helper()
	from := time.Since(c.start)
	c.awaitAnswers(t, answers)
	return span{from, time.Since(c.start)}
}

// issueDirectly issues coupons to users for whom nobody claims, a thousand in each call.
func (f *fleet) issueDirectly(id string, coupons int) {
	f.t.Helper()
	const most = 1000
	for from := 0; from < coupons; from += most {
		users := make([]string, min(most, coupons-from))
		for n := range users {
			users[n] = fmt.Sprintf(`"direct-%d"`, from+n)
		}
		p := f.node(from / most)
		answer, text := p.ask(http.MethodPost, p.url+"/v1/campaigns/"+id+"/coupons", `{"user_ids":[`+strings.Join(users, ",")+`]}`)
		if answer.StatusCode != http.StatusOK {
			f.t.Fatalf("issue directly: %s %.300s", answer.Status, text)
		}
	}
}

// TestF49ABacklogOfWhoeverDoesNotRecordSlowsNobodyAndDrains stops all recorders, lets a backlog grow, and
// starts the recorders again. Meanwhile claims are answered about as fast as before, and metrics show the backlog and
// its age. Neither the nodes nor the recorders need memory for it.
func TestF49ABacklogOfWhoeverDoesNotRecordSlowsNobodyAndDrains(t *testing.T) {
	const (
		answers  = 400
		recorder = 128 << 20 // bytes resident of one who records, whatever the backlog
		slower   = 10        // times what a claim took before; some 1.2 where nothing else runs
	)
	size := rounds(50_000, 1_000_000)
	d := setup{ledger: services.MariaDB, redis: true}.deploy(t, "--backlog", "2000000")
	d.create("spring", 10_000_000, firstcome.Decided)
	d.create("bulk", 10_000_000, firstcome.Decided)
	crowd := newCrowd("spring")
	stop := d.claimUntil(crowd, 4)
	defer stop()
	crowd.awaitAnswers(t, answers) // connections are made
	before := crowd.during(t, answers)
	stop()
	d.drained("spring")

	off := time.Now()
	for _, p := range d.recorders {
		p.stop()
	}
	d.issueDirectly("bulk", size)
	filled := time.Now()
	stop = d.claimUntil(crowd, 4)
	defer stop()
	crowd.awaitAnswers(t, answers)
	during := crowd.during(t, answers)
	stop()
	c := d.node(0).campaign("spring")
	want := float64(int64(size) + c.Issued - c.Recorded)
	for n := range d.nodes {
		if backlog := d.node(n).metric("firstcome_backlog_coupons"); backlog != want {
			t.Errorf("a node says that %v coupons are not recorded, and %v are not", backlog, want)
		}
	}
	age := d.node(0).metric("firstcome_backlog_age_seconds")
	if least, most := time.Since(filled).Seconds(), time.Since(off).Seconds(); age < least || age > most {
		t.Errorf("the oldest of the backlog is %v s old by the metric, and between %v and %v in truth", age, least, most)
	}
	median := [2]time.Duration{crowd.quantile(before, 0.5), crowd.quantile(during, 0.5)}
	if median[0] == 0 || median[1] > slower*median[0] {
		t.Errorf("half of the claims took %v before and %v with the backlog", median[0], median[1])
	}

	started := time.Now()
	for n := range d.recorders {
		d.recorders[n] = d.start("--role", "recorder")
	}
	d.recorded("bulk", int64(size))
	took := time.Since(started)
	d.drained("spring")
	var resident []int64
	for _, p := range append(slices.Clone(d.nodes), d.recorders...) {
		resident = append(resident, p.mostResident(recorder)>>20)
	}
	t.Logf("a backlog of %d drained in %v; claims took %v before and %v with it, p99 %v and %v; %v MiB resident of nodes and recorders",
		size, took, median[0], median[1], crowd.quantile(before, 0.99), crowd.quantile(during, 0.99), resident)
	d.verdict(crowd)
}

// recorded waits until the ledger has so many coupons of a campaign, as long as their number grows.
func (f *fleet) recorded(id string, coupons int64) {
	f.t.Helper()
	for have := int64(0); have < coupons; {
		before := have
		waitFor(f.t, fmt.Sprintf("the ledger to have more than %d coupons", before), func() bool {
			have = f.node(0).campaign(id).Recorded
			return have > before
		})
	}
}
