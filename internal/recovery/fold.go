package recovery

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
)

// A LineHistory is the ledger's data about the log of a campaign's line.
type LineHistory struct {
	// Log is where the log is, with the first offset that counts; nil if the line has no log.
	Log *firstcome.LineLog
	// Epochs has the offset at which each epoch begins in the log. The ledger may have forgotten some.
	Epochs map[int64]int64
}

// A Folded is a folded log: who is in line by its records. Coupons remove people from the line: see Coupon.
type Folded struct {
	Epoch      int64     // the highest of the log
	Generation int64     // the highest of the log
	Latest     time.Time // the latest of the log, by the gate's clock
	epochs     map[int64]*foldedEpoch
	coupons    map[firstcome.UserID][]firstcome.Coupon // of users who are in a record
}

// A foldedEpoch has the records of an epoch that belong to its highest generation.
type foldedEpoch struct {
	began, generation int64
	stands            map[firstcome.UserID]stand
}

// A stand has the highest ticket of a generation that a user got, and the highest that they gave back.
type stand struct {
	ticket, left int64
	at           time.Time
}

// Fold folds the records of a campaign's log, by offset, into who is in line. campaignUID is the campaign's UID: records with another one belong to
// another campaign with the same id, and do not count.
//
// The records of an epoch count from the offset at which it begins to that of the next epoch. An epoch that the ledger has forgotten begins with its
// first record. After a record of a later epoch, records of an earlier epoch do not count: their node had stalled, and told no user these places.
func Fold(uid string, history LineHistory, records iter.Seq2[int64, line.Record]) *Folded {
	f := &Folded{epochs: map[int64]*foldedEpoch{}, coupons: map[firstcome.UserID][]firstcome.Coupon{}}
	begins := slices.SortedFunc(maps.Keys(history.Epochs), func(a, b int64) int { return cmp.Compare(history.Epochs[a], history.Epochs[b]) })
	now := int64(0) // the epoch at the offset
	for offset, r := range records {
		if r.CampaignUID != uid {
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

// add adds a record that counts.
func (f *Folded) add(r line.Record) {
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

// Coupon adds a coupon of the ledger, or an open dead letter.
func (f *Folded) Coupon(c firstcome.Coupon) {
	for _, e := range f.epochs {
		if _, is := e.stands[c.User]; is {
			f.coupons[c.User] = append(f.coupons[c.User], c)
			return
		}
	}
}

// Forget removes all coupons, before the ledger is read again.
func (f *Folded) Forget() { clear(f.coupons) }

// A Waiting is a user who is in line.
type Waiting struct {
	User   firstcome.UserID
	Ticket int64
	At     time.Time // about when they joined, by the gate's clock: never before the time of an earlier ticket
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// People returns the users who are in line, in the order of their tickets; the last ticket of the log; and how many other users have left the line
// with a coupon. Generations up to ended are over, as the ledger knows.
//
// Only the highest generation of an epoch is in line. If the epoch began with that generation, people who joined it in the epoch before are in line
// too, and so on. Two users may have the same ticket after a ledger was restored. The user of the later epoch keeps it, and the other goes to the
// end.
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
	for n := len(people) - 2; n >= 0; n-- { // a place that was logged late was assigned before the next one
		people[n].At = earlier(people[n].At, people[n+1].At)
	}
	for _, one := range twice {
		last++
		one.Ticket, one.At = last, people[len(people)-1].At
		people = append(people, one)
	}
	return people, last, passed
}
