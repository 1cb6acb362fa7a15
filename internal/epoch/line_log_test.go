package epoch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/recovery"
)

func TestChangesSayWhereALineIsLogged(t *testing.T) {
	type said struct {
		epoch int64
		log   *firstcome.LineLog
		anew  bool
	}
	at := func(topic string, first int64) *firstcome.LineLog {
		return &firstcome.LineLog{Topic: topic, First: first}
	}
	for _, c := range []struct {
		name    string
		changes []said
		log     *firstcome.LineLog
		epochs  map[int64]int64
	}{
		{"no log", []said{{}, {epoch: 2}}, nil, nil},
		{"created with one", []said{{log: at("a", 7)}}, at("a", 7), map[int64]int64{1: 7}},
		{"terms that name it again", []said{{log: at("a", 7)}, {log: at("a", 7)}, {}}, at("a", 7), map[int64]int64{1: 7}},
		{"given later", []said{{}, {epoch: 2}, {epoch: 3}, {log: at("a", 7)}}, at("a", 7), map[int64]int64{3: 7}},
		{"rebuilt", []said{{log: at("a", 7)}, {epoch: 2, log: at("a", 9)}, {epoch: 5, log: at("a", 12)}}, at("a", 7), map[int64]int64{1: 7, 2: 9, 5: 12}},
		{"rebuilt while Kafka was away", []said{{log: at("a", 7)}, {epoch: 2, log: at("a", -1)}, {epoch: 3, log: at("a", 12)}}, at("a", 7), map[int64]int64{1: 7, 3: 12}},
		{"logged anew", []said{{log: at("a", 7)}, {epoch: 2, log: at("b", 1), anew: true}, {log: at("a", 7)}, {epoch: 3, log: at("b", 4)}}, at("b", 1), map[int64]int64{2: 1, 3: 4}},
		{"logged anew in the same topic", []said{{log: at("a", 7)}, {epoch: 2, log: at("a", 90), anew: true}}, at("a", 90), map[int64]int64{2: 90}},
		{"adopted from the gate in a forgotten epoch", []said{{log: at("a", 7)}, {epoch: 4, log: at("a", 30)}}, at("a", 7), map[int64]int64{1: 7, 4: 30}},
		{"adopted from the gate in a forgotten topic", []said{{log: at("a", 7)}, {epoch: 4, log: at("b", 30)}}, at("b", 0), map[int64]int64{4: 30}},
		{"adopted from the gate", []said{{}, {epoch: 4, log: at("a", 7)}}, at("a", 7), map[int64]int64{4: 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h lineHistory
			for _, s := range c.changes {
				h.hears(s.epoch, s.log, s.anew)
			}
			if diff := cmp.Diff(recovery.LineHistory{Log: c.log, Epochs: c.epochs}, h.LineHistory); diff != "" {
				t.Errorf("it is logged (-want +got):\n%s", diff)
			}
		})
	}
}
