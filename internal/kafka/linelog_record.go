package kafka

import (
	"encoding/json"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
)

// A lineRecord is the value of a record in the log of a line: places that a gate issued in one answer. The record's key is the campaign.
type lineRecord struct {
	Marker     string             `json:"marker"`
	Epoch      int64              `json:"epoch"`
	Began      int64              `json:"began"`
	Generation int64              `json:"generation"`
	At         int64              `json:"at"` // microseconds since 1970
	Left       bool               `json:"left,omitempty"`
	Tickets    []int64            `json:"tickets"`
	Users      []firstcome.UserID `json:"users"` // one for each ticket
}

// placesInRecord is the most places of one record, so that a record is far smaller than brokers accept.
const placesInRecord = 1000

// lineRecordsOf returns places as records. Consecutive places that differ only in user and ticket become one record.
func lineRecordsOf(id firstcome.CampaignID, places []line.Record) (all []*kgo.Record) {
	for len(places) > 0 {
		r := &places[0]
		is := lineRecord{Marker: r.Marker, Epoch: r.Epoch, Began: r.Began, Generation: r.Generation, At: r.At.UnixMicro(), Left: r.Left}
		n := 0
		for ; n < min(len(places), placesInRecord); n++ {
			one := &places[n]
			if one.Logged != r.Logged || one.Generation != r.Generation || one.Left != r.Left {
				break
			}
			is.Tickets, is.Users = append(is.Tickets, one.Number), append(is.Users, one.User)
		}
		value, err := json.Marshal(is)
		if err != nil {
			panic(err) // it has only strings and numbers
		}
		all = append(all, &kgo.Record{Partition: r.Partition, Key: []byte(id), Value: value})
		places = places[n:]
	}
	return all
}

// readLineRecord calls each with the places of a campaign in a record. A record of another program has none.
func readLineRecord(id firstcome.CampaignID, record *kgo.Record, each func(line.Record) error) error {
	var is lineRecord
	if string(record.Key) != string(id) || json.Unmarshal(record.Value, &is) != nil || is.Marker == "" || is.Epoch < 1 || is.Generation < 1 || len(is.Tickets) != len(is.Users) {
		return nil
	}
	logged := firstcome.Logged{Marker: is.Marker, Epoch: is.Epoch, Began: is.Began, At: time.UnixMicro(is.At).UTC()}
	for n, ticket := range is.Tickets {
		user, wrong := firstcome.ParseUserID(string(is.Users[n]))
		if wrong != nil || ticket < 1 {
			continue
		}
		r := line.Record{Logged: logged, Ticket: firstcome.Ticket{Generation: is.Generation, Number: ticket}, User: user, Left: is.Left}
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}
