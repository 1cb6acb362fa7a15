package main

import (
	"context"

	"github.com/firstcome/firstcome/test/services"
)

// A row is a group of figures; an error ends it by must. What is wanted of them stands beside the figure in
// the measuring function; this list is the whole of what is measured.
type row struct {
	name    string
	measure func(context.Context, *bench)
	needs   []services.Kind // which it starts
}

// run measures the row and returns the error that ended it.
func (r row) run(ctx context.Context, b *bench) (err error) {
	defer func() {
		switch ended := recover().(type) {
		case nil:
		case failure:
			err = ended.error
		default:
			panic(ended)
		}
	}()
	r.measure(ctx, b)
	return nil
}

// must ends a row at an error: run says which row, once the servers of the row are stopped.
func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// value returns the result of a call, and ends a row at its error.
func value[T any](result T, err error) T {
	must(err)
	return result
}

// A failure is an error that ended a row.
type failure struct{ error }

var rows = []row{
	{name: "winners", measure: winners},
	{name: "floor", measure: floor},
	{name: "refused", measure: refused},
	{name: "nginx", measure: nginx},
	{name: "latency", measure: latency},
	{name: "campaigns", measure: campaigns},
	{name: "consoles", measure: consoles},
	{name: "growth", measure: growth},
	{"claimants", claimants, []services.Kind{services.Redis}},
	{"sql-gates", sqlGates, []services.Kind{services.MariaDB, services.PostgreSQL}},
	{"decided", decided, []services.Kind{services.Redis, services.MariaDB}},
	{"set-ups", setUps, []services.Kind{services.Redis, services.MariaDB}},
	{"recorded", recorded, []services.Kind{services.Redis, services.MariaDB, services.PostgreSQL}},
	{"nodes", nodes, []services.Kind{services.Redis, services.MariaDB}},
	{"drain", recorder, []services.Kind{services.Redis, services.MariaDB, services.PostgreSQL}},
	{"drain-topic", recorderByTopic, []services.Kind{services.Redis, services.Kafka, services.MariaDB, services.PostgreSQL}},
	{name: "line", measure: lineOnSQLite.measure},
	{"line-redis", lineOnRedis.measure, []services.Kind{services.Redis, services.MariaDB}},
	{"line-servers", lineServers, []services.Kind{services.MariaDB, services.PostgreSQL}},
	{"line-topic", lineInTopic, []services.Kind{services.Kafka, services.Redis, services.MariaDB}},
	{name: "line-read", measure: lineRead},
	{name: "streams", measure: streams},
	{"pace", pace, []services.Kind{services.PostgreSQL}},
	{"memory", memory, []services.Kind{services.Redis}},
	{"prizes", prizes, []services.Kind{services.Redis, services.MariaDB}},
	{"before", before, []services.Kind{services.Redis, services.MariaDB}},
}

// References: a bare net/http handler that reads the same body and returns the
// same bytes under the same load (winners, refused); one campaign (campaigns); nobody who watches (consoles); the
// same campaign when it was new (growth); a call of the script for each claim
// (claimants); a transaction for each claim (sql-gates); winners on SQLite (decided);
// one node (nodes); a plain script (set-ups); the same database as the gate (recorded); issuing by the same gate (the rows of lines); a line without a log (line-topic); net/http alone (nginx); plain inserts of the same rows (drain);
// drain (drain-topic); a campaign without prizes (prizes); the binary that -before names (before).
const (
	wantWinners   = "≥ 0.50"
	wantCPU       = "≤ 2.5"
	wantRefused   = "≥ 0.80"
	wantCalls     = "≤ 5"
	wantLanes     = "< 1"
	wantLatency   = "p99 ≤ 10 ms"
	wantCampaigns = "≥ 0.60"
	wantConsoles  = "as the same twice"
	wantGrowth    = "≥ 0.80"
	wantMemory    = "≤ 64"
	wantStart     = "≤ 3 s"
	wantClaimants = "≥ 4"
	wantSQLGate   = "≥ 8"
	wantDecided   = "≥ 0.70"
	wantRecorded  = "p99 ≤ 50 ms"
	wantItself    = "≥ 0.80"
	wantNodes     = "≥ 1 within the noise"
	wantRecorder  = "≥ 0.60"
	wantHolder    = "≤ 96 bytes"
	wantJournal   = "0"
	wantTold      = "max ≤ 1,500 ms"
	wantStreams   = "< 250 MB"
	wantLine      = "≥ 0.90"
	wantJoin      = "≥ 0.80"
	wantRelay     = "≥ 0.70"
	wantTopic     = "≥ 0.80"
	wantTopicFew  = "≥ 0.60"
	wantServe     = "≥ 0.50"
	wantBefore    = "≥ 0.97"
	wantPrizes    = "≥ 0.97"
	wantPace      = "≥ 0.98, at most a bucket ahead"

	wantServeServer = "≥ 0.40"
)
