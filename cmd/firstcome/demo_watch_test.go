//go:build !check

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/stage"
)

// printed passes on a command's output, line by line.
func printed(t *testing.T, from io.Reader) (next func(with string) string) {
	t.Helper()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(from); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return func(with string) string {
		t.Helper()
		for {
			select {
			case line, more := <-lines:
				if strings.Contains(line, with) {
					return line
				}
				if !more {
					t.Fatalf("it ended without %q", with)
				}
			case <-time.After(time.Minute):
				t.Fatalf("it never printed %q", with)
			}
		}
	}
}

func TestTheDropOfADemonstrationBeginsWhenSomebodyWatches(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out, printing := io.Pipe()
	next := printed(t, out)
	ended := make(chan error, 1)
	go func() {
		c := &demoCmd{Users: 40, Coupons: 20, Watch: true}
		err := c.Run(ctx, terminal{out: printing, err: io.Discard})
		_ = printing.Close()
		ended <- err
	}()
	link := regexp.MustCompile(`http://\S+`).FindString(next("Watch it here:"))
	server, _, found := strings.Cut(link, "/console/")
	if !found {
		t.Fatalf("%q leads to no page of the console", link)
	}
	api := client.New(server, "")
	defer api.CloseIdle()
	issued := func() int64 {
		t.Helper()
		c, err := api.Campaign(ctx, demoCampaign)
		stage.Must(t, err)
		return *c.Issued
	}
	if n := issued(); n != 0 {
		t.Errorf("nobody watches, and %d are issued", n)
	}

	page, err := http.Get(link + "/events")
	stage.Must(t, err)
	defer func() { _ = page.Body.Close() }()
	if kind := page.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("the page of %s has no events: %s %s", link, page.Status, kind)
	}
	next("Audit of the ledger: 0 breaches. Audit of 40 answers: 0 breaches.")
	if again := next("The console is at"); !strings.Contains(again, link) {
		t.Errorf("afterwards it names another page than %s: %s", link, again)
	}
	if n := issued(); n != 20 {
		t.Errorf("the server stays up, with %d issued", n)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestADemonstrationThatNobodyWatchesCanBeInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out, printing := io.Pipe()
	next := printed(t, out)
	ended := make(chan error, 1)
	go func() {
		c := &demoCmd{Users: 40, Coupons: 20, Watch: true}
		ended <- c.Run(ctx, terminal{out: printing, err: io.Discard})
	}()
	next("Ctrl-C ends the demo.")
	stop()
	if err := <-ended; !errors.Is(err, errInterrupted) {
		t.Errorf("it ended with %v", err)
	}
	_ = printing.Close()
}

func TestUsersThatAreWatchedComeOverAWhile(t *testing.T) {
	for _, row := range []struct {
		c    demoCmd
		want float64
	}{
		{demoCmd{Users: 20_000, Watch: true}, 500},
		{demoCmd{Users: 10, Watch: true}, leastRate},
		{demoCmd{Users: 10_000}, 0},
		{demoCmd{Users: 10_000, Watch: true, Pace: "100"}, 0},
	} {
		if got := row.c.rate(); got != row.want {
			t.Errorf("%+v: %v a second, want %v", row.c, got, row.want)
		}
	}
}

func TestUsersThatAreWatchedComeInAWave(t *testing.T) {
	const all = 10_000
	due := (&demoCmd{Users: all, Watch: true}).wave()
	bySecond := make([]int, 40)
	for n, last := int64(0), time.Duration(0); n < all; n++ {
		at := due(n)
		if at < last || at >= watchedFor {
			t.Fatalf("claim %d of %d comes at %v, behind one at %v", n, all, at, last)
		}
		bySecond[int(at.Seconds())]++
		last = at
	}
	crest := slices.Index(bySecond, slices.Max(bySecond))
	if crest < 7 || crest > 8 || bySecond[0] > bySecond[crest]/5 || bySecond[39] > bySecond[crest]/5 || bySecond[39] == 0 {
		t.Errorf("so many come in each second: %v", bySecond)
	}
	if (&demoCmd{Users: all, Watch: true, Pace: "100"}).wave() != nil {
		t.Error("a line needs no wave: it spreads them")
	}
}
