package redis

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// nothing as the limit of undrained numbers has the claim script issue nothing,
// so that it needs no memory.
const nothing = "0"

// Claim decides claims in one script: see gate.Decider. The coupons issued are in
// the campaign's journal when it returns. A decision without an outcome says that
// the claim was not decided, because the journal or Redis is full.
func (g *Gate) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decide(ctx, id, wantClaim, users)
}

// What the users of the claim script want.
const (
	wantClaim = "claim"
	wantIssue = "issue"
	wantServe = "serve"
	wantLeave = "leave"
)

// decide decides what users want.
func (g *Gate) decide(ctx context.Context, id firstcome.CampaignID, want string, users []firstcome.UserID) ([]firstcome.Decision, error) {
	k, err := g.keysOf(ctx, id)
	if err != nil {
		return nil, err
	}
	v, err := g.verdict(ctx, k, want, backlogArg(g.options.Backlog), whole10(cmp.Or(g.options.MaxLine, defaultMaxLine)), users)
	if isFull(err) {
		v, err = g.verdict(ctx, k, want, nothing, "0", users)
		v.outOfMemory = true
	}
	var decisions []firstcome.Decision
	if err == nil {
		decisions, err = g.decisions(k, want, users, &v)
	}
	if err != nil {
		return nil, fmt.Errorf("decide %d claims of %s: %w", len(users), id, err)
	}
	return decisions, nil
}

// errPart says that a gate's keys of a campaign do not agree.
var errPart = fmt.Errorf("%w: part of it is gone", gate.ErrLost)

// errUser is returned to callers that pass on a user id that firstcome.ParseUserID would refuse.
var errUser = errors.New("a user id has no control characters")

// verdict runs the claim script.
func (g *Gate) verdict(ctx context.Context, k *keys, want, backlog, limit string, users []firstcome.UserID) (v verdict, err error) {
	known := int64(0)
	if g.options.Epoch != nil {
		known = g.options.Epoch(k.id)
	}
	args := make([]string, 0, 10+len(users))
	args = append(args, g.clock(), backlog, g.wakeChannel(), string(k.id), strconv.FormatInt(quarantineFor.Microseconds(), 10), want, limit, whole10(known))
	args = append(args, g.remembers.told(k).args()...)
	for _, user := range users {
		if strings.Contains(string(user), separator) {
			return v, errUser
		}
		args = append(args, string(user))
	}
	word, parts, err := g.run(ctx, g.claim, k, args...)
	switch {
	case err != nil:
		return v, err
	case word == "lost":
		return v, errPart
	case word == "behind":
		return v, older(k.id, parts, known)
	case word != "decided":
		return v, fmt.Errorf("the claim script answered %q", word)
	}
	if v, err = readVerdict(parts); err != nil {
		return v, fmt.Errorf("the claim script's answer cannot be read: %w", err)
	}
	if want != wantServe && len(v.outcomes) != len(users) {
		return v, fmt.Errorf("the claim script answered %d claims of %d", len(v.outcomes), len(users))
	}
	issued := strings.Count(v.outcomes, issuedDigit)
	if want == wantServe {
		issued = len(v.line.users)
	}
	g.remembers.hears(k, told{v.epoch, v.first - 1 + int64(issued)})
	return v, nil
}

// A verdict is what the claim script says of a batch: see lua/claim.lua.
type verdict struct {
	outcomes              string
	first                 int64
	now                   int64
	version, termsVersion int64
	epoch                 int64
	opensAt, closesAt     int64 // 0: none
	quarantined           int64 // 1: stock that came back is quarantined, 0: none is
	inForce               int64 // after the batch
	openedAt              int64 // 0: it did not
	soldOutAt, closedAt   int64 // 0: it is not
	entries               []string
	line                  lineVerdict
	outOfMemory           bool // the script was asked to issue nothing, and to let nobody join
}

// campaign returns what the verdict says of the campaign's course.
func (v *verdict) campaign() (c firstcome.Campaign) {
	c.ClosesAt = instant(v.closesAt)
	c.OpenedAt, c.SoldOutAt, c.ClosedAt = instant(v.openedAt), instant(v.soldOutAt), instant(v.closedAt)
	return c
}

// issuedDigit is firstcome.Issued among the outcomes of a verdict.
const issuedDigit = string('0' + rune(firstcome.Issued))

// readVerdict reads the parts of the claim script's answer.
func readVerdict(parts []rueidis.RedisMessage) (v verdict, err error) {
	if len(parts) != 14 && len(parts) != 19 {
		return v, fmt.Errorf("the claim script answered %d parts", len(parts)+1)
	}
	if v.outcomes, err = parts[0].ToString(); err != nil {
		return v, err
	}
	for n, into := range []*int64{&v.first, &v.now, &v.version, &v.termsVersion, &v.epoch, &v.opensAt, &v.closesAt, &v.quarantined, &v.inForce, &v.openedAt, &v.soldOutAt, &v.closedAt} {
		if *into, err = whole(parts[1+n]); err != nil {
			return v, err
		}
	}
	if v.entries, err = parts[13].AsStrSlice(); err != nil || len(parts) == 14 {
		return v, err
	}
	v.line, err = readLineVerdict(parts[14:])
	return v, err
}

// decisions makes decisions of the claim script's answer.
func (g *Gate) decisions(k *keys, want string, users []firstcome.UserID, v *verdict) (_ []firstcome.Decision, err error) {
	id, at, number, entries := k.id, time.UnixMicro(v.now).UTC(), v.first, v.entries
	campaign := v.campaign()
	inForce := v.inForce - int64(strings.Count(v.outcomes, issuedDigit))
	decisions := make([]firstcome.Decision, len(users))
	for n, user := range users {
		d := firstcome.Decision{Outcome: firstcome.Outcome(v.outcomes[n] - '0'), At: at, Version: v.version, TermsVersion: v.termsVersion}
		d.Lease, d.Since, d.OpenedAt = v.lease(d.Outcome), campaign.Since(d.Outcome), campaign.OpenedAt
		switch d.Outcome {
		case 0:
			if want == wantClaim && !v.outOfMemory && (v.line.pace != nil || v.line.Waiting > 0) {
				d.Undecided = firstcome.ErrLineFull // the script looks at the backlog only where nobody joins
			}
		case firstcome.Issued:
			d.Coupon = firstcome.Coupon{Campaign: id, Number: number, User: user, IssuedAt: at, TermsVersion: v.termsVersion, Direct: want == wantIssue}
			number++
			inForce++
		case firstcome.AlreadyIssued:
			if len(entries) == 0 {
				return nil, errors.New("the claim script names too few coupons")
			}
			if d.Coupon, err = readEntry(id, user, entries[0][1:]); err != nil {
				return nil, err
			}
			d.Coupon.Recorded = entries[0][0] == '1'
			entries = entries[1:]
		}
		if d.Outcome.HasCoupon() {
			d.Coupon.Code = g.options.Secret.Code(id, d.Coupon.Number)
		}
		if want == wantIssue && !d.Outcome.HasCoupon() {
			d.Lease = 0 // others may hear otherwise
		}
		d.InForce = inForce
		decisions[n] = d
	}
	if v.line.kept {
		return decisions, v.places(k, want, decisions)
	}
	return decisions, nil
}

// lease returns how long a decision may be repeated: no coupon, because another node
// may void it; none while stock is quarantined; a refusal not past the instant at which the
// window answers otherwise, and a pause not at all.
func (v *verdict) lease(o firstcome.Outcome) time.Duration {
	until := func(at int64) time.Duration {
		// This compares before it makes a duration, because a duration has room for 292 years only.
		return time.Duration(max(0, min(at-v.now, refusalLease.Microseconds()))) * time.Microsecond
	}
	switch {
	case v.quarantined != 0:
		return 0
	case o == firstcome.NotOpen && v.line.Waiting > 0:
		return 0 // nor to those in line
	case o == firstcome.NotOpen:
		return until(v.opensAt)
	case o == firstcome.SoldOut && v.closesAt != 0:
		return until(v.closesAt)
	case o == firstcome.SoldOut || o == firstcome.Closed:
		return refusalLease
	}
	return 0
}

// entryBytes is the length of what the holders hash keeps of a coupon: its number in
// 6 bytes, the microseconds of its issue in 7 and its terms' version in 4, big endian, whose highest bit
// says that it was issued directly. A coupon issued to the line has its generation and its ticket after them, in ticketBytes. A
// dead letter has one byte more, a flag.
const (
	entryBytes  = 6 + 7 + 4
	ticketBytes = 6 + 6
	directBit   = 1 << 31
)

// appendEntry appends what the holders hash keeps of a coupon.
func appendEntry(to []byte, c firstcome.Coupon) []byte {
	var padded [3 * 8]byte
	binary.BigEndian.PutUint64(padded[:8], uint64(c.Number))
	binary.BigEndian.PutUint64(padded[8:16], uint64(c.IssuedAt.UnixMicro()))
	terms := uint64(c.TermsVersion)
	if c.Direct {
		terms |= directBit
	}
	binary.BigEndian.PutUint64(padded[16:], terms)
	to = append(to, padded[2:8]...)
	to = append(to, padded[9:16]...)
	return append(to, padded[20:24]...)
}

// readEntry reads a coupon from the holders hash.
func readEntry(id firstcome.CampaignID, user firstcome.UserID, entry string) (firstcome.Coupon, error) {
	lined := len(entry) >= entryBytes+ticketBytes
	flags := len(entry) - entryBytes
	if lined {
		flags -= ticketBytes
	}
	if flags != 0 && flags != 1 {
		return firstcome.Coupon{}, fmt.Errorf("%w: one of %s has %d bytes instead of %d or %d", errHolder, id, len(entry), entryBytes, entryBytes+ticketBytes)
	}
	var padded [3 * 8]byte
	copy(padded[2:8], entry[:6])
	copy(padded[9:16], entry[6:13])
	copy(padded[20:24], entry[13:entryBytes])
	number := int64(binary.BigEndian.Uint64(padded[:8]))
	issuedAt := int64(binary.BigEndian.Uint64(padded[8:16]))
	terms := int64(binary.BigEndian.Uint64(padded[16:]))
	c := firstcome.Coupon{
		Campaign: id, Number: number, User: user, IssuedAt: time.UnixMicro(issuedAt).UTC(), TermsVersion: terms &^ directBit, Direct: terms&directBit != 0,
		Buried: flags > 0,
	}
	if lined {
		c.Generation, c.Ticket = readTicket(entry[entryBytes:])
	}
	return c, nil
}
