package redis

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/internal/doctor"
)

// slowTrip is a tenth of what a claim should take: each waits for up to two round trips.
const slowTrip = time.Millisecond

// examineTimeout bounds an examination. It is far more than one takes at a Redis that answers.
const examineTimeout = 30 * time.Second

// Examine reports whether a Redis may be a gate, and which coupons it may lose when it restarts. It writes
// nothing, and needs no right to CONFIG: it reports which findings are missing without that.
func Examine(ctx context.Context, options Options) doctor.Findings {
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	e := &exam{ctx: ctx}
	client, err := connect(options)
	if err != nil {
		e.Add(doctor.Fail, "gate", fixOf(err, "check host, port, user, password and TLS, and that the server runs"), "%v", err)
		return e.Findings
	}
	defer client.Close()
	e.conn = &conn{client: client, options: options}
	e.latency()
	nodes := client.Nodes()
	for _, address := range slices.Sorted(maps.Keys(nodes)) {
		e.server(address, nodes[address])
	}
	e.clock()
	e.rights()
	e.layout()
	return e.Findings
}

// fixOf returns what to do about a server that does not answer: fix, unless it hangs.
func fixOf(err error, fix string) string {
	if !hangs(err) {
		return fix
	}
	return "see why the server hangs: swap, a full disk of the append-only file, a slow command (SLOWLOG GET 10 once it answers), a stopped process"
}

// An exam looks at one Redis, of one server or of several.
type exam struct {
	doctor.Findings
	ctx  context.Context
	conn *conn
}

// latency measures how long an answer takes.
func (e *exam) latency() {
	const what = "gate"
	took, err := doctor.Median(func() error { return e.conn.Ping(e.ctx) })
	if err != nil {
		e.Add(doctor.Fail, what, fixOf(err, "do what the message says"), "it does not answer: %v", err)
		return
	}
	e.Hold(took <= slowTrip, doctor.Warn, what, "bring nodes and Redis closer together: each claim waits for it",
		"it answers in %v (median of %d)", took, doctor.Rounds)
}

// clock holds Redis's clock, which opens and closes campaigns, against this machine's.
func (e *exam) clock() {
	const what = "the gate's clock"
	err := e.Clock(what, "set both with NTP: Redis's clock opens and closes campaigns", func() (time.Time, error) { return e.conn.now(e.ctx) })
	if err != nil {
		e.Add(doctor.Warn, what, "ACL SETUSER NAME +time", "the clock cannot be read: %v", err)
	}
}

// rights tries what the scripts do.
func (e *exam) rights() {
	err := e.conn.checkRights(e.ctx)
	if err != nil {
		e.Add(doctor.Fail, "the gate's rights", "ACL SETUSER NAME "+Rights, "%v", err)
		return
	}
	e.Add(doctor.OK, "the gate's rights", "", "the user may run all that the scripts need")
}

// layout says whether this firstcome knows how the gate's keys are written.
func (e *exam) layout() {
	const what = "the gate's layout"
	of, err := e.conn.text(e.ctx, layoutKey)
	switch {
	case err != nil:
		e.Add(doctor.Fail, what, "do what the message says", "it cannot be read: %v", err)
	case of == "":
		e.Add(doctor.OK, what, "", "none yet: the first start of serve says %d", layout)
	default:
		e.Hold(knows(of), doctor.Fail, what, "run the newer firstcome on this node too", "%s; this firstcome knows those up to %d", of, layout)
	}
}

// server looks at one server of a Redis.
func (e *exam) server(address string, node rueidis.Client) {
	text, err := node.Do(e.ctx, node.B().Info().Build()).ToString()
	if err != nil {
		e.Add(doctor.Fail, "the gate's server", "ACL SETUSER NAME +info", "%s: INFO cannot be read: %v", address, classify(err))
		return
	}
	info := parseInfo(text)
	e.version(address, info)
	e.eviction(info)
	e.memory(info)
	e.persistence(node, info)
	e.replicas(info)
	e.clients(info)
}

func (e *exam) version(address string, info map[string]string) {
	name, version := "Redis", info["redis_version"]
	if v := info["valkey_version"]; v != "" {
		name, version = "Valkey", v
	}
	mode := cmp.Or(info["redis_mode"], info["server_mode"]) // Valkey's name for it from 8.0 on
	e.Hold(atLeast(info["redis_version"], 6, 2) && mode != "sentinel", doctor.Fail, "the gate's server", "Redis 6.2 or later, or Valkey; of a Sentinel name the primary with ?master_set=NAME",
		"%s %s at %s, %s, %s, up for %s s", name, version, address, mode, info["role"], info["uptime_in_seconds"])
	if mode != "cluster" {
		e.Hold(info["role"] == "master", doctor.Fail, "role", "name the primary: a replica decides nothing", "%s", info["role"])
	}
}

func (e *exam) eviction(info map[string]string) {
	grade := doctor.Fail
	if e.conn.options.AnyEviction {
		grade = doctor.Warn
	}
	e.Hold(info["maxmemory_policy"] == "noeviction", grade, "eviction", "set maxmemory-policy to noeviction: else holders and journals are thrown away, and coupons issued twice",
		"%s", info["maxmemory_policy"])
}

// A server at nearlyFull parts of its memory has some minutes left in a rush.
const nearlyFull = 0.8

func (e *exam) memory(info map[string]string) {
	const what = "memory"
	used, most, machine := number(info, "used_memory"), number(info, "maxmemory"), number(info, "total_system_memory")
	switch {
	case most == 0 && machine > 0:
		e.Add(doctor.Warn, what, "set maxmemory to about half of the machine's: then a full Redis answers OOM, and is not killed by the system",
			"%d MiB used, no limit, of %d MiB of the machine", used>>20, machine>>20)
	case most == 0:
		e.Add(doctor.Warn, what, "set maxmemory", "%d MiB used, no limit", used>>20)
	default:
		e.Hold(float64(used) < nearlyFull*float64(most), doctor.Warn, what, "raise maxmemory: when it is full, claims are answered 503", "%d of %d MiB used", used>>20, most>>20)
	}
}

// persistence says what a restart, and the end of the machine, lose of what the
// ledger does not have yet.
func (e *exam) persistence(node rueidis.Client, info map[string]string) {
	const what = "persistence"
	if info["aof_enabled"] != "1" {
		e.Add(doctor.Warn, what, "set appendonly yes", "the append-only file is off: a restart loses what was issued and not recorded since the last snapshot")
	} else {
		e.Hold(info["aof_last_write_status"] == "ok", doctor.Fail, what, "make room on Redis's disk: until it can write, it refuses writes",
			"the append-only file is on; its last write was %s", info["aof_last_write_status"])
		e.sync(node)
		e.defaultUser(node, info)
	}
	e.Hold(info["rdb_last_bgsave_status"] == "ok", doctor.Warn, "snapshots", "see Redis's log: with stop-writes-on-bgsave-error it refuses writes",
		"the last one was %s", info["rdb_last_bgsave_status"])
}

// sync says how often the append-only file is synced, which INFO does not tell.
func (e *exam) sync(node rueidis.Client) {
	const what = "appendfsync"
	set, err := settings(e.ctx, node)
	switch {
	case err != nil:
		e.Add(doctor.Warn, what, "look it up where the service is set up: it should be everysec or always", "the user may not read CONFIG, so it cannot be known")
	case set[notWhileRewriting] == "yes" && set[what] != "no":
		e.Add(doctor.Warn, what, "set "+notWhileRewriting+" no", "%s, but not while Redis rewrites its file: the end of the machine loses what it answered meanwhile", set[what])
	case set[what] == "always":
		e.Add(doctor.OK, what, "", "always: what is answered survives the end of the machine")
	case set[what] == "everysec":
		e.Add(doctor.OK, what, "", "everysec: the end of the machine loses up to a second or two of what is not recorded")
	default:
		e.Add(doctor.Warn, what, "set it to everysec or always", "%s: the end of the machine loses what the system had not written", set[what])
	}
}

// replicas says what becomes of a primary that is cut off. INFO tells how many good
// replicas there are only where min-replicas-to-write asks for some.
func (e *exam) replicas(info map[string]string) {
	const what = "replicas"
	count := number(info, "connected_slaves")
	good, asked := info["min_slaves_good_slaves"]
	switch {
	case asked:
		e.Add(doctor.OK, what, "", "%d, %s of them good; without enough of them Redis refuses writes", count, good)
	case count == 0:
		e.Add(doctor.OK, what, "", "none: while this server is away, claims are answered 503")
	default:
		e.Add(doctor.Warn, what, "set min-replicas-to-write 1 and min-replicas-max-lag 2",
			"%d, and min-replicas-to-write is 0: a primary that is cut off goes on issuing what a fail-over then loses", count)
	}
}

func (e *exam) clients(info map[string]string) {
	most, used := number(info, "maxclients"), number(info, "connected_clients")
	if most == 0 {
		return
	}
	// A node has a few connections that all calls share, and one for its subscriptions.
	e.Hold(most-used >= 100, doctor.Warn, "clients", "raise maxclients", "%d of %d", used, most)
}

// number returns a number of INFO, or 0.
func number(info map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(info[name], 10, 64)
	return n
}
