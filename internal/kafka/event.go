package kafka

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/wire"
)

// An Event is a fact in the form of a topic's record: a CloudEvent 1.0 in structured JSON. docs/events.md is its reference. Campaign and Position are
// extension attributes.
type Event struct {
	SpecVersion     string       `json:"specversion"`
	ID              string       `json:"id"`
	Source          string       `json:"source"`
	Type            string       `json:"type"`
	Subject         string       `json:"subject"`
	Time            *client.Time `json:"time,omitempty"`
	DataContentType string       `json:"datacontenttype"`
	DataSchema      string       `json:"dataschema"`
	Campaign        string       `json:"campaign"`
	Position        int64        `json:"position"`
	Data            wire.Fact    `json:"data"`
}

const (
	specVersion = "1.0"
	// dataSchema names the version of the fields of Data. A higher number means that a field has changed its meaning.
	dataSchema = "urn:firstcome:fact:1"
	// contentType is the header that identifies a CloudEvent in structured JSON to consumers.
	contentType = "application/cloudevents+json"
)

// sourceOf returns the source of events of a ledger.
func sourceOf(ledger string) string { return "urn:firstcome:ledger:" + ledger }

// eventOf returns the event of a fact of a ledger. Its id consists of the coupon and the kind of fact, so a restored ledger gives the same fact the
// same id. t are the terms of the coupon.
func eventOf(ledger string, f *firstcome.Fact, t *firstcome.Terms) Event {
	id := string(f.Coupon.Campaign)
	coupon := id + "/" + strconv.FormatInt(f.Coupon.Number, 10)
	return Event{
		SpecVersion: specVersion, ID: coupon + "/" + strings.TrimPrefix(string(f.Kind), "coupon."), Source: sourceOf(ledger), Type: string(f.Kind), Subject: coupon,
		Time: wire.Time(f.At()), DataContentType: "application/json", DataSchema: dataSchema, Campaign: id, Position: f.Position, Data: wire.FactOf(f, t),
	}
}

// recordOf returns the record of a fact. Its key is the campaign, so a campaign's facts are in one partition, in order.
func recordOf(ledger string, f *firstcome.Fact, t *firstcome.Terms) (*kgo.Record, error) {
	value, err := json.Marshal(eventOf(ledger, f, t))
	return &kgo.Record{
		Key: []byte(f.Coupon.Campaign), Value: value,
		Headers: []kgo.RecordHeader{{Key: "content-type", Value: []byte(contentType)}},
	}, err
}

// read returns the event of a record, and whether it is an event of the ledger. Other programs may write to the topic.
func read(ledger string, r *kgo.Record) (e Event, ours bool) {
	err := json.Unmarshal(r.Value, &e)
	return e, err == nil && e.SpecVersion == specVersion && e.Source == sourceOf(ledger) && e.Position > 0
}

// same reports whether two events describe the same fact: the same coupon and user, at the same time.
func (e *Event) same(other *Event) bool {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	at := func(t *client.Time) int64 {
		if t == nil {
			return 0
		}
		return t.UnixMicro()
	}
	return e.ID == other.ID && e.Position == other.Position && text(e.Data.UserID) == text(other.Data.UserID) && at(e.Time) == at(other.Time)
}

// fact returns the fact of an event. Its coupon has number, user, code and the time of the fact.
func (e *Event) fact() firstcome.Fact {
	f := firstcome.Fact{Position: e.Position, Kind: firstcome.FactKind(e.Type), Coupon: firstcome.Coupon{Campaign: firstcome.CampaignID(e.Campaign), Number: e.Data.Number}}
	if e.Data.UserID != nil {
		f.Coupon.User = firstcome.UserID(*e.Data.UserID)
	}
	if e.Data.Code != nil {
		f.Coupon.Code = *e.Data.Code
	}
	switch {
	case e.Time == nil:
	case f.Kind == firstcome.CouponVoided:
		f.Coupon.VoidedAt = e.Time.Time
	default:
		f.Coupon.IssuedAt = e.Time.Time
	}
	return f
}
