package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/stage"
)

// paced makes the campaign c with a line; 0 a second is as fast as it goes.
func paced(t *testing.T, l *ledger.Ledger, quantity, perSecond int64) {
	t.Helper()
	stage.Must(t, l.Campaigns.Create(t.Context(), "test", "c", withPace(quantity, perSecond)))
}

// withPace returns terms of a campaign with a line.
func withPace(quantity, perSecond int64) firstcome.Terms {
	paced := terms(quantity)
	paced.Pace = &firstcome.Pace{PerSecond: perSecond}
	return paced
}

// people returns so many users.
func people(n int) []firstcome.UserID { return stage.Users("u", 100, n) }

// keepsPlaces audits c, and holds the order of its coupons against that of its tickets.
func keepsPlaces(t *testing.T, l *ledger.Ledger) gate.LineState {
	t.Helper()
	secret := stage.Secret()
	report, err := audit.Ledger(t.Context(), l.Tables().Source(), "c", &secret, nil)
	stage.Must(t, err)
	for _, b := range report.Breaches.Shown {
		t.Errorf("%s: %s", b.Promise, b.Text)
	}
	var last firstcome.Coupon
	for _, c := range allCoupons(t, l) {
		if c.Ticket > 0 && (c.Generation < last.Generation || c.Generation == last.Generation && c.Ticket <= last.Ticket) {
			t.Errorf("number %d is of the ticket %d.%d, behind that of %d.%d", c.Number, c.Generation, c.Ticket, last.Generation, last.Ticket)
		} else if c.Ticket > 0 {
			last = c
		}
	}
	state, err := l.Gate.LineOf(t.Context(), "c")
	stage.Must(t, err)
	return state
}

// nodesOnEach runs a test with nodes on one ledger: three on a server, and one on SQLite.
func nodesOnEach(t *testing.T, test func(t *testing.T, nodes []*ledger.Ledger)) {
	onEach(t, func(t *testing.T, name string) {
		nodes := []*ledger.Ledger{start(t, name, nil)}
		for len(nodes) < 3 && sqldb.OnServer(name) {
			nodes = append(nodes, start(t, name, nil))
		}
		test(t, nodes)
	})
}

// serveAll serves c until nobody waits or is sent away.
func serveAll(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	for {
		served, err := l.Gate.Serve(t.Context(), "c", 7)
		stage.Must(t, err)
		if served.Waiting == 0 {
			return
		}
	}
}

// inTime does something again until it is done or refused, for a minute: on a busy machine a transaction waits longer for a row than it may. Users who ask
// again are told what was decided.
func inTime(do func() error) (err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		err = do()
		if err == nil || errors.Is(err, firstcome.ErrServed) || errors.Is(err, firstcome.ErrNoTicket) || errors.Is(err, firstcome.ErrNoCoupon) || errors.Is(err, firstcome.ErrAlreadyVoided) {
			return err
		}
	}
	return err
}
