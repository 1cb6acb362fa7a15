package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/firstcome/firstcome/internal/load"
)

// A target is where a round's claims go: those of connection n to servers[n modulo
// their number], and claim n to campaigns[n modulo theirs].
type target struct {
	servers   []*server
	campaigns []string
	user      func(n int) string
	get       string                   // has every request read this path
	read      func(user string) string // has each twentieth request read a user's claim, by this name in its path
}

// at returns a target on one server.
func at(s *server, campaign string, user func(n int) string) target {
	return target{servers: []*server{s}, campaigns: []string{campaign}, user: user}
}

// worker returns one connection's way to ask a server, until ctx ends.
func (t target) worker(ctx context.Context, s *server) load.Ask {
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		return func(int) load.Answer { return load.Answer{Trouble: err.Error()} }
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	var post, get fasthttp.Request
	var response fasthttp.Response
	post.Header.SetMethod(fasthttp.MethodPost)
	post.Header.SetContentType("application/json")
	post.Header.SetHost(s.address)
	get.Header.SetHost(s.address)
	reader, writer := bufio.NewReader(conn), bufio.NewWriter(conn)
	return func(n int) load.Answer {
		claims, user := "/v1/campaigns/"+t.campaigns[n%len(t.campaigns)]+"/claims", t.user(n)
		request := &post
		post.SetRequestURI(claims)
		post.SetBodyString(`{"user_id":"` + user + `"}`)
		if t.get != "" {
			request = &get
			get.SetRequestURI(t.get)
		}
		if t.read != nil && n%20 == 0 {
			request = &get
			get.SetRequestURI(claims + "/" + t.read(user))
		}
		if err := request.Write(writer); err != nil {
			return load.Answer{Trouble: err.Error()}
		}
		if err := writer.Flush(); err != nil {
			return load.Answer{Trouble: err.Error()}
		}
		if err := response.Read(reader); err != nil {
			return load.Answer{Trouble: err.Error()}
		}
		return load.ParseAnswer(response.StatusCode(), response.Body())
	}
}

// A figure is what a round gave.
type figure struct {
	perSecond float64
	cpu       time.Duration // of the servers, a claim
	result    *load.Result
}

// cpu returns the processor time that the servers have used.
func (t target) cpu() (sum time.Duration) {
	for _, s := range t.servers {
		sum += s.cpu()
	}
	return sum
}

// drive sends claims to a target and checks that all got the outcome wanted.
func drive(ctx context.Context, t target, claims, connections int, rate float64, outcome string) figure {
	before := t.cpu()
	var opened atomic.Int64
	connected, hangUp := context.WithCancel(ctx)
	defer hangUp()
	r := load.Drive(ctx, load.Options{Users: claims, Repeat: 1, Concurrency: connections, Rate: rate}, func() load.Ask {
		return t.worker(connected, t.servers[int(opened.Add(1))%len(t.servers)])
	})
	after := t.cpu()
	if outcome != "" && r.Outcomes[outcome] != int64(claims) {
		must(fmt.Errorf("of %d claims not all were %s: %v %v", claims, outcome, r.Outcomes, r.Trouble))
	}
	return figure{float64(claims) / r.Seconds, (after - before) / time.Duration(claims), r}
}

// copyAnswer has the reference answer as the server does to one claim.
func copyAnswer(ctx context.Context, from, to *server, campaign, user string) {
	answer := value(http.Post("http://"+from.address+"/v1/campaigns/"+campaign+"/claims", "application/json", bytes.NewReader([]byte(`{"user_id":"`+user+`"}`))))
	defer answer.Body.Close()
	put := value(http.NewRequestWithContext(ctx, http.MethodPut, "http://"+to.address+"/", answer.Body))
	put.Header.Set("Content-Type", answer.Header.Get("Content-Type"))
	put.Header.Set("Status", strconv.Itoa(answer.StatusCode))
	done := value(http.DefaultClient.Do(put))
	must(done.Body.Close())
}
