package api_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// A testLedger is a ledger in a file of the test's.
type testLedger struct {
	*ledger.Ledger
	stop func() // as if the process ended: may be called once before the test's end
}

// startLedger opens a ledger; run runs it, once the server hangs on it.
func startLedger(t testing.TB, clock func() time.Time) *testLedger {
	t.Helper()
	secret, err := firstcome.NewSecret([]byte("a secret of the tests, 32 bytes and more"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(context.Background(), filepath.Join(t.TempDir(), "firstcome.db"), ledger.Options{Owner: "a test", Secret: secret, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return &testLedger{Ledger: l}
}

func (l *testLedger) run(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	stopped := false
	l.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(l.stop)
}
