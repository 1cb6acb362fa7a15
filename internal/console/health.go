package console

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/record"
)

// A healthPage shows the flow, the nodes and the findings of doctor.
type healthPage struct {
	Edges    []edge
	Nodes    []nodeRow
	Unheard  bool  // the nodes could not be read
	Stopped  int64 // campaigns whose gate decides nothing, as far as this node knows
	Gates    []stopCause
	Findings doctor.Findings
	Examined time.Time
}

// An edge leads from one part of the flow to the next.
type edge struct {
	Words []string // the part that it leaves, as glossary IDs
	Rate  *float64 // per second; nil if unknown
	State string   // ok, warn, bad or unknown; empty for the last part
	Note  string
}

// A nodeRow is a node, and whether it is alive.
type nodeRow struct {
	figures.Node
	Gone bool
}

// doctorEvery is the age from which findings are checked again.
const doctorEvery = 30 * time.Second

// A checkup caches the last findings, and each node's last counts.
type checkup struct {
	looking  sync.Mutex // held while doctor runs
	mu       sync.Mutex // guards the fields below
	findings doctor.Findings
	examined time.Time
	heard    map[string]heard // by the nodes' keys
}

// A heard holds the counts that a node last reported.
type heard struct {
	started, seen time.Time
	campaigns     map[firstcome.CampaignID]figures.Counts
	rates         map[string]float64 // claims per second since the report before, by kind, and coupons under toLines; nil if unknown
}

// toLines is a key beside the kinds of claims. It counts coupons issued to users in line, whose claims ended as waiting.
const toLines = "to lines"

// healthHandlers show the state of nodes, gate and ledger.
type healthHandlers struct {
	*core
	checkup checkup
}

func (c *healthHandlers) show(v *view) error {
	ctx := v.r.Context()
	page := healthPage{}
	nodes, err := c.Watcher.Nodes.Nodes(ctx)
	page.Unheard = err != nil
	for _, n := range nodes {
		if n.StoppedAt.IsZero() {
			page.Nodes = append(page.Nodes, nodeRow{n, n.Silent()})
		}
	}
	rates := c.checkup.rates(nodes)
	page.Findings, page.Examined = c.checkup.last()
	if c.Journal != nil && c.Journal.Troubles != nil {
		page.Stopped, page.Gates = int64(len(c.Journal.Troubles())), c.stopped(v, "")
	}
	page.Edges = c.edges(ctx, v, rates, page.Stopped)
	return v.render(http.StatusOK, "health", v.say("상태", "Health"), page)
}

// examine runs doctor when a person asks. Doctor reads much of a ledger's file, so it does not run by itself.
func (c *healthHandlers) examine(v *view) error {
	c.checkup.examine(v.r.Context(), c.Doctor, c.Clock())
	return v.redirect(Root + "/health")
}

// rates returns the claims per second by kind, summed over the live nodes, or nil if unknown. A node's rate is computed from two of its reports,
// at least a second apart, however often pages are loaded.
func (u *checkup) rates(nodes []figures.Node) (all map[string]float64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := map[string]heard{}
	for _, n := range nodes {
		if !n.StoppedAt.IsZero() || n.Silent() {
			continue
		}
		one := u.heard[n.Key()].next(&n)
		now[n.Key()] = one
		for kind, rate := range one.rates {
			if all == nil {
				all = map[string]float64{}
			}
			all[kind] += rate
		}
	}
	u.heard = now
	return all
}

// next returns the counts and rates after a node's next report.
func (h heard) next(n *figures.Node) heard {
	passed := n.SeenAt.Sub(h.seen)
	again := h.started.Equal(n.StartedAt)
	if again && passed < time.Second {
		return h
	}
	now := heard{started: n.StartedAt, seen: n.SeenAt, campaigns: n.Campaigns}
	if !again || passed > time.Minute {
		return now
	}
	now.rates = map[string]float64{}
	for id, counts := range n.Campaigns {
		from := h.campaigns[id]
		if !from.Since.Equal(counts.Since) {
			from = figures.Counts{} // the node did not count this campaign before
		}
		for _, k := range figures.Kinds() {
			now.rates[k.String()] += float64(counts.Claims[k]-from.Claims[k]) / passed.Seconds()
		}
		now.rates[toLines] += float64(counts.Served-from.Served) / passed.Seconds()
	}
	return now
}

// examine runs doctor, unless it has just run or is running.
func (u *checkup) examine(ctx context.Context, look func(context.Context) doctor.Findings, now time.Time) {
	if !u.looking.TryLock() {
		return
	}
	defer u.looking.Unlock()
	_, examined := u.last()
	if look == nil || now.Sub(examined) < doctorEvery {
		return
	}
	found := look(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.findings, u.examined = found, now
}

// last returns the last findings of doctor and their time, which is zero if it has not run yet.
func (u *checkup) last() (doctor.Findings, time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.findings, u.examined
}

// edges returns the flow, from the claims to the facts. The gate decides nothing of the stopped campaigns.
func (c *healthHandlers) edges(ctx context.Context, v *view, rates map[string]float64, stopped int64) []edge {
	var claims, issued *float64
	lost, undecided := 0.0, 0.0
	if rates != nil {
		all := 0.0
		for kind, rate := range rates {
			if kind != toLines {
				all += rate
			}
		}
		won := figureOf(rates, "issued") + rates[toLines]
		claims, issued, lost = &all, &won, figureOf(rates, "unknown")
		for _, kind := range withoutOutcome {
			undecided += figureOf(rates, kind)
		}
	}
	claimed := edge{Words: []string{"claim"}, Rate: claims, State: "ok"}
	if rates == nil {
		claimed.State = "unknown"
	}
	switch {
	case lost > 0:
		claimed.State, claimed.Note = "bad", v.say("결과를 모르는 요청이 있습니다", "some claims end unknown")
	case undecided > 0:
		claimed.State, claimed.Note = "bad", v.say("결정되지 않은 요청이 있습니다", "some claims are not decided")
	}
	_, err := v.Ledger.Campaigns(ctx, "", 1)
	if v.Journal == nil {
		decided := edge{Words: []string{"node"}, Rate: issued, State: "ok"}
		if err != nil {
			decided.State, decided.Note = "bad", v.say("원장이 응답하지 않습니다", "the ledger does not answer")
		}
		return []edge{claimed, decided, {Words: []string{"ledger", "gate"}, Rate: issued, State: decided.State}, {Words: []string{"fact"}}}
	}
	journal := edge{Words: []string{"gate"}, Rate: issued, State: "ok"}
	recorded := edge{Words: []string{"journal"}, State: "ok"}
	lags, failed := v.Journal.Lag(ctx)
	unaged := errors.Is(failed, record.ErrUnaged)
	if unaged {
		failed = nil
	}
	switch {
	case failed != nil && err != nil: // the gate is asked about the campaigns that the ledger lists
		journal.State = "unknown"
	case failed != nil:
		recorded.State = "unknown"
		journal.State, journal.Note = "bad", v.say("게이트가 응답하지 않습니다", "the gate does not answer")
	case len(lags) > 0:
		all := int64(0)
		for _, l := range lags {
			all += l.Numbers
		}
		recorded.Note = v.say("밀린 쿠폰 %s", "backlog %s", v.lang.number(all))
		if all > 10_000 {
			recorded.State = "warn"
		}
	}
	if unaged || v.Journal.Relay != nil && v.Journal.Relay().Breaker != "closed" {
		recorded.State, recorded.Note = "bad", v.say("토픽이 응답하지 않습니다", "the topic does not answer")
	}
	if v.Journal.Recorder != nil && v.Journal.Recorder().Breaker != "closed" {
		recorded.State, recorded.Note = "bad", v.say("서킷 브레이커가 차단했습니다", "the breaker is open")
	}
	kept := edge{Words: []string{"ledger"}, State: "ok"}
	if err != nil {
		recorded.State, kept.State, recorded.Note = "bad", "bad", v.say("원장이 응답하지 않습니다", "the ledger does not answer")
	}
	decided := edge{Words: []string{"node"}, Rate: claims, State: journal.State}
	if stopped > 0 {
		decided.State, decided.Note = "bad", v.say("발급이 중단된 캠페인 %s", "campaigns not decided: %s", v.lang.number(stopped))
	}
	return []edge{claimed, decided, journal, recorded, kept, {Words: []string{"fact"}}}
}
