package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/load"
)

const (
	// moveEvery is how often a terminal redraws the line. This is more often than a server reads its line. Without a terminal, a line of text
	// every writeEvery is enough.
	moveEvery  = 200 * time.Millisecond
	writeEvery = time.Second
	barWidth   = 40
)

// A lineShow shows how a waiting line moves.
type lineShow struct {
	out      io.Writer
	redraws  bool // in place, on a terminal
	coupons  int64
	began    time.Time
	shown    bool
	latest   sight
	earlier  sight   // about a second before latest
	previous []sight // the sights of about the last second
}

// A sight is a line at a time after the show began.
type sight struct {
	at time.Duration
	client.Line
}

// showLine shows how the demo's line moves until done is called.
func showLine(ctx context.Context, t terminal, server string, coupons int64) (done func()) {
	ctx, stop := context.WithCancel(ctx)
	show := newLineShow(t.out, isTerminal(t.out), coupons)
	every := writeEvery
	if show.redraws {
		every = moveEvery
	}
	var showing sync.WaitGroup
	showing.Go(func() {
		reader := client.New(server, "")
		defer reader.CloseIdle()
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			if l, err := reader.Line(ctx, demoCampaign); err == nil { // on an error, the next tick tries again
				show.see(sight{time.Since(show.began), l})
			}
		}
	})
	return func() {
		stop()
		showing.Wait()
		show.end()
	}
}

func newLineShow(out io.Writer, redraws bool, coupons int64) *lineShow {
	return &lineShow{
		out: out, redraws: redraws, coupons: coupons, began: time.Now(),
		previous: []sight{{Line: client.Line{Serving: 1}}}, // no ticket has been served
	}
}

// see shows a sight, unless the first generation has ended: then no user of the demo is in line.
func (s *lineShow) see(now sight) {
	if now.Generation > 1 {
		return
	}
	s.previous = append(s.previous, now)
	for len(s.previous) > 2 && now.at-s.previous[1].at >= time.Second {
		s.previous = s.previous[1:]
	}
	s.earlier, s.latest = s.previous[0], now
	if !s.redraws {
		fmt.Fprintln(s.out, s.text())
		return
	}
	rows := s.rows()
	if s.shown {
		fmt.Fprintf(s.out, "\x1b[%dA", len(rows))
	}
	s.shown = true
	for _, row := range rows {
		fmt.Fprintf(s.out, "\x1b[K%s\n", row)
	}
}

// end leaves the last sight on the screen, followed by an empty line.
func (s *lineShow) end() {
	if s.latest.at > 0 {
		fmt.Fprintln(s.out)
	}
}

// served returns how many tickets have been served.
func (s *lineShow) served() int64 { return s.latest.Serving - 1 }

// perSecond returns how many tickets a second were served in about the last second.
func (s *lineShow) perSecond() float64 {
	passed := (s.latest.at - s.earlier.at).Seconds()
	if passed == 0 {
		return 0
	}
	return float64(s.latest.Serving-s.earlier.Serving) / passed
}

// newest describes the place of the user who joined last: how many users are ahead, and how long the wait is.
func (s *lineShow) newest() string {
	ahead := max(0, s.latest.LastTicket-s.latest.Serving)
	text := fmt.Sprintf("%d ahead", ahead)
	if p := s.latest.Pace; p != nil && p.PerSecond != nil {
		text += fmt.Sprintf(", about %.1f s", float64(ahead)/float64(*p.PerSecond))
	}
	return text
}

// text returns the latest sight as a line of text.
func (s *lineShow) text() string {
	return fmt.Sprintf("%4.1f s: serving ticket %d of %d, %d of %d coupons issued, %d waiting, the last user has %s, %.0f a second",
		s.latest.at.Seconds(), s.latest.Serving, s.latest.LastTicket, min(s.served(), s.coupons), s.coupons, s.latest.Waiting, s.newest(), s.perSecond())
}

// rows returns the latest sight as the rows of a screen.
func (s *lineShow) rows() []string {
	row := func(name, format string, args ...any) string {
		return fmt.Sprintf("%20s  ", name) + fmt.Sprintf(format, args...)
	}
	issued := min(s.served(), s.coupons)
	full := int(issued * barWidth / max(1, s.coupons))
	return []string{
		row("issued", "%s%s %d of %d", strings.Repeat("█", full), strings.Repeat("░", barWidth-full), issued, s.coupons),
		row("serving", "ticket %d of %d", s.latest.Serving, s.latest.LastTicket),
		row("waiting", "%d", s.latest.Waiting),
		row("the last user has", "%s", s.newest()),
		row("pace", "%s, recently %.0f a second", paceText(s.latest.Pace), s.perSecond()),
	}
}

// printLine prints how long users waited in line, how exact the estimated times were, and whether the pace was kept.
func printLine(w io.Writer, l *load.Line) {
	if l == nil {
		return
	}
	in := l.InLine
	fmt.Fprintf(w, "%20s  p50 %.2f  p95 %.2f  p99 %.2f  max %.2f s until users saw their coupon\n", "time in line", in.P50/1000, in.P95/1000, in.P99/1000, in.Max/1000)
	if l.ETA != nil {
		fmt.Fprintf(w, "%20s  %s\n", "estimates", l.ETA)
	}
	fmt.Fprintf(w, "%20s  %s\n\n", "pace kept", l.PaceKept())
}
