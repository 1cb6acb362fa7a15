package redis

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
)

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

// readTicket reads the generation and the ticket at the beginning of an entry.
func readTicket(entry string) (generation, ticket int64) {
	var padded [2 * 8]byte
	copy(padded[2:8], entry[:6])
	copy(padded[10:16], entry[6:ticketBytes])
	return int64(binary.BigEndian.Uint64(padded[:8])), int64(binary.BigEndian.Uint64(padded[8:]))
}

// ticketEntry is what readTicket reads.
func ticketEntry(generation, ticket int64) []byte {
	var padded [2 * 8]byte
	binary.BigEndian.PutUint64(padded[:8], uint64(generation))
	binary.BigEndian.PutUint64(padded[8:], uint64(ticket))
	return append(padded[2:8:8], padded[10:16]...)
}

// holderEntry returns what the holders hash keeps of a coupon, with its ticket and flag.
func holderEntry(c firstcome.Coupon) []byte {
	entry := appendEntry(nil, c)
	if c.Ticket > 0 {
		entry = append(entry, ticketEntry(c.Generation, c.Ticket)...)
	}
	if c.Buried {
		entry = append(entry, 1)
	}
	return entry
}

// overEntry returns what the tickets hash has of somebody who was served, and whose coupon was voided.
func overEntry(c firstcome.Coupon) string {
	return string(append(ticketEntry(c.Generation, c.Ticket), 1))
}

// held returns the coupon of a holder's entry.
func (j *Journal) held(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, entry string) (firstcome.Coupon, error) {
	c, err := readEntry(id, user, entry)
	if err != nil {
		return c, err
	}
	c.Code = j.conn.options.Secret.Code(id, c.Number)
	has, err := j.Has(ctx, id, []firstcome.Coupon{c})
	c.Recorded = err == nil && has[0]
	return c, err
}
