package issue

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
)

// known caches coupons that the gate has recently returned. Their users are the likeliest to ask again, and are answered without a call of the gate.
// The cache has a fixed size: a user's coupon goes to one of a few entries of one set, and replaces the oldest. It has no pointers that the garbage
// collector must follow.
//
// It allocates when it first stores a coupon. A gate beside the ledger lets no node repeat a coupon, so its nodes never need the memory.
type known struct {
	seed maphash.Seed
	make sync.Once
	sets atomic.Pointer[[knownSets]set]
}

const (
	// 131,072 coupons of 144 bytes: enough that the second claims of a hundred thousand users cost the ledger nothing.
	knownSets = 1 << 13
	// 16 tags fill a cache line, and a set of 16 rarely fills up before the whole cache does. With sets of 4, one in thirty of 40,000 users was
	// forgotten.
	ways = 16
	// knownUser is the length of the longest user id that is cached: a UUID's, and a few bytes more.
	knownUser = 40
)

// A set has the entries of users whose hashes share a part.
type set struct {
	sync.Mutex
	next    uint32       // the entry to replace next
	tags    [ways]uint32 // another part of the hashes; 0 if free
	holders [ways]holder
	entries [ways]entry
}

// A holder is a user of a campaign.
type holder struct {
	queue  uint64 // its serial
	length uint8
	user   [knownUser]byte
}

// holderOf returns the key of a user, or false if the id is too long.
func holderOf(q *queue, user firstcome.UserID) (holder, bool) {
	h := holder{queue: q.serial, length: uint8(len(user) & 0xff)}
	return h, copy(h.user[:], user) == len(user)
}

// An entry is a coupon without the fields of its key.
type entry struct {
	number, version    int64
	generation, ticket int64
	issuedAt, at       int64 // microseconds since 1970
	terms              uint32
	direct             bool
	until              time.Duration
	changes            uint64
	code               [16]byte
}

// slot returns the set of a user, and their tag there.
func (k *known) slot(sets *[knownSets]set, user firstcome.UserID) (s *set, tag uint32) {
	hash := maphash.String(k.seed, string(user))
	return &sets[hash%knownSets], uint32(hash>>32) | 1
}

// find returns the index of a holder's entry, or ways if there is none.
func (s *set) find(h *holder, tag uint32) int {
	for way := range s.tags {
		if s.tags[way] == tag && s.holders[way] == *h {
			return way
		}
	}
	return ways
}

// put caches a decision with a coupon, until the given time or the next change of the campaign.
func (k *known) put(q *queue, d *firstcome.Decision, until time.Duration, changes uint64) {
	e := entry{
		generation: d.Coupon.Generation, ticket: d.Coupon.Ticket,
		number: d.Coupon.Number, terms: uint32(d.Coupon.TermsVersion & math.MaxUint32), version: d.Version, direct: d.Coupon.Direct,
		issuedAt: d.Coupon.IssuedAt.UnixMicro(), at: d.At.UnixMicro(), until: until, changes: changes,
	}
	h, short := holderOf(q, d.Coupon.User)
	if !short || !d.Coupon.Recorded || len(d.Coupon.Code) != len(e.code) {
		return
	}
	copy(e.code[:], d.Coupon.Code)
	k.make.Do(func() { k.sets.Store(new([knownSets]set)) })
	s, tag := k.slot(k.sets.Load(), d.Coupon.User)
	s.Lock()
	defer s.Unlock()
	way := s.find(&h, tag)
	if way == ways {
		way = int(s.next % ways)
		s.next++
	}
	s.tags[way], s.holders[way], s.entries[way] = tag, h, e
}

// get returns the decision that the user holds a coupon, if it may be repeated now.
func (k *known) get(q *queue, user firstcome.UserID, now time.Duration) (firstcome.Decision, bool) {
	sets := k.sets.Load()
	h, short := holderOf(q, user)
	if sets == nil || !short {
		return firstcome.Decision{}, false
	}
	s, tag := k.slot(sets, user)
	s.Lock()
	way := s.find(&h, tag)
	if way == ways {
		s.Unlock()
		return firstcome.Decision{}, false
	}
	e := s.entries[way]
	s.Unlock()
	if now >= e.until || e.changes != q.changes.Load() {
		return firstcome.Decision{}, false
	}
	return firstcome.Decision{
		Outcome: firstcome.AlreadyIssued,
		At:      time.UnixMicro(e.at).UTC(),
		Version: e.version,
		Coupon: firstcome.Coupon{
			Campaign: q.id, Number: e.number, User: user, Code: string(e.code[:]),
			IssuedAt: time.UnixMicro(e.issuedAt).UTC(), TermsVersion: int64(e.terms), Generation: e.generation, Ticket: e.ticket, Direct: e.direct, Recorded: true,
		},
	}, true
}
