//go:build linux && !check

package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
)

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

// TestF49ABacklogOfWhoeverDoesNotRecordHoldsUpNobodyAndDrains stops all recorders, lets a backlog of some batches grow, and starts the
// recorders again. Claims are answered with it, the metrics show it and its age, and all of it is recorded in the end. In a soak it is a
// million coupons, and claims are measured.
func TestF49ABacklogOfWhoeverDoesNotRecordHoldsUpNobodyAndDrains(t *testing.T) {
	aBacklog(t, redisOfMariaDB, 6000, func(d *deployment, crowd *crowd) { crowd.awaitAnswers(d.t, 100) })
}

// aBacklog lets a backlog of so many coupons grow. claims has the crowd claim before there is a backlog, and again with it.
func aBacklog(t *testing.T, s setup, size int, claims func(*deployment, *crowd)) {
	const recorder = 128 << 20 // bytes resident of a node and of a recorder, whatever the backlog
	d := s.deploy(t, "--backlog", "2000000")
	d.create("spring", 10_000_000, firstcome.Decided)
	d.create("bulk", 10_000_000, firstcome.Decided)
	crowd := newCrowd("spring")
	stop := d.claimUntil(crowd, 4)
	defer stop()
	claims(d, crowd)
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
	claims(d, crowd)
	stop()
	c := d.node(0).counted("spring")
	want := float64(int64(size) + *c.Issued - c.Recorded)
	for n := range d.nodes {
		if backlog := d.node(n).metric("firstcome_backlog_coupons"); backlog != want {
			t.Errorf("a node says that %v coupons are not recorded, and %v are not", backlog, want)
		}
	}
	least := time.Since(filled).Seconds()
	age := d.node(0).metric("firstcome_backlog_age_seconds")
	if most := time.Since(off).Seconds(); age < least || age > most {
		t.Errorf("the oldest of the backlog is %v s old by the metric, and between %v and %v in truth", age, least, most)
	}

	for n := range d.recorders {
		d.recorders[n] = d.start("--role", "recorder")
	}
	d.recorded("bulk", int64(size))
	d.drained("spring")
	var resident []int64
	for _, p := range append(slices.Clone(d.nodes), d.recorders...) {
		resident = append(resident, p.mostResident(recorder)>>20)
	}
	t.Logf("%v MiB resident of nodes and recorders", resident)
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
