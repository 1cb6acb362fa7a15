package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// progressAfter is how long something may take before it shows progress.
	progressAfter = 2 * time.Second
	barEvery      = 100 * time.Millisecond
	lineEvery     = 5 * time.Second
	barCells      = 24
)

// A course is how far something is. The zero value of a field says that it is not known.
type course struct {
	done, total int64
	began       time.Time     // before anything was done; not known: when its progress was asked for
	longest     time.Duration // it ends by then, whatever is done
}

// showProgress shows how far something is, on standard error: a bar on a terminal, else lines. It
// shows nothing of what takes less than two seconds. The caller calls done at the end.
func showProgress(ctx context.Context, t terminal, what string, far func() course) (done func()) {
	ctx, stop := context.WithCancel(ctx)
	asked := time.Now()
	now := func() string {
		c := far()
		if c.began.IsZero() {
			c.began = asked
		}
		return what + c.text(time.Since(c.began), isTerminal(t.err))
	}
	var shown sync.WaitGroup
	shown.Go(func() {
		wait := time.NewTimer(progressAfter)
		defer wait.Stop()
		select {
		case <-ctx.Done():
		case <-wait.C:
			show(ctx, t.err, now)
		}
	})
	return func() {
		stop()
		shown.Wait()
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// show writes what now says until ctx ends: on a terminal over what it said before, and nothing is left.
func show(ctx context.Context, w io.Writer, now func() string) {
	pause, clear, end := lineEvery, "", "\n"
	if isTerminal(w) {
		pause, clear, end = barEvery, "\r\x1b[K", ""
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		fmt.Fprint(w, clear+now()+end)
		select {
		case <-ctx.Done():
			fmt.Fprint(w, clear)
			return
		case <-tick.C:
		}
	}
}

// text says how far it is after a time, with a bar if asked for.
func (c course) text(elapsed time.Duration, bar bool) string {
	var parts []string
	switch {
	case c.total > 0:
		done := min(c.done, c.total)
		cells := int(done * barCells / c.total)
		if bar {
			parts = append(parts, " "+strings.Repeat("█", cells)+strings.Repeat("░", barCells-cells))
		}
		parts = append(parts, fmt.Sprintf(" %d of %d", done, c.total))
	case c.done > 0:
		parts = append(parts, fmt.Sprintf(" %d", c.done))
	}
	parts = append(parts, fmt.Sprintf(", %v", elapsed.Round(time.Second)))
	if left, known := c.left(elapsed); known {
		parts = append(parts, fmt.Sprintf(", about %v to go", left.Round(time.Second)))
	}
	return strings.Join(parts, "")
}

// left returns how much longer it takes if it goes on as until now.
func (c course) left(elapsed time.Duration) (left time.Duration, known bool) {
	if c.done > 0 && c.total > 0 {
		seconds := elapsed.Seconds() * float64(max(0, c.total-c.done)) / float64(c.done)
		// The first of many says nothing, and centuries have no room in a Duration.
		if known = seconds < longestFlag.Seconds(); known {
			left = time.Duration(seconds * float64(time.Second))
		}
	}
	if end := max(0, c.longest-elapsed); c.longest > 0 && (!known || end < left) {
		return end, true
	}
	return left, known
}
