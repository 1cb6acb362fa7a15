package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// A Grade says how bad a Finding is.
type Grade string

// The grades.
const (
	OK   Grade = "OK"
	Warn Grade = "WARN" // it works, and something is not as it should be, or cannot be known
	Fail Grade = "FAIL" // serve would not start, or would not keep a promise
)

// A Finding is what there is to say of one thing, and what mends it.
type Finding struct {
	Grade            Grade
	What, Found, Fix string
}

const (
	// slowTrip is a tenth of what a claim should take: each waits for up to two round trips.
	slowTrip = time.Millisecond
	trips    = 11
	// tolerated is how far Redis's clock may be from this machine's.
	tolerated = time.Second
)

// Examine says of a Redis whether it may be a gate, and what it loses when. What it
// writes to try the user's rights it deletes. It needs no right to CONFIG, and says what
// it then cannot know.
func Examine(ctx context.Context, options Options) []Finding {
	const what = "gate"
	client, err := connect(options)
	if err != nil {
		return []Finding{{Fail, what, err.Error(), "host, port, user, password and TLS are right, and the server runs?"}}
	}
	defer client.Close()
	e := &exam{ctx: ctx, gate: &Gate{client: client, options: options}}
	e.latency()
	nodes := client.Nodes()
	for _, address := range slices.Sorted(maps.Keys(nodes)) {
		e.server(address, nodes[address])
	}
	e.clock()
	e.rights()
	return e.findings
}

// An exam looks at one Redis, of one server or of several.
type exam struct {
	ctx      context.Context
	gate     *Gate
	findings []Finding
}

func (e *exam) add(g Grade, what, fix, found string, args ...any) {
	if g == OK {
		fix = ""
	}
	e.findings = append(e.findings, Finding{g, what, fmt.Sprintf(found, args...), fix})
}

// hold adds a finding that is OK if a condition holds, and else has a grade.
func (e *exam) hold(condition bool, otherwise Grade, what, fix, found string, args ...any) {
	if condition {
		otherwise = OK
	}
	e.add(otherwise, what, fix, found, args...)
}

// latency measures how long an answer takes.
func (e *exam) latency() {
	const what = "gate"
	took := make([]time.Duration, trips)
	for n := range took {
		started := time.Now()
		if err := e.gate.Ping(e.ctx); err != nil {
			e.add(Fail, what, "what the message says", "it does not answer: %v", err)
			return
		}
		took[n] = time.Since(started)
	}
	slices.Sort(took)
	e.hold(took[trips/2] <= slowTrip, Warn, what, "bring nodes and Redis closer together: each claim waits for it",
		"it answers in %v (median of %d)", took[trips/2].Round(10*time.Microsecond), trips)
}

// clock holds Redis's clock, which opens and closes campaigns, against this machine's.
func (e *exam) clock() {
	const what = "the gate's clock"
	ctx, cancel := context.WithTimeout(e.ctx, callTimeout)
	defer cancel()
	before := time.Now()
	parts, err := e.gate.client.Do(ctx, e.gate.client.B().Time().Build()).AsStrSlice()
	middle := before.Add(time.Since(before) / 2)
	if err != nil || len(parts) != 2 {
		e.add(Warn, what, "ACL SETUSER NAME +time", "it cannot be told: %v", classify(err))
		return
	}
	seconds, _ := strconv.ParseInt(parts[0], 10, 64)
	fraction, _ := strconv.ParseInt(parts[1], 10, 64)
	apart := time.Unix(seconds, 1000*fraction).Sub(middle)
	e.hold(apart.Abs() <= tolerated, Warn, what, "set both with NTP: Redis's clock opens and closes campaigns", "%v from this machine's", apart.Round(time.Millisecond))
}

// rights tries what the scripts do.
func (e *exam) rights() {
	ctx, cancel := context.WithTimeout(e.ctx, callTimeout)
	defer cancel()
	err := e.gate.checkRights(ctx)
	if err != nil {
		e.add(Fail, "the gate's rights", "ACL SETUSER NAME "+Rights, "%v", err)
		return
	}
	e.add(OK, "the gate's rights", "", "the user may run all that the scripts need")
}
