package ops_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ops"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

// lost returns a gate that has lost its campaigns.
func lost() *stage.Gate {
	g := stage.NewGate(0, "over", "retired")
	for _, id := range []firstcome.CampaignID{"over", "retired"} {
		g.Course(id).Gone = true
	}
	return g
}

// gate returns the parts that a Monitor watches, with a gate that has lost its campaigns.
func (w *watched) gate() ops.Gate {
	return ops.Gate{
		Name: "redis:x", Changer: gate.NewChanger(w.ledger.Campaigns, lost(), w.ChangeFailed), Retirer: recovery.NewRetirer(bookOfTwo{}, lost(), 0, w.RetireFailed),
		Recovery: recovery.New(nil, nil, nil, recovery.NewWatch(nil), nil),
		Lag:      func(context.Context, []gate.Revision) ([]record.Lag, error) { return nil, nil },
	}
}

func TestTheMetricsSayWhatIsNotRecorded(t *testing.T) {
	w := watch(t, "redis:x")
	w.create("c", 5)
	var asked []gate.Revision
	var lagError error
	g := w.gate()
	g.Waiter = issue.NewWaiter(lost())
	g.Lag = func(_ context.Context, active []gate.Revision) ([]record.Lag, error) {
		asked = active
		return []record.Lag{{Campaign: "c", Numbers: 3, Oldest: 2 * time.Second}, {Campaign: "d", Numbers: 4, Oldest: time.Second}}, lagError
	}
	w.WatchGate(g)
	journal := `{gate="redis:x",ledger="` + w.ledger.Identity() + `"} `
	w.want(`firstcome_backlog_coupons`+journal+`7`, `firstcome_backlog_age_seconds`+journal+`2`, `firstcome_gate_up 1`, `firstcome_ledger_up 1`,
		`firstcome_open_dead_letters 0`, `firstcome_pending_changes 1`, `firstcome_unrecorded_claims 0`, `firstcome_gate_epoch{campaign="c"} 1`,
		`firstcome_changes_total{result="refused"} 0`)
	w.wantNone(`firstcome_breaker_state`, `firstcome_record_seconds`, `firstcome_journal_alarms_total`)
	if len(asked) != 1 || asked[0] != (gate.Revision{Campaign: "c", Version: 1, Epoch: 1, TermsVersion: 1, CampaignUID: asked[0].CampaignUID, Creating: true, Open: true}) {
		t.Errorf("the backlog is that of %v", asked)
	}
	lagError = errors.New("no answer")
	w.want(`firstcome_gate_up 0`, `firstcome_ledger_up 1`)
	w.wantNone(`firstcome_backlog_coupons`)
}

func TestTheMetricsSayWhatARecorderDoes(t *testing.T) {
	w := watch(t, "redis:x")
	coupons, done := stage.Coupons("c", 1, 2), make(chan record.Result)
	coupons[0].IssuedAt, coupons[1].IssuedAt = time.Now().Add(-time.Minute), time.Now()
	journal, keeper := &stage.Journal{}, stage.NewLedger("c")
	journal.Add(record.Batch{Campaign: "c", Epoch: 1, Coupons: coupons})
	journal.Took = func(drained record.Result) error { done <- drained; return nil }
	keeper.Before = func(record.Batch) error {
		if keeper.Calls == 1 {
			return errors.New("the ledger is away")
		}
		return nil
	}
	gate := w.gate()
	gate.Recorder = record.NewRecorder(journal, keeper, record.Options{OnCall: w.Record})
	w.WatchGate(gate)
	stop := stage.Run(t, gate.Recorder.Run)
	stage.Next(t, "a batch", done)
	stop()
	w.Alarm("", errors.New("nothing wakes the journal"))
	w.Alarm("c", errors.New("a part was gone"))
	w.want(`firstcome_recorded_coupons_total 2`, `firstcome_recorded_batches_total 1`, `firstcome_record_retries_total 1`, `firstcome_dead_letters_total 0`,
		`firstcome_record_seconds_count 2`, `firstcome_record_lag_seconds_bucket{le="30"} 0`, `firstcome_record_lag_seconds_count 1`,
		`firstcome_breaker_state{gate="redis:x",ledger="`+w.ledger.Identity()+`"} 0`, `firstcome_journal_alarms_total 2`)
	w.wantNone(`firstcome_unrecorded_claims`, `firstcome_claims_total`, `firstcome_open_connections`)
	for _, want := range []string{"the ledger did not record", `err="nothing wakes the journal"`, `campaign=c err="a part was gone"`} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("the log has no %s: %s", want, &w.log)
		}
	}
}

// A lateKeeper answers that the number of a batch's first coupon is lost.
type lateKeeper struct{ *stage.Ledger }

func (k lateKeeper) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	b.Coupons = b.Coupons[1:]
	drained, err := k.Ledger.Record(ctx, b)
	drained.Lost = 1
	return drained, err
}

func TestCouponsThatComeTooLateAreCountedApart(t *testing.T) {
	w := watch(t, "redis:x")
	journal, done := &stage.Journal{}, make(chan record.Result)
	journal.Add(record.Batch{Campaign: "c", Epoch: 1, Coupons: stage.Coupons("c", 1, 3)})
	journal.Took = func(drained record.Result) error { done <- drained; return nil }
	gate := w.gate()
	gate.Recorder = record.NewRecorder(journal, lateKeeper{stage.NewLedger("c")}, record.Options{OnCall: w.Record})
	w.WatchGate(gate)
	stop := stage.Run(t, gate.Recorder.Run)
	stage.Next(t, "a batch", done)
	stop()
	w.want(`firstcome_recorded_coupons_total 2`, `firstcome_late_coupons_total 1`)
	if want := "they are nobody's\" campaign=c coupons=1"; !strings.Contains(w.log.String(), want) {
		t.Errorf("the log has no %s: %s", want, &w.log)
	}
}

// A fatalError is an error that lasts until an operator acts.
type fatalError struct{ error }

func (fatalError) Fatal() bool { return true }

func TestEveryFailureOfAGateIsCountedByItsClass(t *testing.T) {
	w := watch(t, "redis:x")
	w.WatchGate(w.gate())
	for class, err := range map[string]error{
		"safe": firstcome.ErrBusy, "unknown": errors.New("no answer"), "fatal": fatalError{errors.New("no right")},
		"lost": errors.Join(firstcome.ErrBusy, firstcome.ErrGateMismatch, gate.ErrGone), "mismatch": errors.Join(firstcome.ErrBusy, firstcome.ErrGateMismatch),
	} {
		w.want(`firstcome_gate_failures_total{class="` + class + `"} 0`)
		w.Batch(1, time.Millisecond, err)
		w.want(`firstcome_gate_failures_total{class="` + class + `"} 1`)
	}
	if !strings.Contains(w.log.String(), "a batch of claims was not decided") {
		t.Errorf("the log says %s", &w.log)
	}
}

// A bookOfTwo is a ledger with a campaign to retire and one to forget.
type bookOfTwo struct{}

func (bookOfTwo) Retiring(context.Context, time.Duration, time.Duration) ([]recovery.Retiring, error) {
	return []recovery.Retiring{{Campaign: "retired", Marked: true}, {Campaign: "over"}}, nil
}

func (bookOfTwo) Retire(context.Context, firstcome.CampaignID, gate.State, time.Duration) (bool, error) {
	return true, nil
}

func (bookOfTwo) Forgotten(context.Context, firstcome.CampaignID) error { return nil }

func TestTheMetricsSayWhatIsRetired(t *testing.T) {
	w := watch(t, "redis:x")
	g := w.gate()
	w.WatchGate(g)
	w.want(`firstcome_retirements_total{result="failed"} 0`)
	if err := g.Retirer.Look(t.Context()); !errors.Is(err, gate.ErrGone) {
		t.Errorf("the look ends with %v", err)
	}
	if text := w.log.String(); !strings.Contains(text, "was not retired") || !strings.Contains(text, "retire over: "+gate.ErrGone.Error()) {
		t.Errorf("the log says %q", text)
	}
	w.want(`firstcome_retirements_total{result="failed"} 1`, `firstcome_retirements_total{result="forgotten"} 1`, `firstcome_retirements_total{result="retired"} 0`)
}
