//go:build !check

package kafka

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome/test/services"
)

// A slowHook holds up the client at a record, until the brokers have answered an append. A client that appends in order has sent nothing by then.
type slowHook struct {
	at       int64
	records  atomic.Int64
	answered chan struct{}
	once     sync.Once
}

func (h *slowHook) OnProduceRecordBuffered(*kgo.Record) {
	if h.records.Add(1) == h.at {
		select {
		case <-h.answered:
		case <-time.After(2 * time.Second):
		}
	}
}

func (h *slowHook) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, _ kgo.BrokerE2E) {
	if key == 0 { // an append
		h.once.Do(func() { close(h.answered) })
	}
}

// TestF70NothingThatComesAfterARefusedRecordIsAppended appends records that are too large, and then, after the brokers have refused these, others that
// are not.
func TestF70NothingThatComesAfterARefusedRecordIsAppended(t *testing.T) {
	t.Parallel()
	at, err := services.MakeTopic(t.Context(), services.Kafka.Database(t), services.Unique("in-order"), 1,
		map[string]string{"max.message.bytes": "1000", "compression.type": "uncompressed"})
	if err != nil {
		t.Fatal(err)
	}
	topic, err := readURL(at)
	if err != nil {
		t.Fatal(err)
	}
	topic.inOrder = true
	hook := &slowHook{at: 10, answered: make(chan struct{})}
	client, err := topic.connect(t.Context(), append(producing(topic), kgo.WithHooks(hook))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var records []*kgo.Record
	for n := range 20 {
		size := 2000
		if n >= 9 {
			size = 10
		}
		records = append(records, &kgo.Record{Key: []byte("c"), Value: make([]byte, size)})
	}
	left, why := topic.send(t.Context(), client, records)
	if !isTooLarge(why) || len(left) != len(records) {
		t.Errorf("%d of %d records are left, and the reason is %v", len(left), len(records), why)
	}
}
