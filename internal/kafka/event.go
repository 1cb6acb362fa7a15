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

// An Event is a fact as a topic has it: a CloudEvent 1.0 in structured JSON. docs/events.md is its reference. Campaign and Position are
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
	// dataSchema names the fields of Data, and what they mean. A number that is higher says that one of them means something else.
	dataSchema = "urn:firstcome:fact:1"
	// contentType is the header by which consumers know a CloudEvent in structured JSON.
	contentType = "application/cloudevents+json"
)

// sourceOf returns the source of events of a ledger.
func sourceOf(ledger string) string { return "urn:firstcome:ledger:" + ledger }

// idOf returns the id of a fact's event. It says what happened to which coupon, so it is the same whatever became of the ledger meanwhile.
func idOf(f *firstcome.Fact) string {
	return string(f.Coupon.Campaign) + "/" + strconv.FormatInt(f.Coupon.Number, 10) + "/" + strings.TrimPrefix(string(f.Kind), "coupon.")
}

// eventOf returns the event of a fact of a ledger.
func eventOf(ledger string, f *firstcome.Fact) Event {
	id := string(f.Coupon.Campaign)
	return Event{
		SpecVersion: specVersion, ID: idOf(f), Source: sourceOf(ledger), Type: string(f.Kind), Subject: id + "/" + strconv.FormatInt(f.Coupon.Number, 10),
		Time: wire.Time(f.At()), DataContentType: "application/json", DataSchema: dataSchema, Campaign: id, Position: f.Position, Data: wire.FactOf(f),
	}
}

// recordOf returns the record of a fact. Its key is the campaign, so a campaign's facts are in one partition, in their order.
func recordOf(ledger string, f *firstcome.Fact) (*kgo.Record, error) {
	value, err := json.Marshal(eventOf(ledger, f))
	return &kgo.Record{
		Key: []byte(f.Coupon.Campaign), Value: value,
		Headers: []kgo.RecordHeader{{Key: "content-type", Value: []byte(contentType)}},
	}, err
}

// read returns the event of a record, and whether it is one of a ledger: others may write to the topic.
func read(ledger string, r *kgo.Record) (e Event, ours bool) {
	err := json.Unmarshal(r.Value, &e)
	return e, err == nil && e.SpecVersion == specVersion && e.Source == sourceOf(ledger) && e.Position > 0
}

// same tells whether two events tell of the same thing: of the same coupon, of the same user, at the same instant.
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

// fact returns the fact that an event tells of: of its coupon number, user, code and the instant of the fact.
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
