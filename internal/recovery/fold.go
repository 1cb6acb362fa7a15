package recovery

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// A LineHistory is what the ledger knows of the log of a campaign's line.
type LineHistory struct {
	// Log is where the line is logged now, from the first offset on that counts; nil: nowhere.
	Log *firstcome.LineLog
	// Epochs has the offset at which epochs begin there. The ledger may have forgotten some.
	Epochs map[int64]int64
}

// A Folded log says who is in line by it. Coupons take people out of it: see Coupon.
type Folded struct {
	Epoch      int64     // the highest that the log has
	Generation int64     // likewise
	Latest     time.Time // likewise, by the gate's clock
	epochs     map[int64]*foldedEpoch
	coupons    map[firstcome.UserID][]firstcome.Coupon // of those who are in an epoch
}

// A foldedEpoch is what an epoch's records say of the highest generation that they are of.
type foldedEpoch struct {
	began, generation int64
	stands            map[firstcome.UserID]stand
}

// A stand is where a user stands in the line of a generation: the highest tickets that they were given, and gave back.
type stand struct {
	ticket, left int64
	at           time.Time
}

// Fold folds the records of a campaign's log, by offset, into who is in line. marker is the campaign's: records of another campaign of its id
// say nothing.
//
// The records of an epoch count from where the epoch begins up to where the next one begins. An epoch that the ledger has forgotten begins with
// its first record. After a record of a later epoch no record of a stale epoch counts: its node was frozen, and told nobody a place.
func Fold(marker string, history LineHistory, records iter.Seq2[int64, flow.LineRecord]) *Folded {
	f := &Folded{epochs: map[int64]*foldedEpoch{}, coupons: map[firstcome.UserID][]firstcome.Coupon{}}
	begins := slices.SortedFunc(maps.Keys(history.Epochs), func(a, b int64) int { return cmp.Compare(history.Epochs[a], history.Epochs[b]) })
	now := int64(0) // the epoch at the offset
	for offset, r := range records {
		if r.Marker != marker {
			continue
		}
		f.Epoch, f.Generation = max(f.Epoch, r.Epoch), max(f.Generation, r.Generation, r.Began)
		if r.At.After(f.Latest) {
			f.Latest = r.At
		}
		for len(begins) > 0 && history.Epochs[begins[0]] <= offset {
			now, begins = max(now, begins[0]), begins[1:]
		}
		if begin, known := history.Epochs[r.Epoch]; r.Epoch < now || known && offset < begin {
			continue
		}
		now = r.Epoch
		f.add(r)
	}
	return f
}

// add takes over a record that counts.
func (f *Folded) add(r flow.LineRecord) {
	e := f.epochs[r.Epoch]
	if e == nil || r.Generation > e.generation {
		e = &foldedEpoch{r.Began, r.Generation, map[firstcome.UserID]stand{}}
		f.epochs[r.Epoch] = e
	}
	if r.Generation < e.generation {
		return
	}
	s := e.stands[r.User]
	switch {
	case r.Left:
		s.left = max(s.left, r.Number)
	case r.Number > s.ticket || r.Number == s.ticket && r.At.After(s.at):
		s.ticket, s.at = r.Number, r.At
	}
	e.stands[r.User] = s
}

// Coupon takes over a coupon of the ledger, or an open dead letter.
func (f *Folded) Coupon(c firstcome.Coupon) {
	for _, e := range f.epochs {
		if _, is := e.stands[c.User]; is {
			f.coupons[c.User] = append(f.coupons[c.User], c)
			return
		}
	}
}

// Forget forgets all coupons, because the ledger is read again.
func (f *Folded) Forget() { clear(f.coupons) }

// A Waiting is a user who is in line.
type Waiting struct {
	User   firstcome.UserID
	Ticket int64
	At     time.Time // an instant by the gate's clock, about when they joined: never before that of an earlier ticket
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// People returns the users who are in line, in the order of their tickets, the last ticket that the log has, and how many other users were in
// line and have got a coupon since. Generations up to ended are over, as the ledger knows.
//
// Only the highest generation of an epoch is in line. If the epoch began with that generation, people of the epoch before are in it, too, and so
// on. Two users may have one ticket after a ledger was put back: the one of the later epoch keeps it, and the other goes to the end.
func (f *Folded) People(ended int64) (people []Waiting, last, passed int64) {
	type place struct {
		firstcome.Ticket
		epoch int64
		at    time.Time
	}
	places, left := map[firstcome.UserID]place{}, map[firstcome.UserID]firstcome.Ticket{}
	for _, epoch := range slices.Backward(slices.Sorted(maps.Keys(f.epochs))) {
		e := f.epochs[epoch]
		if e.generation <= ended {
			break
		}
		for user, s := range e.stands {
			last = max(last, s.ticket, s.left)
			if t := (firstcome.Ticket{Generation: e.generation, Number: s.ticket}); s.ticket > 0 && places[user].Before(t) {
				places[user] = place{t, epoch, s.at}
			}
			if t := (firstcome.Ticket{Generation: e.generation, Number: s.left}); left[user].Before(t) {
				left[user] = t
			}
		}
		if e.generation != e.began {
			break
		}
	}
	for user, p := range places {
		switch {
		case !left[user].Before(p.Ticket):
			delete(places, user)
		case slices.ContainsFunc(f.coupons[user], func(c firstcome.Coupon) bool {
			of := firstcome.Ticket{Generation: c.Generation, Number: c.Ticket}
			return c.VoidedAt.IsZero() || !of.Before(p.Ticket) || c.IssuedAt.After(p.at)
		}):
			delete(places, user)
			passed++
		}
	}
	users := slices.SortedFunc(maps.Keys(places), func(a, b firstcome.UserID) int {
		return cmp.Or(cmp.Compare(places[a].Number, places[b].Number), cmp.Compare(places[b].epoch, places[a].epoch), cmp.Compare(a, b))
	})
	people = make([]Waiting, 0, len(users))
	var twice []Waiting
	for _, user := range users {
		one := Waiting{user, places[user].Number, places[user].at}
		if len(people) > 0 && people[len(people)-1].Ticket == one.Ticket {
			twice = append(twice, one)
			continue
		}
		people = append(people, one)
	}
	for n := len(people) - 2; n >= 0; n-- { // a place that was logged late was given before the next one
		people[n].At = earlier(people[n].At, people[n+1].At)
	}
	for _, one := range twice {
		last++
		one.Ticket, one.At = last, people[len(people)-1].At
		people = append(people, one)
	}
	return people, last, passed
}
