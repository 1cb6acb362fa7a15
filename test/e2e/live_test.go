//go:build linux && !check

package e2e_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A watch is what the Live page of a node was told last.
type watch struct {
	mu   sync.Mutex
	last figures.Sample
}

func (w *watch) now() figures.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// watches follows the Live page of a campaign until the test ends.
func watches(p *process, id string) *watch {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+"/console/campaigns/"+id+"/events", nil)
	stage.Must(p.t, err)
	answer, err := p.http.Do(r)
	stage.Must(p.t, err)
	if answer.StatusCode != http.StatusOK {
		p.t.Fatalf("the events of the Live page: %s", answer.Status)
	}
	w, ended := &watch{}, make(chan struct{})
	go func() {
		defer close(ended)
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 16<<20)
		for event := ""; lines.Scan(); {
			name, isName := strings.CutPrefix(lines.Text(), "event: ")
			data, isData := strings.CutPrefix(lines.Text(), "data: ")
			var sample figures.Sample
			switch {
			case isName:
				event = name
			case isData && event == "sample" && json.Unmarshal([]byte(data), &sample) == nil:
				w.mu.Lock()
				w.last = sample
				w.mu.Unlock()
			}
		}
	}()
	p.t.Cleanup(func() {
		answer.Body.Close()
		<-ended
	})
	return w
}

// TestTheLivePageSaysWhatTheCampaignTheAuditAndTheMetricsSay has a crowd claim at one node, and at three of which one is killed, while
// somebody watches. In the end the page has the campaign's figures, the audit finds no breach, and the claims are those that the nodes
// count, each outcome by itself. A node that was killed is said to be gone, and its last row counts on.
func TestTheLivePageSaysWhatTheCampaignTheAuditAndTheMetricsSay(t *testing.T) {
	for _, s := range []setup{alone, redisOfPostgreSQL} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			d := s.fleet(t)
			d.create("spring", 10_000_000, firstcome.Recorded)
			live := watches(d.node(0), "spring")
			crowd := newCrowd("spring")
			stop := d.claimUntil(crowd, 4)
			defer stop()
			crowd.awaitAnswers(t, 100)
			all, gone := len(d.nodes)+len(d.recorders), 0
			last := map[string]uint64{} // claims that a killed node's row has
			if len(d.nodes) > 1 {
				waitFor(t, "all nodes to be heard", func() bool { return live.now().NodesSeen == all })
				db := services.Beside(t, d.args[1])
				waitFor(t, "the nodes that answer to say that they write again in 2 s", func() bool { // else it takes 30 s more to miss one
					var busy int
					stage.Must(t, db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM nodes WHERE counts LIKE '%"every":2,%'`).Scan(&busy))
					return busy == len(d.nodes)
				})
				killed, said := d.node(2), []byte(nil)
				killed.kill()
				d.mu.Lock()
				d.nodes = d.nodes[:2]
				d.mu.Unlock()
				gone = 1
				waitFor(t, "one node to be gone", func() bool {
					now := live.now()
					return now.NodesSeen == all-1 && now.Nodes == all && len(now.Gone) == 1 && strings.HasSuffix(now.Gone[0], " "+killed.address())
				})
				host, err := os.Hostname()
				stage.Must(t, err)
				stage.Must(t, db.QueryRowContext(t.Context(), `SELECT counts FROM nodes WHERE host = '`+host+`' AND listen = '`+killed.address()+`'`).Scan(&said))
				var row struct {
					Campaigns map[firstcome.CampaignID]figures.Counts
				}
				stage.Must(t, json.Unmarshal(said, &row))
				for _, k := range figures.Kinds() {
					last[k.String()] = row.Campaigns["spring"].Claims[k]
				}
			}
			crowd.awaitAnswers(t, 100)
			stop()
			d.drained("spring")
			refusals(d)
			campaign := d.node(0).counted("spring")
			at, err := d.node(0).calls.Operator().LedgerState(t.Context(), "spring")
			stage.Must(t, err)
			counted := map[string]uint64{}
			for _, p := range d.nodes {
				for labels, claims := range p.series("firstcome_claims_total") {
					counted[strings.TrimSuffix(strings.TrimPrefix(labels, `outcome="`), `"`)] += uint64(claims)
				}
			}
			for _, refused := range []string{"already_issued", "sold_out", "paused"} {
				if counted[refused] < 2 {
					t.Errorf("%d claims are counted as %s", counted[refused], refused)
				}
			}
			for outcome, claims := range last {
				counted[outcome] += claims
			}
			defer func() {
				if t.Failed() {
					said, _ := json.Marshal(live.now())
					t.Logf("the page says %s; the campaign is %+v; %v claims are counted", said, campaign, counted)
				}
			}()
			is := func(figure *int64, want int64) bool { return figure != nil && *figure == want }
			waitFor(t, "the page to say the same", func() bool {
				now := live.now()
				for outcome, claims := range now.Totals {
					if claims != counted[outcome] {
						return false
					}
				}
				return is(now.Issued, *campaign.Issued) && is(now.InForce, *campaign.InForce) && is(now.Recorded, at.Recorded) &&
					is(now.Unrecorded, 0) && now.Waiting == nil && is(now.Quantity, *campaign.Quantity) && *now.Quantity-*now.InForce == *campaign.Remaining && len(now.Totals) > len(firstcome.Outcomes()) && now.Nodes-now.NodesSeen == gone && len(now.Gone) == gone
			})
			if *campaign.Issued != at.Recorded || at.Recorded < 100 {
				t.Errorf("the campaign has issued %d, and the ledger has %d", *campaign.Issued, at.Recorded)
			}
			d.verdict(crowd)
		})
	}
}

// refusals has a newcomer hear at each node that the campaign is paused, and that it is sold out. The crowd heard the others.
func refusals(d *fleet) {
	d.t.Helper()
	first := d.node(0).calls
	claim := func(want string) {
		d.t.Helper()
		for n := range 2 * len(d.nodes) {
			p := d.node(n % len(d.nodes))
			waitFor(d.t, "a newcomer to hear "+want, func() bool {
				a, err := p.calls.Claim(d.t.Context(), "spring", "newcomer")
				return err == nil && a.Outcome == want
			})
		}
	}
	stage.Must(d.t, insist(d.t, func() error { return stage.Err(first.Pause(d.t.Context(), "spring")) }))
	claim("paused")
	stage.Must(d.t, insist(d.t, func() error { return stage.Err(first.Resume(d.t.Context(), "spring")) }))
	d.drained("spring")
	campaign, err := first.Campaign(d.t.Context(), "spring")
	stage.Must(d.t, err)
	stage.Must(d.t, insist(d.t, func() error {
		return stage.Err(first.UpdateCampaign(d.t.Context(), "spring", 0, map[string]any{"quantity": campaign.InForce}))
	}))
	claim("sold_out")
}
