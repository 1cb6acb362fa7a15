package ledger_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/stage"
)

// TestAServiceTakesItsTurnsAtTheInstantAtWhichItIssues has a clock that takes longer and longer from one look to the next. Turns that a service
// took at a later look than that of its coupons would come too early by more and more.
func TestAServiceTakesItsTurnsAtTheInstantAtWhichItIssues(t *testing.T) {
	const perSecond = 1000
	var looks atomic.Int64
	begun := time.Now().UTC()
	l := start(t, file(t), func() time.Time {
		n := looks.Add(1)
		return begun.Add(time.Duration(n*n) * 50 * time.Microsecond) // with the n-th look it goes on by n tenths of a millisecond
	})
	paced(t, l, 1000, perSecond)
	_, err := l.Gate.Claim(t.Context(), "c", people(400))
	stage.Must(t, err)
	for served := (gate.Served{Waiting: 1}); served.Waiting > 0; {
		served, err = l.Gate.Serve(t.Context(), "c", 99)
		stage.Must(t, err)
	}
	var issued []time.Time
	for _, c := range allCoupons(t, l) {
		issued = append(issued, c.IssuedAt)
	}
	stage.Same(t, "coupons", 400, len(issued))
	stage.KeepsPace(t, issued, perSecond)
}
