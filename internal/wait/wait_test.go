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
		for _, about := range []time.Duration{10, 20, 40, 40, 40, 40} {
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
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		began := time.Now()
		if err := wait.Sleep(ctx, time.Hour); err != context.DeadlineExceeded || time.Since(began) != time.Second {
			t.Errorf("it returns %v after %v", err, time.Since(began))
		}
	})
}

func TestNodesDoNotKeepStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := map[time.Duration]bool{}
		for range 20 {
			waits[wait.Jitter(time.Second)] = true
			time.Sleep(time.Nanosecond) // the time seeds the choice
		}
		if len(waits) < 10 {
			t.Errorf("20 waits have %d lengths", len(waits))
		}
	})
}

// TestWakeDoesNotWaitForTheReader ends with a deadlock in the bubble if a second signal waits for the first to be read.
func TestWakeDoesNotWaitForTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signal := make(chan struct{}, 1)
		wait.Wake(signal)
		wait.Wake(signal)
		if len(signal) != 1 {
			t.Errorf("%d signals are kept, want 1", len(signal))
		}
	})
}
