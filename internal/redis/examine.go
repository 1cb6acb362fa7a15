package redis

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/firstcome/firstcome/internal/doctor"
)

// slowTrip is a tenth of what a claim should take: each waits for up to two round trips.
const slowTrip = time.Millisecond

// examineTimeout bounds an examination. It is far more than one takes at a Redis that answers.
const examineTimeout = 30 * time.Second

// Examine says whether a Redis may be a gate, and what it loses when. It writes
// nothing, needs no right to CONFIG, and says what it cannot know without it.
func Examine(ctx context.Context, options Options) doctor.Findings {
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	e := &exam{ctx: ctx}
	client, err := connect(options)
	if err != nil {
		e.Add(doctor.Fail, "gate", "check host, port, user, password and TLS, and that the server runs", "%v", err)
		return e.Findings
	}
	defer client.Close()
	e.gate = &Gate{client: client, options: options}
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

// An exam looks at one Redis, of one server or of several.
type exam struct {
	doctor.Findings
	ctx  context.Context
	gate *Gate
}

// latency measures how long an answer takes.
func (e *exam) latency() {
	const what = "gate"
	took, err := doctor.Median(func() error { return e.gate.Ping(e.ctx) })
	if err != nil {
		e.Add(doctor.Fail, what, "do what the message says", "it does not answer: %v", err)
		return
	}
	e.Hold(took <= slowTrip, doctor.Warn, what, "bring nodes and Redis closer together: each claim waits for it",
		"it answers in %v (median of %d)", took, doctor.Rounds)
}

// clock holds Redis's clock, which opens and closes campaigns, against this machine's.
func (e *exam) clock() {
	const what = "the gate's clock"
	err := e.Clock(what, "set both with NTP: Redis's clock opens and closes campaigns", func() (time.Time, error) { return e.gate.now(e.ctx) })
	if err != nil {
		e.Add(doctor.Warn, what, "ACL SETUSER NAME +time", "the clock cannot be read: %v", err)
	}
}

// rights tries what the scripts do.
func (e *exam) rights() {
	err := e.gate.checkRights(e.ctx)
	if err != nil {
		e.Add(doctor.Fail, "the gate's rights", "ACL SETUSER NAME "+Rights, "%v", err)
		return
	}
	e.Add(doctor.OK, "the gate's rights", "", "the user may run all that the scripts need")
}

// layout says whether this firstcome knows how the gate's keys are written.
func (e *exam) layout() {
	const what = "the gate's layout"
	of, err := e.gate.text(e.ctx, layoutKey)
	switch {
	case err != nil:
		e.Add(doctor.Fail, what, "do what the message says", "it cannot be read: %v", err)
	case of == "":
		e.Add(doctor.OK, what, "", "none yet: the first start of serve says %d", layout)
	default:
		e.Hold(knows(of), doctor.Fail, what, "run the newer firstcome on this node too", "%s; this firstcome knows those up to %d", of, layout)
	}
}
