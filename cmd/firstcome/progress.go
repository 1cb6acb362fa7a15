package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// progressAfter is how long something may take before it shows progress.
	progressAfter = 2 * time.Second
	lineEvery     = 5 * time.Second        // elsewhere than on a terminal
	againEvery    = 100 * time.Millisecond // on a terminal
)

// A course is how far something is. The zero value of a field says that it is not known.
type course struct {
	done, total int64
	began       time.Time     // before anything was done; not known: when its progress was asked for
	longest     time.Duration // it ends by then, whatever is done
}

// showProgress shows on standard error how far something is. On a terminal it overwrites one line, and clears it in the
// end; elsewhere it writes lines. Of what takes less than two seconds it shows nothing. The caller calls
// done at the end.
func showProgress(ctx context.Context, t terminal, what string, far func() course) (done func()) {
	pause, clear, end := lineEvery, "", "\n"
	if isTerminal(t.err) {
		pause, clear, end = againEvery, "\r\x1b[K", ""
	}
	ctx, stop := context.WithCancel(ctx)
	asked := time.Now()
	var shown sync.WaitGroup
	shown.Go(func() {
		wait := time.NewTimer(progressAfter)
		defer wait.Stop()
		for {
			select {
			case <-ctx.Done():
				fmt.Fprint(t.err, clear)
				return
			case <-wait.C:
			}
			c := far()
			if c.began.IsZero() {
				c.began = asked
			}
			fmt.Fprint(t.err, clear+what+c.text(time.Since(c.began))+end)
			wait.Reset(pause)
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

// text says how far it is after a time.
func (c course) text(elapsed time.Duration) (text string) {
	switch {
	case c.total > 0:
		text = fmt.Sprintf(" %d of %d", min(c.done, c.total), c.total)
	case c.done > 0:
		text = fmt.Sprintf(" %d", c.done)
	}
	text += fmt.Sprintf(", %v", elapsed.Round(time.Second))
	if left, known := c.left(elapsed); known {
		text += fmt.Sprintf(", about %v to go", left.Round(time.Second))
	}
	return text
}

// left returns how much longer it takes if it goes on as until now.
func (c course) left(elapsed time.Duration) (left time.Duration, known bool) {
	if c.done > 0 && c.total > 0 {
		seconds := elapsed.Seconds() * float64(max(0, c.total-c.done)) / float64(c.done)
		// The first of many tells nothing yet, and centuries do not fit in a Duration.
		if known = seconds < longestFlag.Seconds(); known {
			left = time.Duration(seconds * float64(time.Second))
		}
	}
	if end := max(0, c.longest-elapsed); c.longest > 0 && (!known || end < left) {
		return end, true
	}
	return left, known
}
