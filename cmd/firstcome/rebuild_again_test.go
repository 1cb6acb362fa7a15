//go:build !check

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// An echo saves the steps of a rebuild that reach the gate, so that a test can repeat them.
type echo struct {
	recovery.Gate
	freeze, change func() error
}

func (e *echo) Freeze(ctx context.Context, r recovery.Rebuild) (recovery.Frozen, error) {
	ctx = context.WithoutCancel(ctx)
	e.freeze = func() error {
		_, err := e.Gate.Freeze(ctx, r)
		return err
	}
	return e.Gate.Freeze(ctx, r)
}

func (e *echo) Replace(ctx context.Context, r recovery.Rebuild, f recovery.Frozen, loaded recovery.Loaded, fill recovery.Refill) error {
	ctx = context.WithoutCancel(ctx)
	e.change = func() error { return e.Gate.Replace(ctx, r, f, loaded, fill) }
	return e.change()
}

// TestF18StepsOfARebuildThatComeAgainChangeNothing repeats the freeze and the switch of a rebuild after numbers were issued. The campaign had no coupons,
// so both find the same counts as the first time, and only the attempt's number distinguishes them.
func TestF18StepsOfARebuildThatComeAgainChangeNothing(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
	e := &echo{Gate: d.remote.gate.recovery}
	d.rebuilt(recovery.New(d.ledger.Recorder, d.ledger.Epochs, e, recovery.NewWatch(nil), nil))
	stage.Same(t, "the first claim", []string{"issued:101"}, d.claims("a"))
	if err := e.freeze(); !errors.Is(err, recovery.ErrSuperseded) {
		t.Errorf("the freeze comes again: %v, want %v", err, recovery.ErrSuperseded)
	}
	if err := e.change(); !errors.Is(err, recovery.ErrSuperseded) {
		t.Errorf("the switch comes again: %v, want %v", err, recovery.ErrSuperseded)
	}
	stage.Same(t, "claims", []string{"already_issued:101", "issued:102"}, d.claims("a", "b"))
}

func TestF18DoctorSaysWhatIsBeingRebuilt(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c", "sound")
	attempt, err := d.ledger.Epochs.BeginRebuild(t.Context(), "op", "c", 0)
	stage.Must(t, err)
	want := "WARN 1 campaigns are being rebuilt, and no claim on them is decided until then: c (from epoch 1): nothing, if a node is rebuilding them. Otherwise: firstcome gate rebuild c, while a node runs\n"
	stage.Same(t, "while it is rebuilt", want, d.examined(d.url))
	stage.Must(t, d.ledger.Epochs.GiveUpRebuild(t.Context(), attempt))
	stage.Same(t, "after it", "", d.examined(d.url))
}

// examined returns doctor's findings about the campaigns at a gate that are not OK.
func (d *desk) examined(url string) (says string) {
	d.t.Helper()
	all, err := d.ledger.Reads.Campaigns(d.t.Context(), "", 10)
	stage.Must(d.t, err)
	for _, f := range gateCampaigns(d.t.Context(), gateName(url), d.ledger, all) {
		if f.Grade != doctor.OK {
			says += fmt.Sprintf("%s %s: %s\n", f.Grade, f.Found, f.Fix)
		}
	}
	return says
}

// TestF04DoctorSaysWhatIsNotVerified examines a gate at which another run decided last, and a gate that an unfinished rebuild froze.
func TestF04DoctorSaysWhatIsNotVerified(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c", "sound")
	for why, fields := range map[string][]string{
		"its server restarted, or is another one": {"run", "another"},
		"a rebuild froze it and did not end":      {"frozen", "1"},
	} {
		d.has(fields...)
		want := "WARN 1 campaigns are not decided until a node has checked them against the ledger: c (" + why + "): " +
			"nothing, if a node runs: it verifies or rebuilds them within seconds. If the finding stays: firstcome gate rebuild c, while a node runs; see docs/runbooks/FirstcomeGateLost.md\n"
		stage.Same(t, "what doctor says", want, d.examined(d.url))
		stage.Same(t, "what it says to whoever may only read", "", d.examined(services.User(t, d.url, "~*", "+@read", "+@connection", "+time")))
		d.do("HDEL", d.key("campaign"), "frozen")
	}
}

// TestF36DoctorSaysThatOlderKeysWerePutBack examines a gate with the keys of before a pause.
func TestF36DoctorSaysThatOlderKeysWerePutBack(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c", "sound")
	older := dump(t, d, d.url)
	d.turn(firstcome.ChangePause)
	stage.Same(t, "before", "", d.examined(d.url))
	restore(t, d.url, older)
	want := "WARN 1 campaigns are not decided until a node has checked them against the ledger: c (its keys are older than the ledger: version 1, and the ledger noted 2): " +
		"nothing, if a node runs: it verifies or rebuilds them within seconds. If the finding stays: firstcome gate rebuild c, while a node runs; see docs/runbooks/FirstcomeGateLost.md\n"
	stage.Same(t, "what doctor says", want, d.examined(d.url))
}
