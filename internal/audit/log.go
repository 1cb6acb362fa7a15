package audit

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
)

// logAudit holds the audit log against the changes, each of which has a line, in their order.
type logAudit struct {
	*Breaches
	changes   []change
	row       *Row
	next      int // change without a line
	retiredAt time.Time
	letters   map[int64]Line // that resolved dead letters
	direct    numbers        // issued directly
}

// numbers are ranges of numbers in their order, none next to another.
type numbers []Range

// add adds a range. Ranges come nearly in order.
func (n *numbers) add(r Range) {
	last := len(*n) - 1
	if last >= 0 && (*n)[last].last()+1 == r.First {
		(*n)[last].Count += r.Count
		return
	}
	at, _ := slices.BinarySearchFunc(*n, r.First, func(one Range, first int64) int { return cmp.Compare(one.First, first) })
	*n = slices.Insert(*n, at, r)
}

// has reports whether a number is in one of the ranges.
func (n numbers) has(number int64) bool {
	at, found := slices.BinarySearchFunc(n, number, func(one Range, number int64) int { return cmp.Compare(one.First, number) })
	return found || at > 0 && n[at-1].last() >= number
}

const (
	letterVoided   = "dead_letter.void"
	letterReplayed = "dead_letter.replay"
)

func (a *logAudit) line(l Line) {
	switch {
	case l.Action == "coupon.issue" && l.Issued > 0 && l.LastNumber >= l.Issued:
		a.direct.add(Range{First: l.LastNumber - l.Issued + 1, Count: l.Issued})
	case l.Action == "campaign.retire":
		a.retiredAt = l.At
	case l.Action == letterVoided || l.Action == letterReplayed:
		a.letters[l.Letter] = l
		// A dead letter without a coupon, or of a campaign that there was not yet, is voided without a change.
		if a.next < len(a.changes) && a.changes[a.next].logs(l) {
			a.next++
		}
	case strings.HasPrefix(l.Action, "campaign.") || l.Action == "coupon.void":
		a.match(l)
	}
}

// action returns that of the change's line.
func (c *change) action() string {
	switch {
	case c.version == 1:
		return "campaign.create"
	case c.kind == firstcome.ChangeTerms:
		return "campaign.update"
	case c.kind == firstcome.ChangeVoid:
		return "coupon.void"
	}
	return "campaign." + string(c.kind)
}

// logs tells whether a line is about the change, and keeps the reason of a void.
func (c *change) logs(l Line) bool {
	if c.kind == firstcome.ChangeVoid {
		same := (l.Action == c.action() || l.Action == letterVoided) && l.At.Equal(c.at) && l.Number == c.number && hash(string(l.User)) == c.user
		if same {
			c.detail = hash(l.Reason)
		}
		return same
	}
	return l.Action == c.action() && l.At.Equal(c.at) && l.Number == 0 && l.User == "" && hash(l.Detail) == c.detail
}

// match finds the change of a line: the next one, or the one after it.
func (a *logAudit) match(l Line) {
	rest := a.changes[a.next:]
	switch {
	case len(rest) > 0 && rest[0].logs(l):
		a.next++
	case len(rest) > 1 && rest[1].logs(l):
		a.unlogged(rest[0])
		a.next += 2
	case len(rest) > 0 && (rest[0].at.Equal(l.At) || rest[0].action() == l.Action && rest[0].number == l.Number):
		a.add("log", "line %d of the audit log says otherwise than version %d, a %s: %s at %s", l.ID, rest[0].version, rest[0].kind, l.Action, text(l.At))
		a.next++
	default:
		a.add("log", "line %d of the audit log, %s at %s, is about no change", l.ID, l.Action, text(l.At))
	}
}

func (a *logAudit) unlogged(c change) {
	a.add("log", "no line of the audit log is about version %d, a %s", c.version, c.kind)
}

func (a *logAudit) end() {
	for _, c := range a.changes[a.next:] {
		a.unlogged(c)
	}
	if a.row != nil && !a.row.RetiredAt.Equal(a.retiredAt) {
		a.add("log", "the campaign was retired at %s, by the audit log at %s", text(a.row.RetiredAt), text(a.retiredAt))
	}
}

// resolved holds a dead letter against the line that says what an operator did with it.
func (a *logAudit) resolved(l Letter) {
	line, ok := a.letters[l.ID]
	delete(a.letters, l.ID)
	wanted := letterReplayed
	if l.Voided {
		wanted = letterVoided
	}
	switch {
	case !ok && !l.Open:
		a.add("log", "no line of the audit log says what was done with the dead letter %d", l.ID)
	case ok && l.Open:
		a.add("log", "the dead letter %d is open, by line %d of the audit log it is resolved", l.ID, line.ID)
	case ok && (line.Action != wanted || !line.At.Equal(l.ResolvedAt) || line.Number != l.Number || line.User != l.User):
		a.add("log", "line %d of the audit log says otherwise than the dead letter %d: %s at %s", line.ID, l.ID, line.Action, text(line.At))
	}
}

// endLetters reports the lines about dead letters that are not there.
func (a *logAudit) endLetters() {
	for _, id := range slices.Sorted(maps.Keys(a.letters)) {
		a.add("log", "line %d of the audit log resolves the dead letter %d, which the ledger does not have of this campaign", a.letters[id].ID, id)
	}
}
