package kafka

import (
	"encoding/json"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// A lineRecord is the value of a record in the log of a line. The record's key is the campaign.
type lineRecord struct {
	Marker     string           `json:"marker"`
	Epoch      int64            `json:"epoch"`
	Began      int64            `json:"began"`
	Generation int64            `json:"generation"`
	Ticket     int64            `json:"ticket"`
	User       firstcome.UserID `json:"user"`
	At         int64            `json:"at"` // microseconds since 1970
	Left       bool             `json:"left,omitempty"`
}

// lineRecordOf returns a record as a partition has it.
func lineRecordOf(id firstcome.CampaignID, partition int32, r *flow.LineRecord) *kgo.Record {
	value, err := json.Marshal(lineRecord{r.Marker, r.Epoch, r.Began, r.Generation, r.Number, r.User, r.At.UnixMicro(), r.Left})
	if err != nil {
		panic(err) // it has texts and numbers
	}
	return &kgo.Record{Partition: partition, Key: []byte(id), Value: value}
}

// readLineRecord returns what a record says of a campaign. ok reports whether it says anything: whoever else writes to the topic is passed over.
func readLineRecord(id firstcome.CampaignID, record *kgo.Record) (r flow.LineRecord, ok bool) {
	var is lineRecord
	if string(record.Key) != string(id) || json.Unmarshal(record.Value, &is) != nil || is.Marker == "" || is.Epoch < 1 || is.Generation < 1 || is.Ticket < 1 {
		return r, false
	}
	user, err := firstcome.ParseUserID(string(is.User))
	return flow.LineRecord{
		Logged: firstcome.Logged{Marker: is.Marker, Epoch: is.Epoch, Began: is.Began, At: time.UnixMicro(is.At).UTC()},
		Ticket: firstcome.Ticket{Generation: is.Generation, Number: is.Ticket}, User: user, Left: is.Left,
	}, err == nil
}
