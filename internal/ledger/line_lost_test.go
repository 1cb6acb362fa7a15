package ledger_test

import (
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

func TestF77ClosingACampaignOfAnotherRedisEndsItsLineAsLost(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l, stop := serve(t, name, ledger.Options{Gate: "redis:test"})
		create(t, l, "c", 9)
		stage.Must(t, l.Campaigns.Applied(t.Context(), firstcome.Change{Campaign: "c", Version: 1}, false))
		served := stage.Coupon("c", 1)
		served.Generation, served.Ticket = 1, 2
		b := given(served)
		b.Line.Line = firstcome.Line{Generation: 1, LastTicket: 5, ServedThrough: 2, Served: 1, Waiting: 3}
		_, err := l.Recorder.Record(t.Context(), b)
		stage.Must(t, err)
		stage.Must(t, l.Recorder.LoseLine(t.Context(), "c"))
		if at, err := l.Gate.LineOf(t.Context(), "c"); err != nil || len(at.Past) > 0 {
			t.Errorf("the line of a campaign that is not closed is %+v, %v", at, err)
		}
		stop()
		other, stop := serve(t, name, ledger.Options{Gate: "redis:another"})
		_, err = other.Campaigns.ChangeState(t.Context(), "op", "c", 0, firstcome.ChangeClose)
		stage.Must(t, err)
		at, err := other.Gate.LineOf(t.Context(), "c")
		stage.Must(t, err)
		want := firstcome.PastLine{Line: firstcome.Line{Generation: 1, LastTicket: 5, ServedThrough: 2, Served: 1, Waiting: 3}, Reason: "lost"}
		if len(at.Past) == 1 {
			want.EndedAt = at.Past[0].EndedAt
		}
		if len(at.Past) != 1 || at.Past[0] != want || at.Line.Generation != 2 || at.Line.LastTicket != 0 || want.EndedAt.IsZero() {
			t.Errorf("the line is %+v", at)
		}
		stop()
		l, _ = serve(t, name, ledger.Options{Gate: "redis:test"})
		found, err := audit.Ledger(t.Context(), l.Tables().Source(), "c", nil, nil)
		if err != nil || found.Lines != 1 || found.Breaches.Count["P9"] != 0 {
			t.Errorf("the audit finds %+v, %v", found, err)
		}
		stage.Must(t, l.Recorder.LoseLine(t.Context(), "c")) // the old Redis is back, and has lost it
		if again, err := l.Gate.LineOf(t.Context(), "c"); err != nil || len(again.Past) != 1 {
			t.Errorf("then it is %+v, %v", again, err)
		}
	})
}
