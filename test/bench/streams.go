package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/firstcome/firstcome/client"
)

// followers is how many follow their places at once, and nearer is how many are in line before them: more than are served
// meanwhile.
const followers, nearer = 10_000, 2_000

// lineRead: everybody's look at a line, against a bare handler that answers the same bytes.
func lineRead(ctx context.Context, b *bench) {
	s, bare := b.both(ctx, "line-read.db")
	defer s.stop()
	defer bare.stop()
	pace, id := int64(10), "read"
	calls := client.New("http://"+s.address, "")
	defer calls.CloseIdle()
	value(calls.CreateCampaign(ctx, client.NewCampaign{ID: id, Name: "bench", Pace: &client.Pace{PerSecond: &pace}, Coupon: client.CouponSpec{Benefit: []byte(`{}`)}}))
	drive(ctx, at(s, id, sequential(0)), 1000, 64, 0, "waiting")
	path := "/v1/campaigns/" + id + "/line"
	copyPath(ctx, s, bare, path)
	look := func(s *server) func() figure {
		t := at(s, id, sequential(0))
		t.get = path
		return func() figure { return drive(ctx, t, b.claims, 64, 0, "") }
	}
	c := b.pair(look(s), look(bare))
	b.printRate("GET …/line, 64 connections", c, "bare", wantLine)
	b.printCPU(c, "")
}

// copyPath has the reference answer as the server does to a look at a path.
func copyPath(ctx context.Context, from, to *server, path string) {
	answer := value(http.Get("http://" + from.address + path))
	defer answer.Body.Close()
	put := value(http.NewRequestWithContext(ctx, http.MethodPut, "http://"+to.address+"/", answer.Body))
	put.Header.Set("Content-Type", answer.Header.Get("Content-Type"))
	put.Header.Set("Status", strconv.Itoa(answer.StatusCode))
	must(value(http.DefaultClient.Do(put)).Body.Close())
}

// streams: many people follow their places by a stream while others join their line, and some of the followers read
// nothing. A place is late from the instant at which a coupon was issued to a ticket before it.
func streams(ctx context.Context, b *bench) {
	s := b.serve(ctx, nil, "--ledger", "sqlite:"+b.dir+"/streams.db", "--max-streams", strconv.Itoa(2*followers))
	defer s.stop()
	people := min(followers, b.claims)
	calls := client.New("http://"+s.address, "")
	defer calls.CloseIdle()
	pace, id := int64(10), "streams"
	value(calls.CreateCampaign(ctx, client.NewCampaign{ID: id, Name: "bench", Pace: &client.Pace{PerSecond: &pace}, Coupon: client.CouponSpec{Benefit: []byte(`{}`)}}))
	user := sequential(0)
	drive(ctx, at(s, id, user), nearer+people, 64, 0, "waiting")
	before := s.memory()
	all, hangUp := context.WithCancel(ctx)
	defer hangUp()
	f := &followed{heard: map[int64][]time.Time{}}
	for n := range people {
		conn := value((&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+n%4))}}).DialContext(ctx, "tcp", s.address))
		context.AfterFunc(all, func() { _ = conn.Close() })
		value(fmt.Fprintf(conn, "GET /v1/campaigns/%s/claims/%s/events HTTP/1.1\r\nHost: %s\r\n\r\n", id, user(nearer+n), s.address))
		lines := bufio.NewReaderSize(conn, 1<<10)
		for line := []byte(nil); !bytes.HasPrefix(line, []byte("data: ")); {
			line = value(lines.ReadSlice('\n'))
		}
		if n%100 != 99 { // the others read nothing more
			f.all.Go(func() { f.read(lines) })
		}
	}
	const seconds, rate = 10, 2000
	joined := drive(ctx, at(s, id, func(n int) string { return "joins-" + user(n) }), min(seconds*rate, b.claims), 64, rate, "waiting")
	after, open := s.memory(), s.metric("firstcome_open_streams")
	hangUp()
	f.all.Wait()
	late := f.late(ctx, calls, id)
	b.print(fmt.Sprintf("a place told to %d streams while %.0f claims a second join", int(open), joined.perSecond),
		latencies(millis(late[len(late)/2]), millis(late[len(late)*99/100]), millis(late[len(late)-1])), "", "", wantTold)
	b.print("… memory of the node (RSS)", fmt.Sprintf("%d MB", after>>20), fmt.Sprintf("%d MB before", before>>20), "", wantStreams)
	b.print("… the claims that join", latencies(joined.result.Latency.P50, joined.result.Latency.P99, joined.result.Latency.Max), "", "", "")
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A followed line is what its followers heard.
type followed struct {
	all   sync.WaitGroup
	mu    sync.Mutex            // guards heard
	heard map[int64][]time.Time // when each heard that a ticket had been served, by the ticket
}

// read reads a stream until it ends.
func (f *followed) read(lines *bufio.Reader) {
	was := int64(0) // the ticket that was served when a place was told last
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		var p client.Place
		now := time.Now()
		if json.Unmarshal(data, &p) != nil || p.Ticket == 0 {
			continue
		}
		serving := p.Ticket - p.Ahead
		f.mu.Lock()
		for passed := was; was > 0 && passed < serving; passed++ { // the first of them waited longest to be told
			f.heard[passed] = append(f.heard[passed], now)
		}
		f.mu.Unlock()
		was = serving
	}
}

// late returns how late it was told that each ticket was served, in order: behind the instant of its coupon.
func (f *followed) late(ctx context.Context, calls *client.Client, id string) (late []time.Duration) {
	issued := map[int64]time.Time{}
	must(calls.Coupons(ctx, id, true, func(c client.Coupon) error {
		if c.Ticket != nil {
			issued[*c.Ticket] = c.IssuedAt.Time
		}
		return nil
	}))
	for ticket, times := range f.heard {
		if at, ok := issued[ticket]; ok {
			for _, heard := range times {
				late = append(late, heard.Sub(at))
			}
		}
	}
	if len(late) == 0 {
		must(fmt.Errorf("nobody heard a place"))
	}
	slices.Sort(late)
	return late
}
