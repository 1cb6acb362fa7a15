package main

import (
	"bytes"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// maxLines bounds the lines of the log that wait for their reader: about a megabyte.
	maxLines = 4096
	// lastLines is how long an exit waits until the last lines are written.
	lastLines = 2 * time.Second
)

// A buffer passes the lines of a log to a writer that may block, such as a pipe that nobody reads, so that nothing else waits for it. Once it is full,
// it drops lines and counts them.
type buffer struct {
	lines   chan []byte
	dropped atomic.Int64
	stop    chan struct{}
	stopped chan struct{}
}

// newLog returns a log to w, and its buffer. Close the buffer after the last line.
func newLog(w io.Writer, word, format string) (*slog.Logger, *buffer) {
	var level slog.Level
	_ = level.UnmarshalText([]byte(word)) // each word that the flag accepts is a level
	logTo := func(w io.Writer) *slog.Logger {
		options := &slog.HandlerOptions{Level: level}
		if format == "json" {
			return slog.New(slog.NewJSONHandler(w, options))
		}
		return slog.New(slog.NewTextHandler(w, options))
	}
	b := &buffer{lines: make(chan []byte, maxLines), stop: make(chan struct{}), stopped: make(chan struct{})}
	go b.run(w, logTo(w))
	return logTo(b), b
}

// Write implements io.Writer. slog writes a line by one call.
func (b *buffer) Write(line []byte) (int, error) {
	select {
	case b.lines <- bytes.Clone(line):
	default:
		b.dropped.Add(1)
	}
	return len(line), nil
}

// run writes the lines until stop, and then those that wait. A line that cannot be written is lost: there is nowhere else to say so.
func (b *buffer) run(w io.Writer, log *slog.Logger) {
	defer close(b.stopped)
	told := int64(0)
	write := func(line []byte) {
		_, _ = w.Write(line)
		if dropped := b.dropped.Load(); dropped > told {
			log.Warn("lines of the log were dropped, because nobody read it", "lines", dropped-told)
			told = dropped
		}
	}
	for {
		select {
		case line := <-b.lines:
			write(line)
		case <-b.stop:
			for len(b.lines) > 0 {
				write(<-b.lines)
			}
			return
		}
	}
}

// Close writes the lines that wait, as far as their reader takes them in time.
func (b *buffer) Close() {
	close(b.stop)
	await(b.stopped)
}

// await waits for something that writes to a reader who may be gone.
func await(written <-chan struct{}) {
	late := time.NewTimer(lastLines)
	defer late.Stop()
	select {
	case <-written:
	case <-late.C:
	}
}
