package redis

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

func testSecret(t *testing.T) firstcome.Secret {
	t.Helper()
	secret, err := firstcome.NewSecret([]byte("a secret of the tests, 32 bytes and more"))
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestEntriesSayWhatBecameOfALine(t *testing.T) {
	secret := testSecret(t)
	serves := item{"1-1", map[string]string{
		"format": "1", "epoch": "1", "at": "1700000000000000", "terms": "1", "first": "4", "users": "a\nb", "generation": "2", "tickets": "3\n9",
		"line": "3 0 0 0 0", "ended": "2 sold_out 1700000000000000 11 9 5 2",
	}}
	ends := item{"2-1", map[string]string{"format": "1", "epoch": "1", "line": "4 0 0 0 0", "ended": "3 closed 1700000001000000 1 0 0 1"}}
	all := shares("redis:x", "c", "m", secret, []item{serves, ends}, 10)
	if len(all) != 1 || len(all[0].entries) != 2 || len(all[0].Garbage) > 0 {
		t.Fatalf("they are %+v", all)
	}
	want := gate.LineReport{Line: firstcome.Line{Generation: 4}, Past: []firstcome.PastLine{
		{Line: firstcome.Line{Generation: 2, LastTicket: 11, ServedThrough: 9, Served: 5, Waiting: 2}, Reason: "sold_out", EndedAt: time.UnixMicro(1700000000000000).UTC()},
		{Line: firstcome.Line{Generation: 3, LastTicket: 1, Waiting: 1}, Reason: "closed", EndedAt: time.UnixMicro(1700000001000000).UTC()},
	}}
	if diff := cmp.Diff(want, all[0].Line); diff != "" {
		t.Errorf("the line is reported otherwise (-want +got):\n%s", diff)
	}
	for n, ticket := range []int64{3, 9} {
		if c := all[0].Coupons[n]; c.Number != int64(4+n) || c.Generation != 2 || c.Ticket != ticket {
			t.Errorf("coupon %d is %+v", n, c)
		}
	}
}

func TestF44EntriesThatSayNoLineAreGarbage(t *testing.T) {
	secret := testSecret(t)
	good := map[string]string{"format": "1", "epoch": "1", "at": "1", "terms": "1", "first": "1", "users": "a\nb", "generation": "1", "tickets": "1\n2"}
	for what, field := range map[string]string{
		"a ticket too few":                 "tickets=1",
		"a ticket too many":                "tickets=1\n2\n3",
		"a ticket twice":                   "tickets=2\n2",
		"tickets backwards":                "tickets=2\n1",
		"ticket 0":                         "tickets=0\n1",
		"a ticket that is no number":       "tickets=1\nx",
		"no ticket":                        "tickets=",
		"generation 0":                     "generation=0",
		"a line of four numbers":           "line=1 2 1 1",
		"a line of generation 0":           "line=0 2 1 1 1",
		"a line of negative numbers":       "line=1 2 1 -1 1",
		"a line that lacks tickets":        "line=1 2 1 2 1",
		"served beyond the last":           "line=1 2 3 1 1",
		"an end of six words":              "ended=1 closed 1 2 1 1",
		"an end for no reason":             "ended=1 lost 1 2 1 1 1",
		"an end at no time":                "ended=1 closed 0 2 1 1 1",
		"the end of a line without people": "ended=1 closed 1 0 0 0 0",
	} {
		name, value, _ := strings.Cut(field, "=")
		fields := maps.Clone(good)
		fields[name] = value
		if all := shares("redis:x", "c", "m", secret, []item{{"1-1", fields}}, 10); len(all) != 1 || len(all[0].Garbage) != 1 || len(all[0].Coupons) > 0 {
			t.Errorf("%s: %+v", what, all)
		}
	}
	if all := shares("redis:x", "c", "m", secret, []item{{"1-1", good}}, 10); len(all[0].Coupons) != 2 {
		t.Errorf("as it should be: %+v", all)
	}
}
