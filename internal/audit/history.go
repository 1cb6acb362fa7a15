package audit

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// A change is what is kept of one.
type change struct {
	version int64
	at      time.Time
	number  int64  // of a void
	user    uint64 // of a void: a hash
	detail  uint64 // a hash of what its line in the audit log says, of a void of the reason
	kind    firstcome.ChangeKind
	known   bool // a coupon or a dead letter says of a void that it was
}

// termsFrom are the terms that a change holds.
type termsFrom struct {
	version  int64
	at       time.Time
	quantity int64
	opensAt  time.Time
	closesAt time.Time
	pace     *firstcome.Pace
	feed     *firstcome.Feed
	standby  bool
}

// A span is a time in which no claim may be issued anything, ends excluded.
type span struct {
	from, to time.Time // to zero: it goes on
	why      string
	pause    bool // a direct issue passes it
}

// history reads the changes of a campaign and says what they made of it.
type history struct {
	*Breaches
	campaign       *Campaign
	changes        []change
	terms          []termsFrom // in the order of their versions, without refused ones
	effective      int         // index of those in force; of a lower quantity, once the gate has taken it
	paused, closed bool
	decides        bool // a claim may have been answered before its coupon was recorded: by terms that it had, or may have had
	rebuilds       int64
	forgotten      [][2]int64 // versions, ends excluded, that a ledger forgot which was restored from a backup
	closedAt       time.Time
	spans          []span
	voids          []int32 // indexes of changes by number
}

// hash returns 64 bits of a text.
func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

func (h *history) change(c Change) {
	switch n := len(h.changes); {
	case n == 0 && c.Version > 1:
		h.add("changes", "the changes begin with version %d", c.Version)
	case n > 0 && c.Kind == firstcome.ChangeReconcile:
		h.forgotten = append(h.forgotten, [2]int64{h.changes[n-1].version, c.Version})
	case n > 0 && c.Version > h.changes[n-1].version+1:
		h.add("changes", "version %d follows version %d", c.Version, h.changes[n-1].version)
	}
	if n := len(h.changes); n > 0 && c.At.Before(h.changes[n-1].at) {
		h.add("changes", "version %d is of %s, before the version before it, of %s", c.Version, text(c.At), text(h.changes[n-1].at))
	}
	kept := change{version: c.Version, at: c.At, kind: c.Kind, number: c.Number, user: hash(string(c.User)), detail: hash(c.Logged)}
	h.changes = append(h.changes, kept)
	if c.Refused && (!h.campaign.Remote || c.Kind != firstcome.ChangeTerms) {
		h.add("changes", "version %d was refused, and only a remote gate refuses, only terms", c.Version)
	}
	switch {
	case c.Wrong != nil:
		h.add("unreadable", "version %d: %v", c.Version, c.Wrong)
		h.decides = true
	case c.Kind == firstcome.ChangeTerms && !c.Refused:
		h.take(c)
	case c.Kind == firstcome.ChangeReconcile:
		h.reconcile(c)
	case c.Kind != firstcome.ChangeTerms && c.Kind != firstcome.ChangeVoid:
		h.turn(c.Change)
	}
}

// take takes terms. A lower quantity is only proposed until a remote gate has it.
func (h *history) take(c Change) {
	if err := c.Terms.Check(); err != nil {
		h.add("changes", "version %d has terms that no campaign may have: %v", c.Version, err)
	}
	if h.closed {
		h.add("changes", "version %d changes the terms of a closed campaign", c.Version)
	}
	h.terms = append(h.terms, termsFrom{c.Version, c.At, c.Terms.Quantity, c.Terms.OpensAt, c.Terms.ClosesAt, c.Terms.Pace, c.Terms.Feed, c.Terms.Standby})
	h.decides = h.decides || c.Terms.Answer == firstcome.Decided
	last := len(h.terms) - 1
	proposed := h.campaign.Remote && c.Version > h.campaign.Applied && last > 0 && c.Terms.Quantity < h.terms[h.effective].quantity
	if !proposed {
		h.effective = last
	}
}

// reconcile takes what the gate said after a restored backup. When what the ledger forgot happened nobody knows, so a pause that was under way
// bars nothing.
func (h *history) reconcile(c Change) {
	if last := len(h.spans) - 1; last >= 0 && h.spans[last].to.IsZero() {
		h.spans = h.spans[:last]
	}
	h.closed, h.decides = false, true // by terms that are forgotten
	h.take(c)
	h.effective = len(h.terms) - 1
	h.paused, h.closed = c.Paused, c.Closed
	if c.Paused || c.Closed {
		h.spans = append(h.spans, span{from: c.At, why: "the reconcile", pause: !c.Closed})
	}
	h.closedAt = c.ClosedAt
}

// turn pauses, resumes or closes. Each does so once.
func (h *history) turn(c firstcome.Change) {
	if c.Kind == firstcome.ChangeRebuild {
		h.rebuilds++
		return
	}
	was := [2]bool{h.paused, h.closed}
	last := len(h.spans) - 1
	if last >= 0 && h.spans[last].to.IsZero() {
		h.spans[last].to = c.At
	}
	switch c.Kind {
	case firstcome.ChangePause:
		h.paused = true
		h.spans = append(h.spans, span{from: c.At, why: "the pause", pause: true})
	case firstcome.ChangeResume:
		h.paused = false
	case firstcome.ChangeClose:
		if !h.closed {
			h.closedAt = c.At
		}
		h.closed = true
		h.spans = append(h.spans, span{from: c.At, why: "the close"})
	default:
		h.add("changes", "version %d is of the unknown kind %q", c.Version, c.Kind)
		return
	}
	if was == [2]bool{h.paused, h.closed} || was[1] {
		h.add("changes", "version %d, a %s, changes nothing: it was so, or the campaign was closed", c.Version, c.Kind)
	}
}

// read says what all of the changes make of the campaign, and holds its row against that.
func (h *history) read() {
	for n, c := range h.changes {
		if c.kind == firstcome.ChangeVoid {
			h.voids = append(h.voids, int32(n))
		}
	}
	slices.SortStableFunc(h.voids, func(a, b int32) int { return cmp.Compare(h.changes[a].number, h.changes[b].number) })
	if len(h.changes) == 0 {
		h.add("changes", "there is no change, and the first one makes the campaign")
		return
	}
	if first := h.changes[0]; first.version != 1 || first.kind != firstcome.ChangeTerms {
		h.add("changes", "version %d, a change of the kind %s, is the first: version 1 has to be, with terms", first.version, first.kind)
	}
	if last := h.changes[len(h.changes)-1].version; last != h.campaign.Version {
		h.add("changes", "the campaign is at version %d, its changes end at %d", h.campaign.Version, last)
	}
	if h.campaign.Row != nil {
		h.row()
	}
}

// termsOf returns the terms of a version, nil if it does not hold any.
func (h *history) termsOf(version int64) (index int, terms *termsFrom) {
	n, ok := slices.BinarySearchFunc(h.terms, version, func(t termsFrom, version int64) int { return cmp.Compare(t.version, version) })
	if !ok {
		return -1, nil
	}
	return n, &h.terms[n]
}

// forgot tells whether a version is one of those that the ledger has forgotten, and returns the index of the terms after it.
func (h *history) forgot(version int64) (index int, is bool) {
	for _, f := range h.forgotten {
		if f[0] < version && version < f[1] {
			n, found := slices.BinarySearchFunc(h.terms, f[1], func(t termsFrom, version int64) int { return cmp.Compare(t.version, version) })
			return n, found
		}
	}
	return -1, false
}

// barred returns the span in which an instant is, nil if it is in none. At its ends either order is possible.
func (h *history) barred(at time.Time) *span {
	for n := range h.spans {
		if s := &h.spans[n]; at.After(s.from) && (s.to.IsZero() || at.Before(s.to)) {
			return s
		}
	}
	return nil
}

// void returns the change that voided a user's number at an instant, or nil.
func (h *history) void(number int64, at time.Time, user firstcome.UserID) *change {
	n, _ := slices.BinarySearchFunc(h.voids, number, func(n int32, number int64) int { return cmp.Compare(h.changes[n].number, number) })
	for ; n < len(h.voids) && h.changes[h.voids[n]].number == number; n++ {
		if c := &h.changes[h.voids[n]]; c.at.Equal(at) && c.user == hash(string(user)) {
			return c
		}
	}
	return nil
}

// end reports the voids of which neither a coupon nor a dead letter tells.
func (h *history) end() {
	for _, n := range h.voids {
		if c := h.changes[n]; !c.known {
			h.add("changes", "version %d voids number %d, and neither a coupon nor a dead letter was voided then, of that user", c.version, c.number)
		}
	}
}
