package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A livePage shows the current state of one campaign.
type livePage struct {
	Row      campaignRow
	Now      figures.Sample
	Version  int64 // the version in the forms
	Paced    bool  // there is a line, or people are still in a line that was taken away
	Waitlist bool
	Pace     *firstcome.Pace
	Paused   bool
	Closed   bool
	Logged   bool     // places in line are also kept in Kafka
	Kinds    []string // the order in which claims are listed by outcome
	Recent   []figures.Sample
	Prizes   []stock
}

// RanOut returns how many prizes are known to have run out. The script reads the page again when that changes.
func (p livePage) RanOut() (n int) {
	for _, s := range p.Prizes {
		if !s.RanOutAt.IsZero() {
			n++
		}
	}
	return n
}

// waits reports whether people are known to be in line. After a line was taken away, some may be left in it for a while.
func waits(now figures.Sample) bool { return now.Waiting != nil && *now.Waiting > 0 }

// Left returns how many coupons are left, or nil if unlimited or unknown.
func (p livePage) Left() *int64 { return left(p.Now) }

// left returns how many coupons of a campaign are left, or nil if unlimited or unknown.
func left(now figures.Sample) *int64 {
	if now.Quantity == nil || now.InForce == nil {
		return nil
	}
	n := max(0, *now.Quantity-*now.InForce)
	return &n
}

// InVain returns how many claims were refused.
func (p livePage) InVain() *int64 {
	if p.Now.Totals == nil {
		return nil
	}
	refused := int64(0)
	for _, kind := range inVain {
		refused += int64(figureOf(p.Now.Totals, kind))
	}
	return &refused
}

// Unknown returns how many claims ended without an outcome.
func (p livePage) Unknown() *int64 {
	if p.Now.Totals == nil {
		return nil
	}
	n := int64(0)
	for _, kind := range withoutOutcome {
		n += int64(figureOf(p.Now.Totals, kind))
	}
	return &n
}

// Occurred reports whether claims are known to have ended so.
func (p livePage) Occurred(kind string) bool {
	return p.Now.Totals != nil && figureOf(p.Now.Totals, kind) > 0
}

// recentRows is the number of rows in the table beside the plots.
const recentRows = 12

// liveHandlers show the current state of a campaign.
type liveHandlers struct{ *core }

func (c *liveHandlers) show(v *view) error {
	s, err := v.known()
	if err != nil {
		return err
	}
	now, err := c.Watcher.Now(v.r.Context(), s.ID)
	if err != nil {
		return err
	}
	page := livePage{
		Row: c.rowOf(v.r.Context(), &s, now), Now: now, Version: s.Version, Paced: s.Pace != nil || waits(now), Waitlist: s.Waitlist, Pace: s.Pace, Paused: s.Paused, Closed: s.Closed,
		Logged: s.Log != nil, Kinds: outcomesInPlots,
	}
	ring := c.Watcher.Ring(s.ID)
	if n := len(ring); n > 0 && now.At.Sub(ring[n-1].At) < 10*time.Second {
		page.Now = ring[n-1]
	}
	page.Recent = ring[max(0, len(ring)-recentRows):]
	page.Prizes = v.lang.stocks(&s.Terms, &page.Now)
	return v.renderOf(tabsOf(&s, ""), http.StatusOK, "live", s.Name, page)
}

// known returns the campaign in the path. If the ledger does not answer, it has only its id, and version 0.
func (v *view) known() (ledger.Status, error) {
	ctx, done := context.WithTimeout(v.r.Context(), ledgerWait)
	defer done()
	id, err := v.campaign()
	if err != nil {
		return ledger.Status{}, err
	}
	s, err := v.Ledger.Campaign(ctx, id)
	if err == nil || errors.Is(err, firstcome.ErrNoCampaign) {
		return s, err
	}
	v.Log.Warn("a page of the console cannot read the ledger", "page", v.r.URL.Path, "err", err)
	s.ID, s.Name = id, string(id)
	return s, nil
}

// status returns the campaign in the path.
func (v *view) status() (ledger.Status, error) {
	id, err := v.campaign()
	if err != nil {
		return ledger.Status{}, err
	}
	return v.Ledger.Campaign(v.r.Context(), id)
}

func tabsOf(s *ledger.Status, tab string) *campaignTabs {
	return &campaignTabs{ID: s.ID, Name: s.Name, Tab: tab}
}

// eventWait bounds how long sending one event may take.
const eventWait = 10 * time.Second

// A courseEvent has the past of a campaign: its course in the ledger from the first coupon on, and the samples of the last quarter of an hour, if
// somebody watched.
type courseEvent struct {
	Issued   []point           `json:"issued"`
	Recorded []point           `json:"recorded"`
	Rates    courseRates       `json:"rates"`
	Samples  []json.RawMessage `json:"samples"`
}

// CourseRates are the coupons issued, recorded and voided a second.
type courseRates struct {
	Issued   []tempo `json:"issued"`
	Recorded []tempo `json:"recorded"`
	Voided   []tempo `json:"voided"`
}

// streamLasts bounds the life of a stream. Then the browser reconnects, which renews a viewer's session: a screen on the wall counts as used without
// clicks. See session.use.
const streamLasts = idle / 2

// follow sends a campaign's samples as server-sent events, as long as the browser listens.
func (c *liveHandlers) follow(v *view) error {
	ctx := v.r.Context()
	s, err := v.known()
	if err != nil {
		return err
	}
	samples, stop := c.Watcher.Watch(s.ID)
	defer stop()
	name, before, err := c.missed(ctx, v.r.Header.Get("Last-Event-ID"), &s)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	events, began := stream{v.w, http.NewResponseController(v.w)}, c.Clock()
	if events.send(name, before) != nil {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.stopping:
			return nil
		case sample := <-samples:
			text, err := sample.JSON()
			if err != nil || !c.stillMay(v) || c.Clock().Sub(began) > streamLasts || events.sendText("sample", sample.At.UnixMicro(), text) != nil {
				return nil // the browser reconnects: it loses nothing, or gets the login
			}
		}
	}
}

// stillMay reports whether the person may still see the page. The key may have been revoked.
func (c *liveHandlers) stillMay(v *view) bool {
	who, err := v.person(v.w, v.r)
	return err == nil && see.HasRole(who.Role)
}

// A stream sends events to one browser.
type stream struct {
	w    http.ResponseWriter
	flow *http.ResponseController
}

func (s stream) send(event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.sendText(event, 0, text)
}

// sendText sends an event. A reconnecting browser sends the last id that it got; an id of 0 is not sent.
func (s stream) sendText(event string, id int64, text []byte) error {
	if err := s.flow.SetWriteDeadline(time.Now().Add(eventWait)); err != nil {
		return err
	}
	if id != 0 {
		event = fmt.Sprintf("%s\nid: %d", event, id)
	}
	if _, err := fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", event, text); err != nil {
		return err
	}
	return s.flow.Flush()
}

// missed returns the first event and its data. A browser that reconnects with the id of the last sample gets the samples since then, any other
// browser the whole course. An id is the instant of a sample by its node's clock, in microseconds.
func (c *liveHandlers) missed(ctx context.Context, id string, s *ledger.Status) (event string, data any, err error) {
	after, err := strconv.ParseInt(id, 10, 64)
	if err != nil { // the browser sent no id
		course, err := c.courseOf(ctx, s)
		return "course", course, err
	}
	samples, err := texts(c.Watcher.Ring(s.ID), after)
	return "missed", map[string]any{"samples": samples}, err
}

// courseOf returns a campaign's course so far.
func (c *liveHandlers) courseOf(ctx context.Context, s *ledger.Status) (courseEvent, error) {
	ctx, done := context.WithTimeout(ctx, readWait)
	defer done()
	h := history{Issued: []point{}, Recorded: []point{}}
	if s.Version > 0 { // a version of 0 means that the ledger does not answer
		var err error
		if h, err = c.historyOf(ctx, s); err != nil {
			return courseEvent{}, err
		}
	}
	samples, err := texts(c.Watcher.Ring(s.ID), 0)
	return courseEvent{h.Issued, h.Recorded, courseRates{rates(h.Issued), rates(h.Recorded), rates(h.Voided)}, samples}, err
}

// texts returns the samples after an event as JSON.
func texts(ring []figures.Sample, after int64) ([]json.RawMessage, error) {
	all := []json.RawMessage{}
	for n := range ring {
		if ring[n].At.UnixMicro() <= after {
			continue
		}
		text, err := ring[n].JSON()
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}
