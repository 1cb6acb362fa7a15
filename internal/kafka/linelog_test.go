//go:build !check

package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A logStage is a LineLog on a topic, with the campaigns whose lines have a log there.
type logStage struct {
	*kafka.LineLog
	t    *testing.T
	told stage.Alarms

	mu   sync.Mutex
	logs map[firstcome.CampaignID]firstcome.LineLog
	list func() // if set, is called when the logs are listed
}

// LineLogs implements kafka.LoggedLines.
func (s *logStage) LineLogs(_ context.Context, each func(firstcome.CampaignID, firstcome.LineLog)) error {
	if s.list != nil {
		s.list()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, log := range maps.All(s.logs) {
		each(id, log)
	}
	return nil
}

// onePartition creates a topic with one partition.
func onePartition(t *testing.T) string {
	t.Helper()
	at, err := services.MakeTopic(t.Context(), services.Kafka.Database(t), services.Unique("line-log"), 1, nil)
	stage.Must(t, err)
	return at
}

func openLog(t *testing.T, at string) *logStage {
	t.Helper()
	s := &logStage{t: t, told: make(stage.Alarms, 100), logs: map[firstcome.CampaignID]firstcome.LineLog{}}
	var err error
	s.LineLog, err = kafka.OpenLineLog(t.Context(), at, kafka.LineLogOptions{Lines: s, OnAlarm: s.told.Raise})
	stage.Must(t, err)
	t.Cleanup(s.Close)
	return s
}

// place gives a campaign's line a log, as the creation of a campaign does.
func (s *logStage) place(id firstcome.CampaignID) firstcome.LineLog {
	s.t.Helper()
	log, err := s.LogLocation(s.t.Context(), id)
	stage.Must(s.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[id] = log
	return log
}

// places returns records of the tickets first to last, with users named for their tickets, as a gate issues them in an epoch.
func places(log firstcome.LineLog, first, last int64) (records []line.Record) {
	for n := first; n <= last; n++ {
		records = append(records, line.Record{
			Logged: firstcome.Logged{LineLog: log, CampaignUID: uid, Epoch: 1, Began: 1, At: time.UnixMicro(1_000_000 + n).UTC()},
			Ticket: firstcome.Ticket{Generation: 1, Number: n}, User: firstcome.UserID(fmt.Sprint("user-", n)),
		})
	}
	return records
}

// append appends until the topic takes the records: on a busy machine a broker may take longer than an append waits.
func (s *logStage) append(id firstcome.CampaignID, records []line.Record) {
	s.t.Helper()
	stage.Await(s.t, "an append", nil, func() error {
		err := s.Append(s.t.Context(), id, records)
		if errors.Is(err, firstcome.ErrLineLogAway) {
			return errAway
		}
		return err
	})
}

// end returns the end offset of the partition of a campaign's log.
func (s *logStage) end(id firstcome.CampaignID, log firstcome.LineLog) int64 {
	s.t.Helper()
	end, err := s.End(s.t.Context(), id, log)
	stage.Must(s.t, err)
	return end
}

// has fails unless the log of a campaign has exactly these records, in this order. Records that were appended again may be there twice.
func (s *logStage) has(id firstcome.CampaignID, log firstcome.LineLog, want []line.Record) {
	s.t.Helper()
	end, last := s.end(id, log), int64(-1)
	var got []line.Record
	stage.Must(s.t, s.Read(s.t.Context(), id, log, end, func(offset int64, r line.Record) error {
		if offset < last || offset < log.First || offset >= end {
			s.t.Errorf("the offset %d comes behind %d, and the records are those from %d to before %d", offset, last, log.First, end)
		}
		if last = offset; !slices.Contains(got, r) {
			got = append(got, r)
		}
		return nil
	}))
	for n := range want {
		want[n].LineLog = firstcome.LineLog{}
	}
	stage.Same(s.t, "the records of "+string(id), want, got)
}

// TestAPlaceInALogIsReadAsItWasAppended shares a partition with another campaign, another program, and records before the log's beginning.
func TestAPlaceInALogIsReadAsItWasAppended(t *testing.T) {
	t.Parallel()
	at := onePartition(t)
	s := openLog(t, at)
	gone := s.place("c") // of a campaign of this id
	s.append("c", places(gone, 90, 91))
	log, other := s.place("c"), s.place("d")
	stage.Same(t, "the first offset", s.end("c", gone), log.First)
	all := places(log, 1, 6)
	all[1].Left, all[2].User, all[3].Epoch, all[3].Began, all[3].Generation = true, `<"'&\ 한국>`, 7, 3, 4
	s.append("c", all[:3])
	s.append("d", places(other, 1, 2))
	litter(t, at, "c", `not JSON`, `{}`, `{"campaign_uid":"m","epoch":1,"began":1,"generation":1,"ticket":1,"user":"","at":1}`,
		`{"campaign_uid":"m","epoch":0,"began":1,"generation":1,"ticket":1,"user":"u","at":1}`, `{"campaign_uid":"m","epoch":1,"began":1,"generation":0,"ticket":1,"user":"u","at":1}`,
		`{"campaign_uid":"m","epoch":1,"began":1,"generation":1,"ticket":0,"user":"u","at":1}`, `{"uid":"","epoch":1,"began":1,"generation":1,"ticket":1,"user":"u","at":1}`)
	s.append("c", all[3:])
	s.has("c", log, all)
	s.has("d", other, places(other, 1, 2))

	end := s.end("c", log)
	s.append("c", places(log, 7, 9))
	stage.Must(t, s.Read(t.Context(), "c", log, end, func(_ int64, r line.Record) error {
		if r.Number > 6 {
			t.Errorf("the ticket %d is behind the end", r.Number)
		}
		return nil
	}))
	stage.Must(t, s.Append(t.Context(), "c", nil))
	if err := s.Read(t.Context(), "c", log, end, func(int64, line.Record) error { return errAway }); err != errAway { //nolint:errorlint // as it is
		t.Errorf("a reader that fails with %q ends the reading with %v", errAway, err)
	}
}

// litter appends values that are not places, and then the UID of a transaction, which has no value.
func litter(t *testing.T, at string, id firstcome.CampaignID, values ...string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Brokers(at)...), kgo.DefaultProduceTopic(at[strings.LastIndexByte(at, '/')+1:]), kgo.TransactionalID(services.Unique("litter")))
	stage.Must(t, err)
	defer client.Close()
	stage.Must(t, client.BeginTransaction())
	for _, value := range values {
		stage.Must(t, client.ProduceSync(t.Context(), &kgo.Record{Key: []byte(id), Value: []byte(value)}).FirstErr())
	}
	stage.Must(t, client.EndTransaction(t.Context(), kgo.TryCommit))
}

// TestALogThatEndsWithATransactionIsRead ends a log with the UID of a transaction, which has an offset but is not delivered to consumers.
func TestALogThatEndsWithATransactionIsRead(t *testing.T) {
	t.Parallel()
	at := onePartition(t)
	s := openLog(t, at)
	log := s.place("c")
	s.append("c", places(log, 1, 2))
	before := s.end("c", log)
	litter(t, at, "c", "not JSON")
	stage.Await(t, "the end with the mark", before+2, func() int64 { return s.end("c", log) })
	s.has("c", log, places(log, 1, 2))
}

// TestLogsAreSpreadOverThePartitions checks that the campaign's id determines the partition.
func TestLogsAreSpreadOverThePartitions(t *testing.T) {
	t.Parallel()
	at := services.Kafka.Database(t)
	s, other := openLog(t, at), openLog(t, at)
	used := map[int32]int{}
	for n := range 30 {
		id := firstcome.CampaignID(fmt.Sprint("c-", n))
		log := s.place(id)
		stage.Same(t, "where another node logs "+string(id), log, other.place(id))
		if used[log.Partition]++; used[log.Partition] == 1 {
			s.append(id, places(log, 1, 3))
			s.has(id, log, places(log, 1, 3))
		}
	}
	if len(used) != 3 {
		t.Errorf("30 campaigns are logged in the partitions %v of 3", used)
	}
}

// isLost fails unless an error has the cause of a lost log, and the command to repair it.
func isLost(t *testing.T, what string, err error, why string) {
	t.Helper()
	if !errors.Is(err, firstcome.ErrLineLogGone) || !strings.Contains(fmt.Sprint(err), why) || !strings.Contains(fmt.Sprint(err), "firstcome gate rebuild c --without-line-log") {
		t.Errorf("%s: %v", what, err)
	}
}

// refuses fails unless appends to the log of the campaign c, and reads of it, are refused.
func (s *logStage) refuses(log firstcome.LineLog, why string) {
	s.t.Helper()
	isLost(s.t, "an append", s.Append(s.t.Context(), "c", places(log, 8, 9)), why)
	_, err := s.End(s.t.Context(), "c", log)
	isLost(s.t, "the end", err, why)
	isLost(s.t, "reading", s.Read(s.t.Context(), "c", log, log.First+1, func(int64, line.Record) error {
		s.t.Error("it has a record")
		return nil
	}), why)
}

// TestATopicOfLogsThatWasMadeAgainIsToldAndRefused checks that it is refused until an operator gives the line another log.
func TestATopicOfLogsThatWasMadeAgainIsToldAndRefused(t *testing.T) {
	t.Parallel()
	at := onePartition(t)
	s, idle := openLog(t, at), openLog(t, at)
	log := s.place("c")
	s.append("c", places(log, 1, 3))
	idle.append("c", places(log, 4, 4))
	remake(t, at)
	stage.Await(t, "the new topic at the broker", true, func() bool { id := topicID(t, at); return id != "" && id != log.Topic })
	if err := idle.Append(t.Context(), "c", places(log, 5, 5)); err == nil {
		t.Error("a node that does not know yet that the topic was made again appends to it")
	}
	stage.Await(t, "reading finds another topic", true, func() bool { // once it has a leader
		err := idle.Read(t.Context(), "c", log, 2, func(int64, line.Record) error { return nil })
		if err == nil {
			t.Error("the old log is read in the new topic")
		}
		return strings.Contains(fmt.Sprint(err), "was recreated")
	})
	isLost(t, "an append after that", idle.Append(t.Context(), "c", places(log, 5, 5)), "was recreated")
	const why = "was recreated, or is another topic"
	stage.Run(t, s.Run)
	isLost(t, "the alarm", s.alarm("was recreated"), why)
	stage.Await(t, "the new topic", true, func() bool { _, id := s.Topic(); return id != log.Topic && id != "" })
	s.refuses(log, why)

	anew := s.place("c")
	if anew.Topic == log.Topic {
		t.Errorf("the new log is %+v, and the old one was %+v", anew, log)
	}
	s.append("c", places(anew, 1, 3))
	s.has("c", anew, places(anew, 1, 3))
}

// topicID returns the id of the topic of a URL, or "" while the broker has no such topic.
func topicID(t *testing.T, at string) string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Brokers(at)...))
	stage.Must(t, err)
	defer client.Close()
	name := at[strings.LastIndexByte(at, '/')+1:]
	topics, err := kadm.NewClient(client).ListTopics(t.Context(), name)
	stage.Must(t, err)
	if topics[name].Err != nil {
		return ""
	}
	return topics[name].ID.String()
}

// alarm waits for an alarm that contains a text.
func (s *logStage) alarm(part string) error {
	s.t.Helper()
	for {
		if err := stage.Next(s.t, "an alarm: "+part, s.told); strings.Contains(err.Error(), part) {
			return err
		}
	}
}

// TestATopicThatWasMadeAgainUnfitTakesNothing recreates a topic with settings that would discard places.
func TestATopicThatWasMadeAgainUnfitTakesNothing(t *testing.T) {
	t.Parallel()
	at := onePartition(t)
	s := openLog(t, at)
	log := s.place("c")
	s.append("c", places(log, 1, 3))
	stage.Must(t, services.DropTopic(t.Context(), at))
	stage.Must(t, stage.Err(services.MakeTopic(t.Context(), at, at[strings.LastIndexByte(at, '/')+1:], 1, map[string]string{"cleanup.policy": "compact"})))
	stage.Run(t, s.Run)
	s.alarm("cleanup.policy=compact")
	if _, err := s.LogLocation(t.Context(), "d"); !errors.Is(err, firstcome.ErrLineLogAway) || !strings.Contains(err.Error(), "cleanup.policy=delete") {
		t.Errorf("a place in a topic that is compacted: %v", err)
	}
	if err := s.Append(t.Context(), "c", places(log, 4, 4)); !errors.Is(err, firstcome.ErrLineLogAway) {
		t.Errorf("an append to a topic that is compacted: %v", err)
	}
}

// TestALogWhoseRecordsWereDeletedIsToldAndRefused checks that other logs of the same partition are not refused.
func TestALogWhoseRecordsWereDeletedIsToldAndRefused(t *testing.T) {
	t.Parallel()
	at := onePartition(t)
	s := openLog(t, at)
	log := s.place("c")
	s.append("c", places(log, 1, 3))
	whole := s.place("d")
	s.append("d", places(whole, 1, 3))
	deleteRecords(t, at, whole.First)
	stage.Run(t, s.Run)
	why := fmt.Sprintf("no longer has records before offset %d, and the line's begin at 0", whole.First)
	isLost(t, "the alarm", s.alarm("no longer has records"), why)
	stage.Await(t, "whether an append is refused", true, func() bool { return errors.Is(s.Append(t.Context(), "c", places(log, 4, 4)), firstcome.ErrLineLogGone) })
	s.refuses(log, why)
	s.append("d", places(whole, 4, 4))
	s.has("d", whole, places(whole, 1, 4))

	anew := s.place("c")
	s.append("c", places(anew, 1, 3))
	s.has("c", anew, places(anew, 1, 3))
}

// deleteRecords deletes the records of a topic's partition 0 before an offset.
func deleteRecords(t *testing.T, at string, before int64) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Brokers(at)...))
	stage.Must(t, err)
	defer client.Close()
	name := at[strings.LastIndexByte(at, '/')+1:]
	var offsets kadm.Offsets
	offsets.AddOffset(name, 0, before, -1)
	done, err := kadm.NewClient(client).DeleteRecords(t.Context(), offsets)
	stage.Must(t, err)
	one, _ := done.Lookup(name, 0)
	stage.Must(t, one.Err)
}

// TestRecordsThatAreDeletedWhileALogIsReadFailTheReading deletes records that a plain consumer would silently skip.
func TestRecordsThatAreDeletedWhileALogIsReadFailTheReading(t *testing.T) {
	t.Parallel()
	at := onePartition(t)
	s := openLog(t, at)
	log := s.place("c")
	s.append("c", places(log, 1, 3))
	isLost(t, "reading", s.Read(t.Context(), "c", log, s.end("c", log), func(offset int64, _ line.Record) error {
		if offset == 0 {
			deleteRecords(t, at, 2)
		}
		return nil
	}), "no longer has records before offset 2")
}

// TestAPartitionThatEndsBeforeItsLogIsToldAndRefused begins a log above the partition's end, as after the partition lost its end and got other
// records.
func TestAPartitionThatEndsBeforeItsLogIsToldAndRefused(t *testing.T) {
	t.Parallel()
	s := openLog(t, onePartition(t))
	log := s.place("c")
	s.append("c", places(log, 1, 3))
	log.First = 100
	var err error
	stage.Await(t, "whether an append is answered", true, func() bool {
		err = s.Append(t.Context(), "c", places(log, 4, 4))
		return !errors.Is(err, firstcome.ErrLineLogAway)
	})
	isLost(t, "an append below the epoch's beginning", err, "and the epoch's records begin at 100")
	isLost(t, "the alarm", s.alarm("appended at offset"), "and the epoch's records begin at 100")
	s.logs["c"] = log
	stage.Run(t, s.Run)
	const why = "and the line's records begin at 100"
	isLost(t, "the alarm", s.alarm("ends at offset"), why)
	stage.Await(t, "whether an append is refused", true, func() bool {
		return strings.Contains(fmt.Sprint(s.Append(t.Context(), "c", places(firstcome.LineLog{Topic: log.Topic}, 4, 4))), "begin at 100")
	})
	log.First = 0
	isLost(t, "reading up to an end that is not there", s.Read(t.Context(), "c", log, 1000, nil), "and had records up to 1000")
	log.Partition = 1
	isLost(t, "reading another partition", s.Read(t.Context(), "c", log, 1, nil), "has no partition 1")
}

// TestALogThatBeginsWhileRunLooksIsWhole lets another node begin a log after records that Run has not seen.
func TestALogThatBeginsWhileRunLooksIsWhole(t *testing.T) {
	t.Parallel()
	s := openLog(t, onePartition(t))
	before := s.place("b")
	looked := make(chan int)
	looks := 0
	s.list = func() {
		s.append("b", places(before, 1, 1))
		s.place("c")
		looks++
		select {
		case looked <- looks:
		default:
		}
	}
	stage.Run(t, s.Run)
	for stage.Next(t, "a look", looked) < 2 { // the first look has then reported what it found
	}
	select {
	case err := <-s.told:
		t.Errorf("an alarm: %v", err)
	default:
	}
}

// TestALogThatIsAwayHoldsUpNobodyForLong kills the broker. Only the first append of each joinRest waits for it.
func TestALogThatIsAwayHoldsUpNobodyForLong(t *testing.T) {
	t.Parallel()
	broker := services.Kafka.Server(t)
	at, err := services.MakeTopic(t.Context(), broker.URL(), "lines", 1, nil)
	stage.Must(t, err)
	s := openLog(t, at)
	log := s.place("c")
	hurried, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(hurried, "c", places(log, 1, 1)); err == nil {
		t.Error("an append whose caller is gone succeeds")
	}
	select {
	case err := <-s.told:
		t.Errorf("a caller who is gone is an alarm: %v", err)
	default:
	}
	s.append("c", places(log, 1, 1))
	stage.Must(t, broker.Freeze())
	stage.Await(t, "whether two appends fail for the same reason", true, func() bool {
		one, two := s.Append(t.Context(), "c", places(log, 2, 2)), s.Append(t.Context(), "d", places(log, 2, 2))
		if !errors.Is(one, firstcome.ErrLineLogAway) || !errors.Is(two, firstcome.ErrLineLogAway) {
			t.Errorf("appends to a topic that is away: %v, %v", one, two)
		}
		return one == two //nolint:errorlint // the second one has not tried
	})
	s.alarm("append 1 places of c")
	answers := make(chan error, 3)
	go func() { answers <- s.Read(t.Context(), "c", log, 1, nil) }()
	go func() { answers <- stage.Err(s.End(t.Context(), "c", log)) }()
	go func() { answers <- stage.Err(s.LogLocation(t.Context(), "d")) }()
	for range 3 {
		if err := stage.Next(t, "an answer", answers); !errors.Is(err, firstcome.ErrLineLogAway) {
			t.Errorf("of a topic that is away one hears %v", err)
		}
	}
	stage.Must(t, broker.Continue())
	s.append("c", places(log, 2, 2))
}

// TestALogThatIsOpenedWhileKafkaIsAwayFindsTheTopicLater checks that no user is told a place before.
func TestALogThatIsOpenedWhileKafkaIsAwayFindsTheTopicLater(t *testing.T) {
	t.Parallel()
	broker := services.Kafka.Server(t)
	at, err := services.MakeTopic(t.Context(), broker.URL(), "lines", 1, nil)
	stage.Must(t, err)
	before := openLog(t, at)
	log := before.place("c")
	before.append("c", places(log, 1, 1))
	stage.Must(t, broker.Stop())
	s := openLog(t, at)
	s.alarm("check hosts and ports")
	if err := s.Append(t.Context(), "c", places(log, 2, 2)); !errors.Is(err, firstcome.ErrLineLogAway) {
		t.Errorf("an append to a topic that is not found: %v", err)
	}
	if name, id := s.Topic(); name != "lines" || id != "" {
		t.Errorf("a topic that is not found is %q, %q", name, id)
	}
	stage.Run(t, s.Run)
	stage.Must(t, broker.Restart(t.Context()))
	s.append("c", places(log, 2, 2))
	if _, id := s.Topic(); id != log.Topic {
		t.Errorf("the topic %q is found, and it is %q", id, log.Topic)
	}
}
