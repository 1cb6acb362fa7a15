package ops_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/line"
)

// A queue is a line with one user who is never served. It signals each further call.
type queue struct{ again chan struct{} }

func (queue) Lines(_ context.Context, each func(firstcome.CampaignID)) error {
	each("c")
	return nil
}

func (q queue) Serve(ctx context.Context, _ firstcome.CampaignID, _ int) (gate.Served, error) {
	select {
	case q.again <- struct{}{}:
	case <-ctx.Done():
	}
	return gate.Served{Waiting: 1, Again: time.Millisecond}, nil
}

func TestTheMetricsSayHowLongWhoIsNextInLineHasWaited(t *testing.T) {
	w := watch(t, "")
	q := queue{make(chan struct{})}
	d := line.NewDispatcher(q, line.Options{})
	joined, failure := time.Unix(1_700_000_000, 0), error(nil)
	w.WatchLines(d, func(_ context.Context, id firstcome.CampaignID) (gate.LineState, error) {
		if id != "c" {
			t.Errorf("the line of %q is asked for", id)
		}
		return gate.LineState{View: firstcome.View{Now: time.Unix(1_700_000_090, 0)}, Joined: joined}, failure
	})
	w.wantNone("firstcome_line_oldest_seconds")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	for range 2 { // behind the second call the node knows what the first one said
		<-q.again
	}
	w.want(`firstcome_line_oldest_seconds{campaign="c"} 90`, `firstcome_line_people 1`)
	failure = errors.New("the gate does not answer")
	w.wantNone("firstcome_line_oldest_seconds")
	w.want(`firstcome_line_people 1`)
	joined, failure = time.Time{}, nil
	w.wantNone("firstcome_line_oldest_seconds")
	stop()
	for {
		select {
		case <-q.again:
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}
