package wait_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/firstcome/firstcome/internal/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestABackoffGrowsToItsLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := wait.NewBackoff(10*time.Millisecond, 40*time.Millisecond)
		for _, about := range []time.Duration{10, 20, 40, 40} {
			about *= time.Millisecond
			began := time.Now()
			if err := waits.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < about/2 || took > about*3/2 {
				t.Errorf("it waits %v, want within half of %v", took, about)
			}
		}
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := wait.Sleep(ctx, time.Hour); err != context.Canceled {
		t.Errorf("it returns %v", err)
	}
}

func TestWakeDoesNotWaitForTheReader(t *testing.T) {
	signal := make(chan struct{}, 1)
	wait.Wake(signal)
	wait.Wake(signal)
	<-signal
	select {
	case <-signal:
		t.Error("two signals are kept")
	default:
	}
}
