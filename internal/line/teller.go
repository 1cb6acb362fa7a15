package line

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/point"
)

// A Record is a record in the log of a line: a user got a ticket, or gave it back.
type Record struct {
	firstcome.Logged
	firstcome.Ticket
	User firstcome.UserID
	Left bool
}

// A Log appends to the logs of lines.
type Log interface {
	// Append returns nil once all in-sync replicas of the campaign's log have all records, at offsets that count. After an error some of them may be
	// in the log, or may still be appended.
	Append(ctx context.Context, id firstcome.CampaignID, records []Record) error
}

// A TellerGate is the part of a gate that a Teller needs.
type TellerGate interface {
	gate.Places
	gate.Epochs
}

// A Teller makes sure that no user is told a place that the gate may forget. If the line has a log, each place is appended to it first:
//
//	gate issues a ticket → Kafka appends it to the log → gate confirms that its epoch still decides → user is told
//
// A recovery freezes the gate before it looks up where the log ends, and reads the log up to there. So if the epoch still decides after the append,
// each later recovery finds the record. If it does not, no user was told the place, and a user who asks again gets the answer of the next epoch. Only
// a Teller tells users their places: those of claims, and those of gate.Places.
type Teller struct {
	TellerGate
	log Log // nil if this node has none

	mu   sync.Mutex // guards what follows
	told map[firstcome.CampaignID]*toldLine
}

// A toldLine has the tickets of one generation and epoch whose records this node has appended while the epoch still decided.
type toldLine struct {
	epoch, generation int64
	joined, left      map[int64]uint64 // a bit for each ticket, 64 at each key
}

// of returns the tickets with records of one kind.
func (l *toldLine) of(left bool) map[int64]uint64 {
	if left {
		return l.left
	}
	return l.joined
}

// toldLines is the most lines that a Teller remembers. When there are more, it forgets them all, and appends each place again before it tells it.
const toldLines = 1024

// NewTeller returns a Teller of a gate and a log. If log is nil, no user is told a place in a line that has a log.
func NewTeller(gate TellerGate, log Log) *Teller {
	return &Teller{TellerGate: gate, log: log, told: map[firstcome.CampaignID]*toldLine{}}
}

// A Telling is a place to tell its user.
type Telling struct {
	User  firstcome.UserID
	Place firstcome.Place
}

// Told reports whether a place may be told without calling Tell.
func (t *Teller) Told(id firstcome.CampaignID, p firstcome.Place) bool { return t.kept(id, p, false) }

// kept reports whether a place needs no record, or this node has appended it: that the user joined, or left.
func (t *Teller) kept(id firstcome.CampaignID, p firstcome.Place, left bool) bool {
	if p.Log == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.told[id]
	return l != nil && l.epoch == p.Log.Epoch && l.generation == p.Generation && l.of(left)[p.Ticket/64]&(1<<(p.Ticket%64)) != 0
}

// Tell appends places to the log, and returns nil once they may be told. They must be places for which Told is false, of one campaign and one answer
// of its gate.
func (t *Teller) Tell(ctx context.Context, id firstcome.CampaignID, all []Telling) error {
	records := make([]Record, len(all))
	for n, one := range all {
		records[n] = recordOf(one.User, one.Place, false)
	}
	return t.keep(ctx, id, records)
}

func recordOf(user firstcome.UserID, p firstcome.Place, left bool) Record {
	return Record{Logged: *p.Log, Ticket: firstcome.Ticket{Generation: p.Generation, Number: p.Ticket}, User: user, Left: left}
}

// keep appends records of one epoch and generation, and returns an error unless the epoch still decides.
func (t *Teller) keep(ctx context.Context, id firstcome.CampaignID, records []Record) error {
	if t.log == nil {
		return fmt.Errorf("%w: start each node with the same --line", firstcome.ErrLineLogAway)
	}
	point.Reach(point.Joined)
	if err := t.log.Append(ctx, id, records); err != nil {
		return err
	}
	point.Reach(point.Appended)
	if err := t.Decides(ctx, id, records[0].Epoch); err != nil {
		return fmt.Errorf("%w: the gate's epoch ended after it issued the place: %w", firstcome.ErrGateUnavailable, err)
	}
	t.note(id, records)
	return nil
}

// note remembers the records of one epoch and generation.
func (t *Teller) note(id firstcome.CampaignID, records []Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	epoch, generation := records[0].Epoch, records[0].Generation
	l := t.told[id]
	switch {
	case l != nil && l.epoch == epoch && l.generation > generation:
		return // somebody left who was in line earlier
	case l == nil || l.epoch != epoch || l.generation != generation:
		if len(t.told) >= toldLines {
			clear(t.told)
		}
		l = &toldLine{epoch, generation, map[int64]uint64{}, map[int64]uint64{}}
		t.told[id] = l
	}
	for _, r := range records {
		l.of(r.Left)[r.Number/64] |= 1 << (r.Number % 64)
	}
}

// Place implements gate.Places. If it returns an error because the place is not in the log yet, the user keeps the place and is told later. It
// returns firstcome.ErrNoTicket only once the log says, too, that the user's last place has ended: the node that took the user out of the line may
// have died before it appended that.
func (t *Teller) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	place, coupon, err := t.TellerGate.Place(ctx, id, user)
	switch {
	case errors.Is(err, firstcome.ErrNoTicket) && !t.kept(id, place, true):
		if failed := t.keep(ctx, id, []Record{recordOf(user, place, true)}); failed != nil {
			err = failed
		}
	case err == nil && coupon.Number == 0 && !t.Told(id, place):
		err = t.Tell(ctx, id, []Telling{{user, place}})
	}
	return place, coupon, err
}

// Leave implements gate.Places. It returns nil only once the log says that the user left.
func (t *Teller) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, error) {
	left, err := t.TellerGate.Leave(ctx, id, user)
	if err == nil && !t.kept(id, left, true) {
		err = t.keep(ctx, id, []Record{recordOf(user, left, true)})
	}
	return left, err
}
