//go:build !check

package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A relayed is the gate and the ledger of a Journal. A campaign exists once a coupon was issued.
type relayed struct {
	mu      sync.Mutex // guards the fields below
	issued  map[firstcome.CampaignID][]firstcome.Coupon
	told    map[firstcome.CampaignID]record.Result // the last report to the gate
	drained map[firstcome.CampaignID]int64         // as the ledger has it
	absent  map[firstcome.CampaignID]bool          // campaigns that the ledger does not have
	deaf    error                                  // the error of reports to the gate
	older   error                                  // the error of the gate's state
	lags    []record.Lag
	opened  kafka.JournalOptions // of the Journal that was opened last
	heard   int                  // calls of Settle
}

func newRelayed() *relayed {
	return &relayed{
		issued: map[firstcome.CampaignID][]firstcome.Coupon{}, told: map[firstcome.CampaignID]record.Result{},
		drained: map[firstcome.CampaignID]int64{}, absent: map[firstcome.CampaignID]bool{},
	}
}

const uid = "ours.1.secret"

// issue issues coupons to new users.
func (g *relayed) issue(id firstcome.CampaignID, users int) []firstcome.Coupon {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := int64(len(g.issued[id]))
	coupons := stage.Coupons(id, before+1, before+int64(users))
	g.issued[id] = append(g.issued[id], coupons...)
	return coupons
}

func (g *relayed) Active(context.Context) (all []gate.Revision, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.issued {
		all = append(all, gate.Revision{Campaign: id, Version: 1, Epoch: 1, CampaignUID: uid, Drained: g.drained[id]})
	}
	return all, nil
}

func (g *relayed) Whose(_ context.Context, id firstcome.CampaignID) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.absent[id] {
		return "", firstcome.ErrNoCampaign
	}
	return uid, nil
}

func (g *relayed) Settle(_ context.Context, id firstcome.CampaignID, of string, d record.Result, _ ...string) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard++
	before := g.told[id]
	switch {
	case g.deaf != nil:
		return 0, g.deaf
	case of != uid:
		return 0, fmt.Errorf("the gate is told of %s with the UID %q", id, of)
	case d.LettersKnownThrough > before.Through && d.Through > before.Through:
		return 0, &record.MissedLettersError{Through: before.Through}
	}
	d.Through, d.Letters = max(d.Through, before.Through), append(before.Letters, d.Letters...)
	g.told[id] = d
	return before.Through, nil
}

func (g *relayed) Behind(_ context.Context, active []gate.Revision) (all []record.Undrained, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range active {
		u := record.Undrained{Campaign: r.Campaign, Last: int64(len(g.issued[r.Campaign])), Drained: g.told[r.Campaign].Through, Epoch: 1}
		if u.Last > u.Drained || u.Drained != r.Drained {
			all = append(all, u)
		}
	}
	return all, nil
}

func (g *relayed) Lag(context.Context, []gate.Revision) ([]record.Lag, error) {
	return slices.Clone(g.lags), nil
}

func (g *relayed) Missing(_ context.Context, id firstcome.CampaignID) (b record.Batch, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return record.Batch{Campaign: id, Epoch: 1, CampaignUID: uid, Coupons: g.issued[id][g.told[id].Through:]}, g.older
}

// open returns a Journal on a topic.
func open(t *testing.T, at string, g *relayed, edit ...func(*kafka.JournalOptions)) *kafka.Journal {
	t.Helper()
	o := kafka.JournalOptions{
		Name: "ours", Secret: stage.Secret(), Owns: func(m string) bool { return strings.HasPrefix(m, "ours.") }, Ledger: g, Gate: g,
		Sweep: 20 * time.Millisecond, Patience: time.Second,
	}
	for _, e := range edit {
		e(&o)
	}
	g.opened = o
	j, err := kafka.OpenJournal(t.Context(), at, o)
	stage.Must(t, err)
	t.Cleanup(j.Close)
	return j
}

// patient makes a Journal never record from the holders, which would hide a skipped record.
func patient(o *kafka.JournalOptions) { o.Patience = 10 * time.Minute }

// A stream implements conform.Stream.
type stream struct {
	*kafka.Journal
	t  *testing.T
	at string
	*relayed
}

func (s stream) Another() record.Source { return open(s.t, s.at, s.relayed, patient) }

func (s stream) Lag(ctx context.Context, active []gate.Revision) ([]record.Lag, error) {
	return s.Journal.Lag(ctx, active)
}

func (s stream) Make(context.Context, firstcome.CampaignID) error { return nil }

func (s stream) append(ctx context.Context, b record.Batch) error {
	b.Epoch, b.CampaignUID = 1, uid
	_, err := s.Record(ctx, b)
	return err
}

func (s stream) Issue(ctx context.Context, id firstcome.CampaignID, users int) ([]firstcome.Coupon, error) {
	coupons := s.issue(id, users)
	return coupons, s.append(ctx, record.Batch{Campaign: id, Coupons: coupons})
}

func (s stream) Litter(ctx context.Context, id firstcome.CampaignID) error {
	return s.Journal.Litter(ctx, id, "litter")
}

func (s stream) Report(ctx context.Context, id firstcome.CampaignID, r gate.LineReport) error {
	return s.append(ctx, record.Batch{Campaign: id, Line: r})
}

func TestAJournalOnATopicConforms(t *testing.T) {
	t.Parallel()
	conform.Journal(t, func(t *testing.T) conform.Stream {
		at, g := services.Kafka.Database(t), newRelayed()
		return stream{open(t, at, g, patient), t, at, g}
	})
}

var errAway = errors.New("away")

// record records a Journal's coupons in a ledger of the test, until stop is called or the test ends.
func (g *relayed) record(t *testing.T, j record.Source, p *stage.Ledger) (stop func()) {
	t.Helper()
	return stage.Run(t, record.NewRecorder(j, noting{p, g}, record.Options{Holes: g, Patience: g.opened.Patience, OnAlarm: g.opened.OnAlarm}).Run)
}

// A noting ledger notes how far campaigns are drained, for Active.
type noting struct {
	*stage.Ledger
	g *relayed
}

func (n noting) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	d, err := n.Ledger.Record(ctx, b)
	return n.note(b.Campaign, d, err)
}

func (n noting) Bury(ctx context.Context, b record.Batch, cause string) (record.Result, error) {
	d, err := n.Ledger.Bury(ctx, b, cause)
	return n.note(b.Campaign, d, err)
}

func (n noting) note(id firstcome.CampaignID, d record.Result, err error) (record.Result, error) {
	if err == nil {
		n.g.mu.Lock()
		defer n.g.mu.Unlock()
		n.g.drained[id] = max(n.g.drained[id], d.Through)
	}
	return d, err
}

// heardThrough returns the number up to which the gate was last told that a campaign is drained.
func (g *relayed) heardThrough(id firstcome.CampaignID) func() int64 {
	return func() int64 {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.told[id].Through
	}
}

// alarmed returns options whose alarms the test reads.
func alarmed() (edit func(*kafka.JournalOptions), alarms func() string) {
	var mu sync.Mutex
	var all []string
	return func(o *kafka.JournalOptions) {
			o.OnAlarm = func(id firstcome.CampaignID, err error) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, fmt.Sprintf("%s: %v", id, err))
			}
		}, func() string {
			mu.Lock()
			defer mu.Unlock()
			return strings.Join(all, "\n")
		}
}

// wantAlarm waits for an alarm.
func wantAlarm(t *testing.T, alarms func() string, part string) {
	t.Helper()
	stage.Await(t, "an alarm: "+part, true, func() bool { return strings.Contains(alarms(), part) })
}
