package console

import (
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A Proof is the result of an audit of one campaign.
type Proof struct {
	Ledger audit.Report
	Gate   *audit.GateReport // nil if the ledger decides
}

// Breaches returns the number of breaches of all promises.
func (p *Proof) Breaches() int64 {
	n := p.Ledger.Breaches.Total
	if p.Gate != nil {
		n += p.Gate.Breaches.Total
	}
	return n
}

// Kept returns the promises that were checked and not broken.
func (p *Proof) Kept() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(p.Ledger.Held), func(promise string) bool {
		n, _ := p.of(promise)
		return n > 0
	}), ", ")
}

// of returns the breaches of one promise: how many there are, and the texts of those that the audit shows.
func (p *Proof) of(promise string) (n int64, shown []string) {
	parts := []audit.Breaches{p.Ledger.Breaches}
	if p.Gate != nil {
		parts = append(parts, p.Gate.Breaches)
	}
	for _, part := range parts {
		n += part.Count[promise]
		for _, b := range part.Shown {
			if b.Promise == promise {
				shown = append(shown, b.Text)
			}
		}
	}
	return n, shown
}

// A Prove audits a campaign. While it runs, it adds to read how many rows it has read.
type Prove func(ctx context.Context, id firstcome.CampaignID, read *atomic.Int64) (Proof, error)

// A prover verifies one campaign at a time, and keeps the result in the ledger. It remembers until the node ends which verifications failed, and
// which results the ledger did not take.
type prover struct {
	prove Prove
	keep  func(context.Context, ledger.Proof) error
	clock func() time.Time
	warn  func(text string, args ...any)
	jobs  chan *proving

	mu      sync.Mutex // guards the fields below
	running *proving   // nil if none is under way
	last    map[firstcome.CampaignID]*proving
}

// A proving is one verification, under way or done.
type proving struct {
	ID       firstcome.CampaignID
	By       string // who asked for it
	Began    time.Time
	Ended    time.Time // zero while the verification runs
	Read     atomic.Int64
	Proof    Proof
	Failed   error
	canceled atomic.Bool
	cancel   context.CancelFunc
	ctx      context.Context
}

var errProving = errors.New("another proof is under way")

func newProver(c *Options) *prover {
	return &prover{prove: c.Prove, keep: c.Deployment.KeepProof, clock: c.Clock, warn: c.Log.Warn, jobs: make(chan *proving, 1), last: map[firstcome.CampaignID]*proving{}}
}

// start begins a verification, unless one is under way.
func (p *prover) start(id firstcome.CampaignID, by string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		return errProving
	}
	job := &proving{ID: id, By: by, Began: p.clock()}
	job.ctx, job.cancel = context.WithCancel(context.Background())
	p.running = job
	p.jobs <- job // this does not block, because no other job is in the channel
	return nil
}

// stop cancels the verification of a campaign, if it is under way.
func (p *prover) stop(id firstcome.CampaignID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil && p.running.ID == id {
		p.running.canceled.Store(true)
		p.running.cancel()
	}
}

// state returns the last verification of a campaign that this node keeps, and the verification of any campaign that runs now. Either may be nil.
func (p *prover) state(id firstcome.CampaignID) (last, running *proving) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[id], p.running
}

// proved returns the last verification of each campaign, from whichever node.
func (c *core) proved(ctx context.Context, ids ...firstcome.CampaignID) (map[firstcome.CampaignID]*proving, error) {
	kept, err := c.Deployment.Proofs(ctx, ids)
	all := map[firstcome.CampaignID]*proving{}
	for _, k := range kept {
		one := &proving{ID: k.Campaign, By: k.By, Began: k.Began, Ended: k.Ended}
		if json.Unmarshal(k.Found, &one.Proof) == nil { // the row of another version may be unreadable
			one.Read.Store(k.Read)
			all[k.Campaign] = one
		}
	}
	for _, id := range ids {
		if own, _ := c.prover.state(id); own != nil && (all[id] == nil || own.Ended.After(all[id].Ended)) {
			all[id] = own
		}
	}
	return all, err
}

// run does the verifications that start begins, until ctx ends.
func (p *prover) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case job := <-p.jobs:
			stop := context.AfterFunc(ctx, job.cancel)
			proof, err := p.prove(job.ctx, job.ID, &job.Read)
			stop()
			job.cancel()
			p.end(ctx, job, proof, err)
		}
	}
}

// keepWait bounds how long a node tries to keep a result in the ledger.
const keepWait = 10 * time.Second

func (p *prover) end(ctx context.Context, job *proving, proof Proof, err error) {
	done := &proving{ID: job.ID, By: job.By, Began: job.Began, Ended: p.clock(), Proof: proof, Failed: err}
	done.Read.Store(job.Read.Load())
	canceled := job.canceled.Load()
	if !canceled && err != nil {
		p.warn("a proof failed", "campaign", job.ID, "err", err)
	}
	if !canceled && err == nil {
		err = p.put(ctx, done)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = nil
	if !canceled && err != nil {
		p.last[job.ID] = done
	}
}

// put keeps a result in the ledger.
func (p *prover) put(ctx context.Context, done *proving) error {
	ctx, cancel := context.WithTimeout(ctx, keepWait)
	defer cancel()
	found, err := json.Marshal(done.Proof)
	if err == nil {
		err = p.keep(ctx, ledger.Proof{Campaign: done.ID, By: done.By, Began: done.Began, Ended: done.Ended, Read: done.Read.Load(), Found: found})
	}
	if err != nil {
		p.warn("a proof is kept on this node only", "campaign", done.ID, "err", err)
	}
	return err
}

// A proofPage shows the verification of a campaign.
type proofPage struct {
	Row      campaignRow
	Last     *proving // nil if the campaign was never verified
	Running  *proving // nil if no verification runs
	Here     bool     // the verification that runs is this campaign's
	Failure  string   // why the last one failed
	Promises []promiseRow
	Other    []promiseRow // the checks on which the promises rely
	Curve    template.HTML
	Speeds   template.HTML // a plot of issued, recorded and voided coupons a second
	Rates    []rateRow
	Steps    []ledger.Step // points of the curve, for the table
}

// tableRows is about how many rows a table has that stands for a plot.
const tableRows = 24

// A promiseRow shows how a promise was checked, and the breaches that were found.
type promiseRow struct {
	ID, Promise, Checked string
	Held                 bool  // it was checked
	None                 bool  // the campaign has nothing to check it on
	Rows                 int64 // how many rows were read for it
	Breaches             int64
	Broken               string   // what a breach means
	Shown                []string // the breaches, in English
}

// proofHandlers show verifications and event reports.
type proofHandlers struct{ *core }

func (c *proofHandlers) show(v *view) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	now, err := c.Watcher.Now(v.r.Context(), s.ID)
	if err != nil {
		return err
	}
	page, _, err := c.read(v, &s, now)
	if err != nil {
		return err
	}
	return v.renderOf(tabsOf(&s, "proof"), http.StatusOK, "proof", v.say("검증", "Verification"), page)
}

// read returns the last verification of a campaign, and its history.
func (c *proofHandlers) read(v *view, s *ledger.Status, now figures.Sample) (page proofPage, h history, err error) {
	page.Row = c.rowOf(v.r.Context(), s, now)
	_, page.Running = c.prover.state(s.ID) // read before the proofs: then a verification that ends in between is shown as under way, not as missing
	proofs, err := c.proved(v.r.Context(), s.ID)
	if err != nil {
		return page, h, err
	}
	page.Last = proofs[s.ID]
	page.Here = page.Running != nil && page.Running.ID == s.ID
	switch {
	case page.Last == nil:
	case page.Last.Failed != nil:
		page.Failure = v.lang.unproved(page.Last.Failed)
	default:
		page.Promises, page.Other = c.promises(v, &page.Last.Proof)
	}
	if h, err = c.historyOf(v.r.Context(), s); err != nil {
		return page, h, err
	}
	page.Curve = v.lang.curve(h.Steps)
	page.Steps = every(h.Steps, tableRows)
	page.Speeds, page.Rates = v.lang.speeds(&h), rateRows(&h, tableRows)
	return page, h, nil
}

// lastNumber returns the highest number of a campaign in the ledger.
func lastNumber(s *ledger.Status) int64 {
	if s.Remote() {
		return s.LastNumber
	}
	return s.Issued
}

// every returns about so many of the steps, always with the first and the last.
func every(steps []ledger.Step, most int) (few []ledger.Step) {
	for n := range steps {
		if n == len(steps)-1 || n%max(1, len(steps)/most) == 0 {
			few = append(few, steps[n])
		}
	}
	return few
}

func (c *proofHandlers) start(v *view) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	if err := c.prover.start(s.ID, v.who.Name); err != nil {
		return err
	}
	return v.redirect(Root + "/campaigns/" + string(s.ID) + "/proof")
}

func (c *proofHandlers) stop(v *view) error {
	id, err := v.campaign()
	if err != nil {
		return err
	}
	c.prover.stop(id)
	return v.redirect(Root + "/campaigns/" + string(id) + "/proof")
}

// promises returns the result for each promise, and for the records that the checks rely on.
func (c *proofHandlers) promises(v *view, p *Proof) (rows, other []promiseRow) {
	r := &p.Ledger
	numbers := v.say("1부터 빠진 번호가 없는지 확인했습니다.", "Is each number from 1 up a coupon, a dead letter, lost or on its way?")
	if p.Gate != nil {
		numbers += " " + v.say("게이트가 가진 쿠폰이 원장에 있거나 오는 중인지 확인했습니다.", "Is each coupon that the gate has in the ledger, or on its way?")
	}
	answers := v.say("클라이언트가 받은 응답 기록이 필요합니다(firstcome load로 확인).", "This needs the answers that clients got: firstcome load checks it.")
	all := []promiseRow{
		{ID: "P1", Promise: v.say("초과 발급 없음", "Never more"), Checked: v.say("유효한 쿠폰이 한 번이라도 수량을 넘었는지 번호마다 확인했습니다.", "At every number: were more coupons in force than the quantity at that time?"), Rows: r.Coupons},
		{ID: "P2", Promise: v.say("조기 마감 없음", "Never fewer"), Checked: answers},
		{ID: "P3", Promise: v.say("1인 1매", "One per user"), Checked: v.say("유효한 쿠폰을 두 장 가진 사람이 있는지 확인했습니다.", "Does any user hold two coupons in force?"), Rows: r.Coupons},
		{ID: "P4", Promise: v.say("선착순", "First come, first served"), Checked: v.say("번호 순서와 발급 시각 순서가 같은지 확인했습니다.", "Do numbers and times rise together?"), Rows: r.Coupons},
		{ID: "P5", Promise: v.say("유실 없음", "Kept"), Checked: numbers, Rows: r.Coupons + r.Letters + r.Lost},
		{ID: "P6", Promise: v.say("안전한 재시도", "Asking again is safe"), Checked: answers},
		{ID: "P7", Promise: v.say("거절 사유", "A refusal says why"), Checked: answers},
		{ID: "P8", Promise: v.say("불확실하면 503", "An error means unknown"), Checked: answers},
		{ID: "P9", Promise: v.say("순번 유지", "A place is kept"), Checked: v.say("순번 순서와 번호 순서가 같은지, 발급·취소·종료의 합이 맞는지 확인했습니다.", "Do tickets and numbers rise together, and do served, left and ended add up?"), Rows: r.Coupons},
		{ID: "P10", Promise: v.say("순위와 경품 유지", "A rank is given once"), Checked: v.say("순위가 겹치거나 번호 순서와 다른지, 쿠폰의 조건에 없는 경품이 있는지 확인했습니다.", "Does each coupon have a rank of its own, in the order of the numbers, and the prize that its terms name for it?"), Rows: r.Coupons},
	}
	if len(r.Held) > 0 && !slices.Contains(r.Held, "P9") { // the proof of an older version does not say what it checked
		all[8].None, all[8].Checked = true, v.say("이 캠페인에는 대기열이 없었습니다.", "This campaign had no line.")
	}
	named := map[string]bool{}
	for n := range all {
		named[all[n].ID] = true
		all[n].Broken = v.lang.broken(all[n].ID)
		all[n].Breaches, all[n].Shown = p.of(all[n].ID)
		all[n].Held = slices.Contains(r.Held, all[n].ID)
		if !all[n].Held && r.Held != nil && r.Breaches.Count["unreadable"] > 0 && all[n].Checked != answers {
			all[n].Checked = v.say("확인하지 못했습니다: 아래의 오류를 보십시오.", "This could not be checked: see the errors below.")
		}
	}
	parts := []audit.Breaches{r.Breaches}
	if p.Gate != nil {
		parts = append(parts, p.Gate.Breaches)
	}
	for _, part := range parts {
		for _, promise := range part.Promises() {
			if !named[promise] {
				named[promise] = true
				n, shown := p.of(promise)
				other = append(other, promiseRow{ID: promise, Breaches: n, Broken: v.lang.broken(promise), Shown: shown})
			}
		}
	}
	if !v.may(run) { // the breaches name users
		for _, rows := range [][]promiseRow{all, other} {
			for n := range rows {
				rows[n].Shown = nil
			}
		}
	}
	return all, other
}
