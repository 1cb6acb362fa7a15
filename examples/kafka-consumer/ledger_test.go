package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome/test/stage"
)

// A row is what the table of coupons has to say of a coupon.
type row struct {
	User, Code, State string
	At                string // when it changed, and what the shop itself notes of its use
}

// A change is a fact, and what it makes of which coupon; of an unknown kind that is none.
type change struct {
	event  map[string]any
	number int64
	row    row
}

// A ledger is what happened to the coupons of some campaigns.
type ledger struct {
	examples [][]byte // an issue and a void, as docs/events.md shows them
	changes  map[string][]change
	used     map[string]string // what the shop itself notes, by the coupon
}

func newLedger(t *testing.T) *ledger {
	text, err := os.ReadFile("../../docs/events.md")
	stage.Must(t, err)
	l := &ledger{changes: map[string][]change{}, used: map[string]string{}}
	for _, found := range regexp.MustCompile("(?s)```json\n(.*?)\n```").FindAllSubmatch(text, -1) {
		l.examples = append(l.examples, found[1])
	}
	if len(l.examples) != 2 {
		t.Fatalf("docs/events.md has %d examples", len(l.examples))
	}
	return l
}

// happens adds a fact to a campaign. Of ten about seven are issues, two are voids, and one is of a kind that nobody knows yet.
func (l *ledger) happens(random *rand.Rand, campaign string) {
	all := l.changes[campaign]
	switch n := random.IntN(10); {
	case n == 0:
		l.add(campaign, "coupon.framed", 0, row{})
	case n < 3 && len(all) > 0:
		if last := all[random.IntN(len(all))]; last.row.State == "in_force" && l.rows(campaign, len(all))[last.number].State == "in_force" {
			l.add(campaign, "coupon.voided", last.number, row{User: last.row.User, Code: last.row.Code, State: "voided"})
			return
		}
		fallthrough
	default:
		number := l.issued(campaign) + 1
		l.add(campaign, "coupon.issued", number, row{User: fmt.Sprintf("u%d", random.IntN(1000)), Code: fmt.Sprintf("CODE%012d", number), State: "in_force"})
	}
}

func (l *ledger) issued(campaign string) (number int64) {
	for _, c := range l.changes[campaign] {
		number = max(number, c.number)
	}
	return number
}

// add adds a fact, as docs/events.md shows one, with fields that nobody knows yet.
func (l *ledger) add(campaign, kind string, number int64, is row) {
	position := len(l.changes[campaign]) + 1
	at := fmt.Sprintf("2026-12-24T10:00:00.%06dZ", position)
	is.At = at
	example := l.examples[0]
	if kind == "coupon.voided" {
		example = l.examples[1]
	}
	var e map[string]any
	if err := json.Unmarshal(example, &e); err != nil {
		panic(err)
	}
	data := e["data"].(map[string]any)
	e["id"], e["subject"] = fmt.Sprintf("%s/%d/%s", campaign, number, kind[len("coupon."):]), fmt.Sprintf("%s/%d", campaign, number)
	e["type"], e["campaign"], e["position"], e["time"], e["later"] = kind, campaign, position, at, []int{1}
	data["kind"], data["campaign_id"], data["position"], data["number"] = kind, campaign, position, number
	data["user_id"], data["code"], data["at"], data["later"] = is.User, is.Code, at, map[string]int{"a": 1}
	if kind != "coupon.issued" && kind != "coupon.voided" {
		e["dataschema"], e["data"] = "urn:firstcome:frame:1", "anything"
	}
	l.changes[campaign] = append(l.changes[campaign], change{e, number, is})
}

// rows returns what a campaign's first facts say of its coupons.
func (l *ledger) rows(campaign string, through int) map[int64]row {
	all := map[int64]row{}
	for _, c := range l.changes[campaign][:through] {
		if c.number > 0 {
			c.row.At += " " + l.used[fmt.Sprint(campaign, "/", c.number)]
			all[c.number] = c.row
		}
	}
	return all
}

// records returns facts of a campaign from a position on.
func (l *ledger) records(campaign string, from, through int) (all []*kgo.Record) {
	for _, c := range l.changes[campaign][from-1 : through] {
		all = append(all, recordOf(c.event))
	}
	return all
}

func recordOf(event map[string]any) *kgo.Record {
	value, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	return &kgo.Record{Key: []byte(event["campaign"].(string)), Value: value, Headers: []kgo.RecordHeader{{Key: "content-type", Value: []byte("application/cloudevents+json")}}}
}

// holds fails the test unless the table of coupons is what the facts up to the cursors say. It returns how many facts are behind these.
func (l *ledger) holds(t *testing.T, s *shop) (behind int) {
	t.Helper()
	got, through := map[string]row{}, map[string]int{}
	// One statement, which sees one instant.
	rows, err := s.db.QueryContext(t.Context(), `SELECT campaign, position, '', '', '', '', '' FROM cursors UNION ALL
		SELECT campaign, 0, '/' || number, coalesce(user_id, ''), coalesce(code, ''), state, coalesce(changed_at, '') || ' ' || coalesce(used_at, '') FROM coupons`)
	stage.Must(t, err)
	defer rows.Close()
	for rows.Next() {
		var campaign, number string
		var position int
		var r row
		stage.Must(t, rows.Scan(&campaign, &position, &number, &r.User, &r.Code, &r.State, &r.At))
		if number == "" {
			through[campaign] = position
		} else {
			got[campaign+number] = r
		}
	}
	stage.Must(t, rows.Err())
	want := map[string]row{}
	for campaign, all := range l.changes {
		behind += len(all) - through[campaign]
		for number, r := range l.rows(campaign, through[campaign]) {
			want[fmt.Sprint(campaign, "/", number)] = r
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the table is not what the facts say (-facts +table):\n%s", diff)
	}
	return behind
}
