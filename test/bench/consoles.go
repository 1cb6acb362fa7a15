package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
)

const (
	openConsoles = 8 // the most that one person may follow at once; without keys everybody is one person
	// watchedRate is that of the claims meanwhile, a second.
	watchedRate = 20_000
)

// consoles: winners in the open loop while others watch the campaign's Live page. The reference is nobody who watches; what a run
// differs from itself stands beside it.
func consoles(ctx context.Context, b *bench) {
	s := b.firstcome(ctx, "consoles.db")
	defer s.stop()
	from := 0
	claim := func(people int) func() figure {
		return func() figure {
			id := b.campaign(ctx, s, -1)
			leave := watch(ctx, s, id, people)
			defer leave()
			from += b.claims
			return drive(ctx, at(s, id, sequential(from)), b.claims, 256, watchedRate, "issued")
		}
	}
	var latency [2]string
	noting := func(n int, run func() figure) func() figure {
		return func() figure {
			f := run()
			latency[n] = latencies(f.result.Latency.P50, f.result.Latency.P99, f.result.Latency.Max)
			return f
		}
	}
	c := b.pair(noting(0, claim(openConsoles)), noting(1, claim(0)))
	b.printRate(fmt.Sprintf("winners, open loop, %d consoles open", openConsoles), c, "none open", "")
	b.printCPU(c, wantConsoles)
	b.print("… latency of the last round", latency[0], latency[1], "", "")
	c = b.pair(claim(0), claim(0))
	b.printRate("the same twice, none open", c, "none open", "")
	b.printCPU(c, "")
}

// watch opens Live pages of a campaign, waits until each has heard of it, and returns what closes them.
func watch(ctx context.Context, s *server, id string, people int) (leave func()) {
	ctx, leave = context.WithCancel(ctx)
	var heard sync.WaitGroup
	for range people {
		ask := value(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/console/campaigns/"+id+"/events", nil))
		answer := value(http.DefaultClient.Do(ask))
		if answer.StatusCode != http.StatusOK {
			must(fmt.Errorf("a console is answered %s", answer.Status))
		}
		heard.Add(1)
		go func() {
			defer answer.Body.Close()
			_, _ = io.ReadFull(answer.Body, make([]byte, 1))
			heard.Done()
			_, _ = io.Copy(io.Discard, answer.Body)
		}()
	}
	heard.Wait()
	return leave
}
