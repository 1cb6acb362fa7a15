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
	// progressAfter is how long a task runs before its progress is shown.
	progressAfter = 2 * time.Second
	lineEvery     = 5 * time.Second        // without a terminal
	againEvery    = 100 * time.Millisecond // on a terminal
)

// A course is the progress of a task. A field that is zero is unknown.
type course struct {
	done, total int64
	began       time.Time // when the task began. If unknown, showProgress takes the time of its call
}

// showProgress shows the progress of a task on standard error. On a terminal it overwrites one line, and clears the line at the end. Otherwise it
// writes lines. It shows nothing of a task that ends within progressAfter. The caller must call done at the end.
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

// text returns the progress after elapsed as text.
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

// left returns how much longer the task takes at the same speed.
func (c course) left(elapsed time.Duration) (left time.Duration, known bool) {
	if c.done == 0 || c.total == 0 {
		return 0, false
	}
	seconds := elapsed.Seconds() * float64(max(0, c.total-c.done)) / float64(c.done)
	if seconds >= longestFlag.Seconds() { // after the first of very many steps, it may be centuries, which do not fit in a Duration
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}
