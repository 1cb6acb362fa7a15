package kafka

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
)

// A lineRecord is the value of a record in the log of a line: places that a gate issued in one answer. The record's key is the campaign.
type lineRecord struct {
	CampaignUID string             `json:"campaign_uid"`
	Epoch       int64              `json:"epoch"`
	Began       int64              `json:"began"`
	Generation  int64              `json:"generation"`
	At          int64              `json:"at"` // microseconds since 1970
	Left        bool               `json:"left,omitempty"`
	Tickets     []int64            `json:"tickets"`
	Users       []firstcome.UserID `json:"users"` // one for each ticket
}

// placesInRecord is the most places of one record, so that a record is far smaller than brokers accept by default.
const placesInRecord = 1000

// lineRecordsOf returns places as records. A record with more than one place fits into a batch of limit bytes.
func lineRecordsOf(id firstcome.CampaignID, places []line.Record, limit int) (all []*kgo.Record) {
	most := placesInRecord
	for len(places) > 0 {
		alike := places[:alike(places[:min(most, len(places))])]
		r := lineRecordOf(id, alike)
		if len(alike) > 1 && sizeOf([]*kgo.Record{r}) > limit {
			most = len(alike) / 2
			continue
		}
		all, places = append(all, r), places[len(alike):]
	}
	return all
}

// alike returns how many of the first places differ only in user and ticket.
func alike(places []line.Record) int {
	first := &places[0]
	other := slices.IndexFunc(places, func(p line.Record) bool {
		return p.Logged != first.Logged || p.Generation != first.Generation || p.Left != first.Left
	})
	if other < 0 {
		return len(places)
	}
	return other
}

// lineRecordOf returns places that differ only in user and ticket as a record.
func lineRecordOf(id firstcome.CampaignID, places []line.Record) *kgo.Record {
	r := &places[0]
	is := lineRecord{CampaignUID: r.CampaignUID, Epoch: r.Epoch, Began: r.Began, Generation: r.Generation, At: r.At.UnixMicro(), Left: r.Left}
	for n := range places {
		is.Tickets, is.Users = append(is.Tickets, places[n].Number), append(is.Users, places[n].User)
	}
	value, err := json.Marshal(is)
	if err != nil {
		panic(err) // it has only strings and numbers
	}
	return &kgo.Record{Partition: r.Partition, Key: []byte(id), Value: value}
}

// readLineRecord calls each with the places of a campaign in a record. A record of another program has none.
func readLineRecord(id firstcome.CampaignID, record *kgo.Record, each func(line.Record) error) error {
	var is lineRecord
	if string(record.Key) != string(id) || json.Unmarshal(record.Value, &is) != nil || is.CampaignUID == "" || is.Epoch < 1 || is.Generation < 1 || len(is.Tickets) != len(is.Users) {
		return nil
	}
	logged := firstcome.Logged{CampaignUID: is.CampaignUID, Epoch: is.Epoch, Began: is.Began, At: time.UnixMicro(is.At).UTC()}
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
