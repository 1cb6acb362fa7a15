package flow

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
)

// known holds coupons that the gate named lately, so that their users, who ask
// again first, are answered without asking it. It holds at most knownCoupons in
// two halves a shard: when the young half is full it becomes the old one and
// the old one is forgotten.
type known struct {
	seed   maphash.Seed
	shards [knownShards]struct {
		sync.Mutex
		young, old map[holder]entry
	}
}

const (
	knownShards = 16
	// About 100 bytes a coupon: 25 MB at most, and a crowd of a quarter of a
	// million that asks twice costs the ledger nothing.
	knownCoupons = 1 << 18
	halfShard    = knownCoupons / knownShards / 2
)

type holder struct {
	queue *queue
	user  firstcome.UserID
}

// An entry is a coupon without what its key says already.
type entry struct {
	number, terms, version int64
	issuedAt, at           int64 // microseconds since 1970
	until                  int64 // nanoseconds since the Issuer's start
	epoch                  uint64
	code                   [16]byte
}

func newKnown() *known { return &known{seed: maphash.MakeSeed()} }

// put remembers a decision that names a coupon, until the given instant or the
// end of the queue's epoch.
func (k *known) put(q *queue, d *firstcome.Decision, until time.Duration, epoch uint64) {
	e := entry{
		number: d.Coupon.Number, terms: d.Coupon.TermsVersion, version: d.Version,
		issuedAt: d.Coupon.IssuedAt.UnixMicro(), at: d.At.UnixMicro(),
		until: int64(until), epoch: epoch,
	}
	if !d.Coupon.Recorded || len(d.Coupon.Code) != copy(e.code[:], d.Coupon.Code) || len(d.Coupon.Code) != len(e.code) {
		return
	}
	s := &k.shards[maphash.String(k.seed, string(d.Coupon.User))%knownShards]
	s.Lock()
	defer s.Unlock()
	if s.young == nil || len(s.young) >= halfShard {
		s.old, s.young = s.young, make(map[holder]entry)
	}
	s.young[holder{q, d.Coupon.User}] = e
}

// get returns the decision that the user holds a coupon, if it may be repeated now.
func (k *known) get(q *queue, user firstcome.UserID, now time.Duration) (firstcome.Decision, bool) {
	s := &k.shards[maphash.String(k.seed, string(user))%knownShards]
	s.Lock()
	e, ok := s.young[holder{q, user}]
	if !ok {
		e, ok = s.old[holder{q, user}]
	}
	s.Unlock()
	if !ok || int64(now) >= e.until || e.epoch != q.epoch.Load() {
		return firstcome.Decision{}, false
	}
	return firstcome.Decision{
		Outcome: firstcome.AlreadyIssued,
		At:      time.UnixMicro(e.at).UTC(),
		Version: e.version,
		Coupon: firstcome.Coupon{
			Campaign: q.id, Number: e.number, User: user, Code: string(e.code[:]),
			IssuedAt: time.UnixMicro(e.issuedAt).UTC(), TermsVersion: e.terms, Recorded: true,
		},
	}, true
}
