//go:build linux

package e2e_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
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
// which live count. A node that was killed is said to be gone, and counts no more.
func TestTheLivePageSaysWhatTheCampaignTheAuditAndTheMetricsSay(t *testing.T) {
	for _, s := range []setup{alone, setups[len(setups)-1]} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			d := s.deploy(t)
			d.create("spring", 10_000_000, firstcome.Recorded)
			live := watches(d.node(0), "spring")
			crowd := newCrowd("spring")
			stop := d.claimUntil(crowd, 8)
			defer stop()
			crowd.awaitAnswers(t, 200)
			all, gone := len(d.nodes)+len(d.recorders), 0
			if len(d.nodes) > 1 {
				waitFor(t, "all nodes to be heard", func() bool { return live.now().NodesSeen == all })
				killed := d.node(2)
				killed.kill()
				d.mu.Lock()
				d.nodes = d.nodes[:2]
				d.mu.Unlock()
				gone = 1
				waitFor(t, "one node to be gone", func() bool {
					now := live.now()
					return now.NodesSeen == all-1 && now.Nodes == all && len(now.Gone) == 1 && strings.HasSuffix(now.Gone[0], " "+killed.address())
				})
			}
			crowd.awaitAnswers(t, 200)
			stop()
			d.drained("spring")
			campaign, err := d.node(0).calls.Campaign(t.Context(), "spring")
			stage.Must(t, err)
			at, err := d.node(0).calls.LedgerState(t.Context(), "spring")
			stage.Must(t, err)
			var counted uint64
			for _, p := range d.nodes {
				counted += uint64(p.metric("firstcome_claims_total"))
			}
			defer func() {
				if t.Failed() {
					said, _ := json.Marshal(live.now())
					t.Logf("the page says %s; the campaign is %+v; %d claims are counted", said, campaign, counted)
				}
			}()
			is := func(figure *int64, want int64) bool { return figure != nil && *figure == want }
			waitFor(t, "the page to say the same", func() bool {
				now := live.now()
				var claims uint64
				for _, of := range now.Totals {
					claims += of
				}
				return is(now.Issued, campaign.Issued) && is(now.InForce, campaign.InForce) && is(now.Recorded, at.Recorded) &&
					is(now.Unrecorded, 0) && now.Waiting == nil && claims == counted && now.Nodes-now.NodesSeen == gone && len(now.Gone) == gone
			})
			if campaign.Issued != at.Recorded || campaign.Issued < 100 {
				t.Errorf("the campaign has issued %d, and the ledger has %d", campaign.Issued, at.Recorded)
			}
			d.verdict(crowd)
		})
	}
}
