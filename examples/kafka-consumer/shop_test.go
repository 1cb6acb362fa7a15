package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/stage"
)

// A topic is one of one partition, in memory.
type topic struct{ records []*kgo.Record }

func (t *topic) append(records ...*kgo.Record) {
	for _, r := range records {
		r.Topic, r.Offset = "coupons", int64(len(t.records))
		t.records = append(t.records, r)
	}
}

// opened opens a database until the test ends.
func opened(t *testing.T, file string) *shop {
	t.Helper()
	s, err := open(t.Context(), file)
	stage.Must(t, err)
	t.Cleanup(s.close)
	return s
}

// nextOf returns the offset from which a shop reads on.
func nextOf(t *testing.T, s *shop) int {
	t.Helper()
	all, err := s.offsets(t.Context(), map[string]map[int32]kgo.Offset{"coupons": {0: kgo.NewOffset().AtEnd()}})
	stage.Must(t, err)
	return max(0, int(all["coupons"][0].EpochOffset().Offset)) // which is negative at the beginning
}

// said has what the program logs until the test ends.
func said(t *testing.T) *strings.Builder {
	var text strings.Builder
	log.SetOutput(&text)
	t.Cleanup(func() { log.SetOutput(io.Discard) })
	return &text
}

// TestHoweverFactsComeTheTableIsWhatTheySay puts facts into a topic in their order, again from some position on, and in between what is no
// fact. A shop takes them in batches of any size, goes back, is cut off, and is opened again.
func TestHoweverFactsComeTheTableIsWhatTheySay(t *testing.T) {
	said(t)
	for round := range 10 {
		random, l, coupons := seed.Rand(t, round), newLedger(t), &topic{}
		file := filepath.Join(t.TempDir(), "shop.db")
		s := opened(t, file)
		for range 60 {
			publish(random, l, coupons)
			switch from := nextOf(t, s); random.IntN(8) {
			case 0:
				s.close()
				s = opened(t, file)
			case 1:
				canceled, cancel := context.WithCancel(t.Context())
				cancel()
				if err := s.take(canceled, coupons.records[from:]); err == nil && from < len(coupons.records) {
					t.Fatal("a take that was cut off says that all is kept")
				}
				if nextOf(t, s) != from {
					t.Fatal("a take that was cut off has moved the offset")
				}
			case 2:
				use(t, random, l, s)
			case 3: // the old batch of a process that was frozen
				stage.Must(t, s.take(t.Context(), coupons.records[random.IntN(from+1):from]))
			default:
				stage.Must(t, s.take(t.Context(), coupons.records[from:from+random.IntN(len(coupons.records)-from+1)]))
			}
			l.holds(t, s)
		}
		stage.Must(t, s.take(t.Context(), coupons.records[nextOf(t, s):]))
		if behind := l.holds(t, s); behind != 0 {
			t.Fatalf("%d facts are not in the table", behind)
		}
	}
}

// publish appends to a topic what its publisher might.
func publish(random *rand.Rand, l *ledger, coupons *topic) {
	campaign := []string{"spring", "summer"}[random.IntN(2)]
	switch top := len(l.changes[campaign]); {
	case random.IntN(10) == 0:
		coupons.append(&kgo.Record{Value: []byte("no fact")}, &kgo.Record{}, &kgo.Record{Value: []byte(`{"type":"another's"}`)},
			&kgo.Record{Value: []byte(`{"source":"another","type":"coupon.issued","campaign":"spring","position":1,"data":{}}`)})
	case random.IntN(3) == 0 && top > 0:
		coupons.append(l.records(campaign, 1+random.IntN(top), top)...) // again
	default:
		for range 1 + random.IntN(5) {
			l.happens(random, campaign)
		}
		coupons.append(l.records(campaign, top+1, len(l.changes[campaign]))...)
	}
}

// use has the shop note that a coupon was used.
func use(t *testing.T, random *rand.Rand, l *ledger, s *shop) {
	t.Helper()
	number, at := 1+random.IntN(20), fmt.Sprint("use ", random.IntN(1000))
	done, err := s.db.ExecContext(t.Context(), `UPDATE coupons SET used_at = ? WHERE campaign = 'spring' AND number = ?`, at, number)
	stage.Must(t, err)
	if rows, _ := done.RowsAffected(); rows == 1 {
		l.used[fmt.Sprint("spring/", number)] = at
	}
}

// filled returns a ledger with facts of the campaign spring, and a shop that has all of them.
func filled(t *testing.T, file string, facts int) (*ledger, *shop, *topic) {
	t.Helper()
	random, l, coupons := seed.Rand(t), newLedger(t), &topic{}
	for range facts {
		l.happens(random, "spring")
	}
	coupons.append(l.records("spring", 1, facts)...)
	s := opened(t, file)
	stage.Must(t, s.take(t.Context(), coupons.records))
	return l, s, coupons
}

func TestAGapIsToldAndIsClosedByAReplay(t *testing.T) {
	text, random := said(t), seed.Rand(t)
	file := filepath.Join(t.TempDir(), "shop.db")
	l, s, coupons := filled(t, file, 10)
	for range 10 {
		l.happens(random, "spring")
	}
	l.happens(random, "summer")
	l.happens(random, "summer")
	for n := 14; n <= 20; n++ { // one a batch
		coupons.append(l.records("spring", n, n)...)
		stage.Must(t, s.take(t.Context(), coupons.records[nextOf(t, s):]))
	}
	const told = "spring: after the fact 10 came 14. Nothing more of this campaign is kept until what is missing comes; ask for firstcome facts replay spring --from 11\n"
	if got := text.String(); strings.Count(got, "replay") != 1 || !strings.HasSuffix(got, told) {
		t.Errorf("it says %q", got)
	}
	coupons.append(l.records("summer", 2, 2)...) // this campaign begins with a gap
	coupons.append(l.records("summer", 1, 2)...)
	coupons.append(l.records("spring", 9, 13)...)
	stage.Must(t, s.take(t.Context(), coupons.records[nextOf(t, s):]))
	if behind := l.holds(t, s); behind != 7 {
		t.Errorf("%d facts are behind: another campaign has to wait, or what is missing was passed over", behind)
	}
	s.close()
	text.Reset()
	s = opened(t, file)
	if got := text.String(); !strings.Contains(got, "facts are missing still; ask for firstcome facts replay spring --from 14\n") {
		t.Errorf("opened again it says %q", got)
	}
	coupons.append(l.records("spring", 14, 20)...)
	stage.Must(t, s.take(t.Context(), coupons.records[nextOf(t, s):]))
	if behind := l.holds(t, s); behind != 0 {
		t.Errorf("%d facts are behind", behind)
	}
	s.close()
	text.Reset()
	opened(t, file)
	if text.Len() > 0 {
		t.Errorf("with all of them it says %q", text.String())
	}
}

// TestWhatWouldMakeTheTableWrongEndsIt takes good facts and one with which nobody may go on, in one batch: none of them is kept.
func TestWhatWouldMakeTheTableWrongEndsIt(t *testing.T) {
	said(t)
	data := func(e map[string]any) map[string]any { return e["data"].(map[string]any) }
	for name, wrong := range map[string]struct {
		position int
		change   func(e map[string]any)
		want     string
	}{
		"a coupon that came before is another user's": {1, func(e map[string]any) { data(e)["user_id"] = "somebody else" }, "firstcome facts replay spring --from 1"},
		"a number that was given is given again":      {12, func(e map[string]any) { data(e)["number"] = 1 }, "another user's in the topic"},
		"another ledger has such a campaign":          {12, func(e map[string]any) { e["source"] = "urn:firstcome:ledger:another" }, "two ledgers publish to one topic"},
		"the fields mean something else":              {12, func(e map[string]any) { e["dataschema"] = "urn:firstcome:fact:2" }, "bring it up to date"},
		"a fact that cannot be read":                  {12, func(e map[string]any) { e["data"] = []int{1} }, "offset 11"},
	} {
		t.Run(name, func(t *testing.T) {
			l, s, coupons := filled(t, filepath.Join(t.TempDir(), "shop.db"), 0)
			for n := range int64(12) {
				l.add("spring", "coupon.issued", n+1, row{User: fmt.Sprint("u", n), Code: "C", State: "in_force"})
			}
			coupons.append(l.records("spring", 1, 10)...)
			stage.Must(t, s.take(t.Context(), coupons.records))
			coupons.append(l.records("spring", 11, 11)...)
			e := l.changes["spring"][wrong.position-1].event
			wrong.change(e)
			coupons.append(recordOf(e))
			err := s.take(t.Context(), coupons.records[10:])
			if err == nil || !strings.Contains(err.Error(), wrong.want) || !strings.HasPrefix(err.Error(), "partition 0, offset 11: ") {
				t.Errorf("it ends with %v", err)
			}
			if behind := l.holds(t, s); behind != 2 || nextOf(t, s) != 10 {
				t.Errorf("%d facts are behind, and it would read on from %d", behind, nextOf(t, s))
			}
		})
	}
}

// TestACouponThatTheLedgerHasLostChangesNoKnownOne replays a fact without what the ledger has lost, and takes a new one.
func TestACouponThatTheLedgerHasLostChangesNoKnownOne(t *testing.T) {
	said(t)
	l, s, coupons := filled(t, filepath.Join(t.TempDir(), "shop.db"), 0)
	l.add("spring", "coupon.issued", 1, row{User: "mina", Code: "C", State: "in_force"})
	l.add("spring", "coupon.issued", 2, row{State: "in_force"})
	coupons.append(l.records("spring", 1, 1)...)
	for _, c := range l.changes["spring"] {
		delete(c.event, "time")
		data := c.event["data"].(map[string]any)
		data["user_id"], data["code"], data["terms_version"], data["at"] = nil, nil, nil, nil
	}
	l.changes["spring"][1].row.At = ""
	coupons.append(l.records("spring", 1, 2)...)
	stage.Must(t, s.take(t.Context(), coupons.records))
	if behind := l.holds(t, s); behind != 0 {
		t.Errorf("%d facts are behind", behind)
	}
}
