package redis

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

const (
	// entryFormat is the format that the scripts write. A newer release has a higher format.
	entryFormat = 1
	// separator stands between the users of a journal entry. No user id has one:
	// ids have no control characters.
	separator = "\n"
	// maxPayload bounds what is kept of an entry that cannot be read, in bytes.
	maxPayload = 16 << 10
)

// An item is an entry of a journal: its id in the stream, and its fields. Without
// fields it was deleted while somebody had it.
type item struct {
	id     string
	fields map[string]string
}

// claims returns how many coupons an entry is about, if it can be read. An entry about a line alone counts as one.
func (e item) claims() int { return strings.Count(e.fields["users"], separator) + 1 }

// An entry is an item that has been read.
type entry struct {
	epoch   int64              // in which the gate wrote it
	coupons []firstcome.Coupon // in number order
	line    gate.LineReport
}

// read reads an item. The error is why it cannot be read.
func (e item) read(id firstcome.CampaignID, secret firstcome.Secret) (r entry, err error) {
	if format := e.fields["format"]; format != strconv.Itoa(entryFormat) {
		return r, fmt.Errorf("its format is %q, this release reads %d", format, entryFormat)
	}
	if r.epoch, err = e.number("epoch"); err != nil {
		return r, err
	}
	if r.line, err = e.line(); err != nil {
		return r, err
	}
	if _, issues := e.fields["users"]; issues || r.line.Empty() {
		r.coupons, err = e.coupons(id, secret)
	}
	return r, err
}

// number returns a field that is a number from 1 on.
func (e item) number(name string) (int64, error) {
	n, err := strconv.ParseInt(e.fields[name], 10, 64)
	if err != nil || n < 1 || n > unlimited {
		return 0, fmt.Errorf("its field %s is %q", name, e.fields[name])
	}
	return n, nil
}

// coupons returns an item's coupons in number order.
func (e item) coupons(id firstcome.CampaignID, secret firstcome.Secret) (coupons []firstcome.Coupon, err error) {
	var at, terms, first int64
	for name, into := range map[string]*int64{"at": &at, "terms": &terms, "first": &first} {
		if *into, err = e.number(name); err != nil {
			return nil, err
		}
	}
	if n := e.claims(); n > gate.MaxBatch {
		return nil, fmt.Errorf("it has %d users, and no script issues more than %d coupons at once", n, gate.MaxBatch)
	}
	direct, said := e.fields["direct"]
	if said && direct != "1" {
		return nil, fmt.Errorf("its field direct is %q", direct)
	}
	users := strings.Split(e.fields["users"], separator)
	generation, tickets, err := e.tickets(len(users))
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(users))
	coupons = make([]firstcome.Coupon, len(users))
	for n, text := range users {
		user, err := firstcome.ParseUserID(text)
		if err != nil {
			return nil, fmt.Errorf("its user %d: %w", n+1, err)
		}
		if seen[text] {
			return nil, errors.New("a user is in it twice")
		}
		seen[text] = true
		number := first + int64(n)
		coupons[n] = firstcome.Coupon{
			Campaign: id, Number: number, User: user, Code: secret.Code(id, number),
			IssuedAt: time.UnixMicro(at).UTC(), TermsVersion: terms, Generation: generation, Ticket: tickets[n], Direct: said,
		}
	}
	return coupons, nil
}

// newer reports whether an entry is of a newer release than this, and so is no garbage: it has a higher
// format, and the epoch that entries of all formats have.
func (e item) newer() bool {
	format, err := strconv.Atoi(e.fields["format"])
	_, err2 := strconv.ParseInt(e.fields["epoch"], 10, 64)
	return err == nil && err2 == nil && format > entryFormat
}

// garbage returns what the ledger keeps of an entry that cannot be read. Its source is
// unique among the entries of all campaigns and gates.
func (e item) garbage(gate string, id firstcome.CampaignID, cause error) record.Garbage {
	var payload strings.Builder
	for _, name := range slices.Sorted(maps.Keys(e.fields)) {
		fmt.Fprintf(&payload, "%q=%q ", name, e.fields[name])
	}
	text := strings.TrimSpace(payload.String())
	return record.Garbage{
		Source:  gate + "/" + string(id) + "/" + e.id,
		Payload: text[:min(len(text), maxPayload)],
		Cause:   cause.Error(),
	}
}

// A share is a batch, and the ids of its entries. Its receipt is a pointer to it.
type share struct {
	record.Batch
	entries []string
	of      *stream // which it was read from
}

// shares merges entries of the campaign with a UID to batches of one epoch, and of at most limit coupons or one
// entry, each in number order. Entries that cannot be read have batches of their own: they name no epoch.
func shares(gate string, id firstcome.CampaignID, uid string, secret firstcome.Secret, items []item, limit int) []share {
	var all []share
	for _, e := range items {
		says, err := e.read(id, secret)
		if err != nil {
			says = entry{}
		}
		last := len(all) - 1
		if last < 0 || len(all[last].Coupons)+len(says.coupons) > limit || all[last].Epoch != says.epoch {
			all = append(all, share{Batch: record.Batch{Campaign: id, CampaignUID: uid, Epoch: says.epoch}})
			last++
		}
		now := &all[last]
		now.entries = append(now.entries, e.id)
		if err != nil {
			now.Garbage = append(now.Garbage, e.garbage(gate, id, err))
			continue
		}
		now.Coupons = append(now.Coupons, says.coupons...)
		now.Line.Add(says.line)
	}
	for n := range all {
		slices.SortStableFunc(all[n].Coupons, byNumber)
		all[n].Coupons = slices.Compact(all[n].Coupons) // an entry may have been given twice
	}
	return all
}

func byNumber(a, b firstcome.Coupon) int { return cmp.Compare(a.Number, b.Number) }

// Fields of an entry about the campaign's waiting line:
//
//	generation, tickets  of those who were served: a ticket for each of users, ascending
//	line                 generation last_ticket served_through served waiting, as they are after the script
//	ended                generation reason ended_at last_ticket served_through served waiting, of a generation that ended
//
// A script that ends a generation and issues nothing writes an entry without users.

// tickets returns the generation and the tickets of so many users; 0 of those who were issued without a line.
func (e item) tickets(users int) (generation int64, tickets []int64, err error) {
	text, served := e.fields["tickets"]
	if _, said := e.fields["generation"]; !served && !said {
		return 0, make([]int64, users), nil
	}
	if generation, err = e.number("generation"); err != nil {
		return 0, nil, err
	}
	if tickets, err = numbers(strings.Split(text, separator)); err != nil {
		return 0, nil, fmt.Errorf("its field tickets: %w", err)
	}
	ascend := slices.IsSorted(tickets) && len(slices.Compact(slices.Clone(tickets))) == len(tickets)
	if len(tickets) != users || tickets[0] < 1 || !ascend {
		return 0, nil, fmt.Errorf("its field tickets has %d tickets for %d users, or not in their order", len(tickets), users)
	}
	return generation, tickets, nil
}

// line returns what an item says of the line, if anything.
func (e item) line() (r gate.LineReport, err error) {
	if text, said := e.fields["line"]; said {
		if r.Line, err = lineOf(strings.Fields(text)); err != nil {
			return r, fmt.Errorf("its field line is %q: %w", text, err)
		}
	}
	if text, said := e.fields["ended"]; said {
		past, err := pastOf(strings.Fields(text))
		if err != nil {
			return r, fmt.Errorf("its field ended is %q: %w", text, err)
		}
		r.Past = []firstcome.PastLine{past}
	}
	return r, nil
}

// pastOf returns a generation that ended from the words of the field ended.
func pastOf(words []string) (p firstcome.PastLine, err error) {
	if len(words) != 7 {
		return p, errors.New("it has not seven words")
	}
	l, err := lineOf(slices.Concat(words[:1], words[3:]))
	if err != nil {
		return p, err
	}
	if words[1] != firstcome.SoldOut.String() && words[1] != firstcome.Closed.String() {
		return p, errors.New("that is no reason")
	}
	at, err := numbers(words[2:3])
	if err != nil || at[0] == 0 || l.LastTicket == 0 {
		return p, errors.New("nobody was in it, or it did not end")
	}
	return l.Ended(words[1], time.UnixMicro(at[0]).UTC()), nil
}

// lineOf returns a line from its five numbers. It refuses one that no line can be, as the ledger does.
func lineOf(words []string) (l firstcome.Line, err error) {
	n, err := numbers(words)
	switch {
	case err != nil:
		return firstcome.Line{}, err
	case len(n) != 5:
		return firstcome.Line{}, errors.New("it has not five numbers")
	}
	l.Generation, l.LastTicket, l.ServedThrough, l.Served, l.Waiting = n[0], n[1], n[2], n[3], n[4]
	if !possible(l) {
		return firstcome.Line{}, errors.New("there is no such line")
	}
	return l, nil
}

// possible reports whether a line may have these counters, by the rules of the ledger's tables.
func possible(l firstcome.Line) bool {
	negative := l.LastTicket < 0 || l.ServedThrough < 0 || l.Served < 0 || l.Waiting < 0
	return !negative && l.Generation >= 1 && l.ServedThrough <= l.LastTicket && l.Left() >= 0
}

// numbers returns whole numbers from 0 on.
func numbers(words []string) ([]int64, error) {
	all := make([]int64, len(words))
	for n, word := range words {
		number, err := strconv.ParseInt(word, 10, 64)
		if err != nil || number < 0 || number > unlimited {
			return nil, fmt.Errorf("%q is no number", word)
		}
		all[n] = number
	}
	return all, nil
}
