package sim

import (
	"fmt"

	"github.com/firstcome/firstcome/internal/recovery"
)

// A server is what becomes of the gate's memory in a schedule.
type server struct {
	durable bool // it syncs before it answers, and has no replica: a restart brings all back
	runs    int
	outages int
	follows bool   // it has a replica that takes over while nodes still reach the server
	broken  bool   // it lost something that no restart brings back
	copy    memory // an earlier state that may come back: of a replica that lagged, or of a file that was cut
}

// lasts reports whether the server has kept all that it confirmed, and was sure to.
func (s *server) lasts() bool { return s.durable && !s.broken }

// another returns another run of the server.
func (s *server) another() recovery.Run {
	s.runs++
	return recovery.Run{ID: fmt.Sprint("run ", s.runs), Durable: s.durable}
}

// outage has one happen to the gate's server. Only one that is not durable comes back with less than it had.
func (t *town) outage() {
	t.outages++
	n := t.IntN(4)
	t.broken = t.broken || n > 0
	switch {
	case n == 0:
		t.say("the gate's server restarts")
		t.gate.becomes(t.gate.copied(), t.another())
	case n == 1:
		t.say("the gate's server loses the campaign")
		t.gate.loses(campaign)
	case n == 2 && t.IntN(2) == 0:
		t.say("the gate's server is emptied")
		empty := blank(t.gate.run)
		empty.named = false
		t.gate.becomes(empty, t.gate.run)
	case !t.durable:
		t.say("the gate's server goes back to an older state")
		t.gate.goesBack(t.copy.copied(), t.another())
	}
	t.watch()
}
