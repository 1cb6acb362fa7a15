package kafka

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

const (
	// batchFormat is the format that a relay writes. A higher number comes from a newer release.
	batchFormat = 1
	// recordCoupons is the most coupons of a record. With the longest ids they take a quarter of a megabyte, and brokers accept a megabyte by
	// default.
	recordCoupons = 2000
	// maxPayload is the most bytes that are kept of a record that cannot be read.
	maxPayload = 16 << 10
)

// A recordedBatch is the value of a record: a batch of a campaign, whose id is the record's key. It has no codes, which follow from the numbers.
type recordedBatch struct {
	Format      int              `json:"format"`
	CampaignUID string           `json:"campaign_uid"`
	Epoch       int64            `json:"epoch"`
	Runs        []recordedRun    `json:"runs,omitempty"`
	Line        *gate.LineReport `json:"line,omitempty"`
	Garbage     []record.Garbage `json:"garbage,omitempty"`
}

// A recordedRun is a series of coupons with consecutive numbers and the same time of issue.
type recordedRun struct {
	First      int64              `json:"first"`
	At         int64              `json:"at"` // microseconds since 1970
	Terms      int64              `json:"terms"`
	Generation int64              `json:"generation,omitempty"`
	Direct     bool               `json:"direct,omitempty"`
	Users      []firstcome.UserID `json:"users"`
	Tickets    []int64            `json:"tickets,omitempty"` // one for each user, if they were in line
}

// goesOn reports whether a coupon continues a run.
func (r *recordedRun) goesOn(c *firstcome.Coupon) bool {
	return c.Number == r.First+int64(len(r.Users)) && c.IssuedAt.UnixMicro() == r.At && c.TermsVersion == r.Terms &&
		c.Generation == r.Generation && c.Direct == r.Direct
}

// runsOf returns coupons, in number order, as runs.
func runsOf(coupons []firstcome.Coupon) (runs []recordedRun) {
	for n := range coupons {
		c := &coupons[n]
		if len(runs) == 0 || !runs[len(runs)-1].goesOn(c) {
			runs = append(runs, recordedRun{First: c.Number, At: c.IssuedAt.UnixMicro(), Terms: c.TermsVersion, Generation: c.Generation, Direct: c.Direct})
		}
		last := &runs[len(runs)-1]
		if last.Users = append(last.Users, c.User); c.Generation > 0 {
			last.Tickets = append(last.Tickets, c.Ticket)
		}
	}
	return runs
}

// recordsOf returns a batch as records, each of which fits into a batch of limit bytes if it has more than one coupon. Each piece of garbage is in a
// record of its own.
func recordsOf(b record.Batch, limit int) (records []*kgo.Record, err error) {
	add := func(one recordedBatch, coupons int) (added bool) {
		var value bytes.Buffer
		encoder := json.NewEncoder(&value)
		encoder.SetEscapeHTML(false)
		one.Format, one.CampaignUID, one.Epoch = batchFormat, b.CampaignUID, b.Epoch
		if failed := encoder.Encode(one); failed != nil {
			err = failed
		}
		r := &kgo.Record{Key: []byte(b.Campaign), Value: value.Bytes()}
		if coupons > 1 && sizeOf([]*kgo.Record{r}) > limit {
			return false
		}
		records = append(records, r)
		return true
	}
	count := recordCoupons
	for left := b.Coupons; len(left) > 0; {
		count = min(count, len(left))
		if add(recordedBatch{Runs: runsOf(left[:count])}, count) {
			left = left[count:]
		} else {
			count /= 2
		}
	}
	if !b.Line.Empty() { // after the coupons, as in the journal
		add(recordedBatch{Line: &b.Line}, 0)
	}
	for _, g := range b.Garbage {
		add(recordedBatch{Garbage: []record.Garbage{g}}, 0)
	}
	return records, err
}

// errNewer means that the topic has records of a newer release, which this release must leave in place.
var errNewer = fmt.Errorf("%w: the topic has records of a newer firstcome: see that each recorder is as new as the nodes that issue", firstcome.ErrGateMismatch)

// readBatch returns the batch of a record. errNewer means that a newer release wrote it: then the batch has only the campaign and its UID. Any other
// error is why it cannot be read.
func readBatch(secret firstcome.Secret, r *kgo.Record) (b record.Batch, err error) {
	var is recordedBatch
	if err := json.Unmarshal(r.Value, &is); err != nil {
		return b, err
	}
	b = record.Batch{Campaign: firstcome.CampaignID(r.Key), CampaignUID: is.CampaignUID}
	switch {
	case is.Format > batchFormat && is.CampaignUID != "":
		return b, errNewer
	case is.Format != batchFormat:
		return b, fmt.Errorf("its format is %d, this release reads %d", is.Format, batchFormat)
	case is.CampaignUID == "" || is.Epoch < 0:
		return b, errors.New("it has no campaign_uid")
	}
	b.Epoch, b.Garbage = is.Epoch, is.Garbage
	if is.Line != nil {
		b.Line = *is.Line
	}
	for _, run := range is.Runs {
		if run.First < 1 || run.Generation < 0 || run.Generation > 0 && len(run.Tickets) != len(run.Users) || run.Generation == 0 && len(run.Tickets) > 0 {
			return b, errors.New("it has coupons without a number, or not one ticket for each user")
		}
		if len(b.Coupons)+len(run.Users) > gate.MaxBatch {
			return b, fmt.Errorf("it has more than %d users, which no gate issues coupons to at once", gate.MaxBatch)
		}
		for n, user := range run.Users {
			if _, err := firstcome.ParseUserID(string(user)); err != nil {
				return b, fmt.Errorf("its user %d: %w", n+1, err)
			}
			c := firstcome.Coupon{
				Campaign: b.Campaign, Number: run.First + int64(n), User: user, IssuedAt: time.UnixMicro(run.At).UTC(), TermsVersion: run.Terms,
				Generation: run.Generation, Direct: run.Direct,
			}
			if c.Code = secret.Code(c.Campaign, c.Number); run.Generation > 0 {
				c.Ticket = run.Tickets[n]
			}
			b.Coupons = append(b.Coupons, c)
		}
	}
	return b, nil
}

// garbageOf returns the garbage of a record that cannot be read. Its name has the topic's id, because a recreated topic has other records under the
// same offsets.
func garbageOf(topic string, r *kgo.Record, cause error) record.Garbage {
	value := strings.ToValidUTF8(string(r.Value[:min(len(r.Value), maxPayload)]), "\uFFFD")
	return record.Garbage{Source: fmt.Sprintf("kafka/%s/%d/%d", topic, r.Partition, r.Offset), Payload: value, Cause: cause.Error()}
}
