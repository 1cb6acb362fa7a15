package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
)

// plainScript is what a shop writes first: a counter, and who holds which number. Nothing of it reaches a database.
const plainScript = `
local number = redis.call('HGET', KEYS[2], ARGV[1])
if number then return {'already_issued', tonumber(number)} end
if redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[2]) then return {'sold_out', 0} end
number = redis.call('INCR', KEYS[1])
redis.call('HSET', KEYS[2], ARGV[1], number)
return {'issued', number}`

// A scripting decides each claim by a call of plainScript. Its client sends the calls of all requests over the same
// connections, and does not wait for one answer before it sends the next call.
type scripting struct {
	redis  rueidis.Client
	script *rueidis.Lua
}

// serve is the handler of claims.
func (s *scripting) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		User string `json:"user_id"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id := r.PathValue("id")
	answer, err := s.script.Exec(r.Context(), s.redis, []string{"plain:{" + id + "}:last", "plain:{" + id + "}:holders"}, []string{body.User, "1000000000"}).ToArray()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	outcome, _ := answer[0].ToString()
	number, _ := answer[1].AsInt64()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(map[string]int{"issued": http.StatusCreated, "already_issued": http.StatusOK, "sold_out": http.StatusGone}[outcome])
	fmt.Fprintf(w, `{"outcome":"%s","coupon":{"number":%d,"user_id":%q,"code":"0123456789ABCDEF","issued_at":%q}}`,
		outcome, number, body.User, time.Now().UTC().Format(time.RFC3339Nano))
}

// serveScripting is the reference, as a process.
func serveScripting(ctx context.Context, address, url string) error {
	options, err := rueidis.ParseURL(url)
	if err != nil {
		return err
	}
	options.DisableCache, options.AlwaysPipelining = true, true
	client, err := rueidis.NewClient(options)
	if err != nil {
		return err
	}
	defer client.Close()
	s := &scripting{client, rueidis.NewLuaScript(plainScript)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/campaigns/{id}/claims", s.serve)
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	return serveHTTP(ctx, address, mux)
}

// setUps: winners of each set-up against a plain script, in turn, at both widths, by scattered ids. Their
// promises differ: see docs/benchmarks.md.
func setUps(ctx context.Context, b *bench) {
	var h hosts
	defer h.close()
	plain := b.reference(ctx, "-script", h.database(ctx, services.Redis))
	defer plain.stop()
	redis := b.node(ctx, h.fleet(ctx, services.MariaDB)...)
	defer redis.stop()
	database := b.node(ctx, "--ledger", h.database(ctx, services.MariaDB))
	defer database.stop()
	sqlite := b.firstcome(ctx, "set-ups.db")
	defer sqlite.stop()
	for _, connections := range []int{64, 256} {
		what := fmt.Sprintf("winners, %d connections, user ids scattered", connections)
		rates := b.against(what, "a plain script",
			b.scripted(ctx, plain, connections),
			setUp{"Redis decides, answered when decided, MariaDB records", b.scatter(ctx, redis, firstcome.Decided, connections)},
			setUp{"Redis decides, answered when recorded by MariaDB", b.scatter(ctx, redis, firstcome.Recorded, connections)},
			setUp{"MariaDB decides", b.scatter(ctx, database, "", connections)},
			setUp{"SQLite decides", b.scatter(ctx, sqlite, "", connections)})
		b.printRate(what+", answered when recorded by MariaDB", compare(rates[1], rates[2]), "which decides itself", wantItself)
	}
}

// A setUp is one of several that take turns.
type setUp struct {
	name  string
	issue func() figure
}

// scripted has claims of a new campaign decided by a plain script.
func (b *bench) scripted(ctx context.Context, plain *server, connections int) func() figure {
	return func() figure {
		b.made++
		return drive(ctx, at(plain, "plain-"+strconv.Itoa(b.made), scattered(b.made*b.claims)), b.claims, connections, 0, "issued")
	}
}

// scatter has claims of a new campaign decided by a node, and waits until all is recorded.
func (b *bench) scatter(ctx context.Context, node *server, answer firstcome.AnswerWhen, connections int) func() figure {
	return func() figure {
		id := b.campaign(ctx, node, -1, answer)
		f := drive(ctx, at(node, id, scattered(b.made*b.claims)), b.claims, connections, 0, "issued")
		drained(ctx, node, id)
		return f
	}
}

// against has a reference and some set-ups take turns, prints a row for each of these, and returns the rates of their
// rounds. All have the same reference.
func (b *bench) against(what, name string, reference func() figure, all ...setUp) [][]float64 {
	var refs []float64
	rates := make([][]float64, len(all))
	for range b.rounds {
		refs = append(refs, reference().perSecond)
		for n, s := range all {
			rates[n] = append(rates[n], s.issue().perSecond)
		}
	}
	for n, s := range all {
		b.printRate(what+", "+s.name, compare(rates[n], refs), name, "")
	}
	return rates
}

// compare returns the comparison of the rates of rounds with those of a reference in the same rounds.
func compare(rates, refs []float64) comparison {
	ratios := make([]float64, len(rates))
	for n := range rates {
		ratios[n] = rates[n] / refs[n]
	}
	return comparison{got: median(slices.Clone(rates)), reference: median(slices.Clone(refs)), ratio: median(ratios)}
}
