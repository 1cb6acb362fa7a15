// Package verdict judges what a design did from what its users were told and what the database has. It knows nothing of designs: one rule for all.
package verdict

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Never stands for an instant that did not come.
const Never = time.Duration(math.MaxInt64)

// Told is the last answer that a user got.
type Told int

// A user is told one of these. Nothing is also what a user was told who got only errors, or an answer that the result comes later and no result.
const (
	Nothing Told = iota
	Issued       // they have a coupon
	SoldOut      // there are none left
	Refused      // nothing was decided
)

// A User is somebody who asked, once or several times. Instants are by one monotonic clock for all users.
type User struct {
	ID       string
	Sent     time.Duration // before the first request was sent
	Answered time.Duration // when the first answer was complete; an error is none; Never: there was none
	Told     Told          // in the end
	Settled  time.Duration // when a user who was told Issued or SoldOut could know it
	Place    int64         // the number or rank that the design gave, from 1; 0: none
}

// A Row is a coupon in the database.
type Row struct {
	User   string
	Stored time.Duration // when the database was first seen to have it
}

// A History is a run.
type History struct {
	Quantity int64
	Users    []User
	Rows     []Row // in the order of their ids
	// Named are the places that the design itself says it lost. Places of rows are none of them.
	Named []Places
}

// Places are the places from First to Last.
type Places struct{ First, Last int64 }

// A Verdict says how far a run was from exact. All counts are zero in a run that was.
type Verdict struct {
	Stored   int64 `json:"stored"`   // rows
	Unsold   int64 `json:"unsold"`   // coupons that nobody got although more people asked than there were coupons; not wrong by itself
	Oversold int64 `json:"oversold"` // rows beyond the quantity
	Promised int64 `json:"promised"` // users told that they have a coupon, beyond the quantity
	Twice    int64 `json:"twice"`    // users with more than one row
	Lost     int64 `json:"lost"`     // users told that they have a coupon, who have no row
	Reported int64 `json:"reported"` // of the lost: whose place the design itself names as lost
	Named    int64 `json:"named"`    // places that the design itself names as lost
	Untold   int64 `json:"untold"`   // users with a row who were told something else, or nothing
	Open     int64 `json:"open"`     // users who were told nothing by the end, and have no row
	Denied   int64 `json:"denied"`   // users told that all are gone, while coupons were left in the end: at most as many as were left
	Refused  int64 `json:"refused"`  // users told that nothing was decided, and have no row; not wrong by itself
	Order    Order `json:"order"`
	Delay    Times `json:"delay"` // from the answer that said issued to the row, in seconds; only rows that came later than it
}

// Order is how often people were overtaken. A pair counts if the answer of the first was complete before the request of the second was sent.
type Order struct {
	Overtaken int64 `json:"overtaken"` // pairs in which the second has a smaller place than the first, or has one and the first has not
	Farthest  int64 `json:"farthest"`  // by how many places at most
}

// Times are the median, the 95th and 99th percentile, and the longest.
type Times struct{ P50, P95, P99, Max float64 }

// Wrong is how many things went wrong for people, order aside.
func (v Verdict) Wrong() int64 {
	return v.Oversold + v.Promised + v.Twice + v.Lost + v.Untold + v.Open + v.Denied
}

// Of returns the verdict on a run, in O(n log n).
func Of(h History) Verdict {
	rows := make(map[string]int, len(h.Rows)) // place of a user's first row by id, from 1
	stored := make(map[string]time.Duration, len(h.Rows))
	twice := map[string]bool{}
	for n, row := range h.Rows {
		if rows[row.User] > 0 {
			twice[row.User] = true
			continue
		}
		rows[row.User], stored[row.User] = n+1, row.Stored
	}
	v := Verdict{Stored: int64(len(h.Rows)), Oversold: max(0, int64(len(h.Rows))-h.Quantity), Twice: int64(len(twice))}
	for _, p := range h.Named {
		v.Named += p.Last - p.First + 1
	}
	v.Unsold = max(0, min(h.Quantity, int64(len(h.Users)))-int64(len(rows)))
	var promised, denied int64
	var delays []float64
	for _, u := range h.Users {
		has := rows[u.ID] > 0
		switch {
		case u.Told == Issued:
			promised++
			if !has {
				v.Lost++
				if slices.ContainsFunc(h.Named, func(p Places) bool { return p.First <= u.Place && u.Place <= p.Last }) {
					v.Reported++
				}
			} else if late := stored[u.ID] - u.Settled; late > 0 {
				delays = append(delays, late.Seconds())
			} else {
				delays = append(delays, 0)
			}
		case has:
			v.Untold++
		case u.Told == Nothing:
			v.Open++
		case u.Told == SoldOut:
			denied++
		case u.Told == Refused:
			v.Refused++
		}
	}
	v.Promised, v.Denied = max(0, promised-h.Quantity), min(denied, v.Unsold)
	v.Delay, v.Order = TimesOf(delays), order(h.Users, rows, int64(len(h.Rows)))
	return v
}

// TimesOf returns the percentiles of times in seconds, by the nearest rank.
func TimesOf(seconds []float64) Times {
	if len(seconds) == 0 {
		return Times{}
	}
	slices.Sort(seconds)
	at := func(part float64) float64 { return seconds[max(0, int(math.Ceil(part*float64(len(seconds))))-1)] }
	return Times{at(.5), at(.95), at(.99), seconds[len(seconds)-1]}
}

// order counts the pairs that are out of order. It goes through the users in the order in which they asked, and keeps the places of those who had
// been answered by then in a Fenwick tree.
func order(users []User, rows map[string]int, last int64) (o Order) {
	places := placesOf(users, rows, last)
	answered := byInstant(users, places, func(u User) time.Duration { return u.Answered })
	asked := byInstant(users, places, func(u User) time.Duration { return u.Sent })
	var highest int64
	for _, p := range places {
		highest = max(highest, p)
	}
	tree, count, worst, next := make([]int64, highest+1), int64(0), int64(0), 0
	for _, second := range asked {
		for ; next < len(answered) && users[answered[next]].Answered < users[second].Sent; next++ {
			place := places[answered[next]]
			for n := place; n < int64(len(tree)); n += n & -n {
				tree[n]++
			}
			count, worst = count+1, max(worst, place)
		}
		place := places[second]
		if place == highest { // has none, or the last: overtakes nobody
			continue
		}
		before := count
		for n := place; n > 0; n -= n & -n {
			before -= tree[n]
		}
		o.Overtaken += before
		o.Farthest = max(o.Farthest, worst-place)
	}
	return o
}

// unknown is the place of a user who has a coupon, and whose place nobody knows.
const unknown = -1

// placesOf returns a place for each user, from 1: what the design gave; if it gives none, where the user's row is among the rows. Those without a
// coupon have one more than all others.
func placesOf(users []User, rows map[string]int, last int64) []int64 {
	places := make([]int64, len(users))
	numbered := slices.ContainsFunc(users, func(u User) bool { return u.Place > 0 })
	none := last
	for n, u := range users {
		row := rows[u.ID]
		switch {
		case row == 0 && u.Told != Issued:
		case numbered:
			places[n] = cmp.Or(u.Place, unknown)
		default:
			places[n] = cmp.Or(int64(row), unknown)
		}
		none = max(none, places[n])
	}
	for n := range places {
		if places[n] == 0 {
			places[n] = none + 1
		}
	}
	return places
}

// byInstant returns the indexes of users in the order of an instant. Those without it, or without a known place, are left out.
func byInstant(users []User, places []int64, of func(User) time.Duration) (indexes []int) {
	for n := range users {
		if of(users[n]) != Never && places[n] != unknown {
			indexes = append(indexes, n)
		}
	}
	slices.SortFunc(indexes, func(a, b int) int { return cmp.Compare(of(users[a]), of(users[b])) })
	return indexes
}
