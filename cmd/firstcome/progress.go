package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	// progressAfter is how long something may take before it shows progress.
	progressAfter = 2 * time.Second
	barEvery      = 100 * time.Millisecond
	lineEvery     = 5 * time.Second
)

// showProgress shows how far something is, on standard error: a bar on a
// terminal, else lines. It shows nothing of what takes less than two seconds. A
// total of 0 says that the end is not known. The caller calls done at the end.
func showProgress(ctx context.Context, t terminal, what string, far func() (done, total int64)) (done func()) {
	ctx, stop := context.WithCancel(ctx)
	var shown sync.WaitGroup
	shown.Go(func() {
		wait := time.NewTimer(progressAfter)
		defer wait.Stop()
		select {
		case <-ctx.Done():
		case <-wait.C:
			if isTerminal(t.err) {
				showBar(ctx, t.err, what, far)
			} else {
				showLines(ctx, t.err, what, far)
			}
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

func showBar(ctx context.Context, w io.Writer, what string, far func() (done, total int64)) {
	_, total := far()
	if total <= 0 {
		total = -1 // a spinner
	}
	bar := progressbar.NewOptions64(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(), progressbar.OptionShowCount())
	every(ctx, barEvery, func() {
		done, now := far()
		if total > 0 && now > 0 {
			done = min(done, now)
			bar.ChangeMax64(now)
		}
		_ = bar.Set64(done)
	})
	_ = bar.Clear()
}

func showLines(ctx context.Context, w io.Writer, what string, far func() (done, total int64)) {
	every(ctx, lineEvery, func() {
		done, total := far()
		if total > 0 {
			fmt.Fprintf(w, "%s: %d of %d\n", what, done, total)
		} else {
			fmt.Fprintf(w, "%s: %d\n", what, done)
		}
	})
}

// every does now, and again and again until ctx ends.
func every(ctx context.Context, pause time.Duration, do func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
