package load_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/load"
)

// followed runs a load whose users claim in order and follow their places.
func followed(t *testing.T, q *queue, c load.Options) *load.Result {
	t.Helper()
	c.Server, c.Follow, c.Concurrency = q.open(t), true, 1
	q.version = 1
	return run(t, c)
}

func TestFollowersEndAsTheLineDoes(t *testing.T) {
	t.Parallel()
	for _, cdn := range []bool{false, true} {
		var done, total int64
		q := &queue{shop: shop{quantity: 30}, crowd: 50}
		r := followed(t, q, load.Options{Users: 60, CDN: cdn, Progress: func(d, n int64) { done, total = d, n }})
		if diff := cmp.Diff(map[audit.End]int64{"issued": 30, "sold_out": 20}, r.Line.Ends); diff != "" {
			t.Error(diff)
		}
		if r.Outcomes["waiting"] != 50 || r.Outcomes["sold_out"] != 10 || !r.Verdict.OK() || r.Interrupted {
			t.Errorf("%v, %+v", r.Outcomes, r.Verdict)
		}
		if l := r.Line; l.Followed != 50 || l.InLine.Count != 30 || l.Until.Count != 30 || l.SentAway.Count != 20 || l.ETA.Count != 30 || len(l.Places) != 30 || l.Why != "the line has no pace" {
			t.Errorf("%+v", l)
		}
		if n := len(r.Line.Tickets.At) - 1; r.Line.Tickets.Given[n] != 50 || r.Line.Tickets.Served[n] != 30 {
			t.Errorf("%+v", r.Line.Tickets)
		}
		if done != 60 || total != 60 || r.SoldOut == nil || r.Coupons() != 30 || len(r.Numbers) != 30 {
			t.Errorf("%d of %d, sold out %v, %d coupons", done, total, r.SoldOut, r.Coupons())
		}
		var table strings.Builder
		if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "50 users: 30 issued, 20 sold out") {
			t.Errorf("%v: %s", err, table.String())
		}
	}
}

func TestWhoeverLeavesInTimeIsNotServed(t *testing.T) {
	t.Parallel()
	q := &queue{shop: shop{quantity: 30}, crowd: 13} // who never come
	r := followed(t, q, load.Options{Users: 12, Leave: 1})
	if diff := cmp.Diff(map[audit.End]int64{"left": 12}, r.Line.Ends); diff != "" || len(q.left) != 12 || !r.Verdict.OK() {
		t.Errorf("%s, %+v", diff, r.Verdict)
	}
	q = &queue{shop: shop{quantity: 30}, crowd: 12} // who are served when the last of them joins, unless they left by then
	r = followed(t, q, load.Options{Users: 12, Leave: 1})
	if r.Line.Ends["issued"] == 0 || r.Line.Ends["issued"]+int64(len(q.left)) != 12 || r.Line.Ends["left"] != int64(len(q.left)) || !r.Verdict.OK() {
		t.Errorf("%v, %+v", r.Line.Ends, r.Verdict)
	}
}

func TestAPlaceWithoutAnAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	fails := 0
	q := &queue{shop: shop{quantity: 30}, crowd: 10, fails: func(w http.ResponseWriter, _ *http.Request) bool {
		fails++
		if fails <= 12 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return fails <= 12
	}}
	r := followed(t, q, load.Options{Users: 10})
	if r.Line.Ends["issued"] != 10 || r.Line.Looks.Trouble["HTTP 503"] != 12 || !r.Verdict.OK() {
		t.Errorf("%v, %v, %+v", r.Line.Ends, r.Line.Looks.Trouble, r.Verdict)
	}
}

func TestWhoIsNotServedInTimeIsStillInLine(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	q := &queue{shop: shop{quantity: 30}, crowd: 11, fails: func(http.ResponseWriter, *http.Request) bool { cancel(); return false }}
	r, err := load.Run(ctx, load.Options{Server: q.open(t), Campaign: "launch", Users: 10, Follow: true})
	if err != nil || r.Line.Ends["waiting"] != 10 || !r.Interrupted || r.OK() {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestEveryKindOfWrongLineIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		serve func(q *queue, ticket int64, user string)
		text  string
	}{
		"skips": {func(q *queue, ticket int64, user string) {
			if ticket != 3 {
				q.issue(ticket, user)
			}
			q.away[q.tickets[2]] = ticket == 10 // so that nobody waits at the end
		}, `the ticket 1.3 of the user "u2" was skipped: the later ticket 1.`},
		"swaps two": {func(q *queue, ticket int64, user string) {
			switch ticket {
			case 3:
				q.issue(4, q.tickets[3])
				q.issue(3, user)
			case 4:
			default:
				q.issue(ticket, user)
			}
		}, "the ticket 1.3 was served with number 4, after number 3 of the ticket 1.4"},
		"gives another's place": {func(q *queue, ticket int64, user string) {
			q.issue(ticket+100, user)
		}, "was served with the ticket 1.101"},
		"loses one": {func(q *queue, ticket int64, user string) {
			if q.away[user] = ticket == 10; ticket < 10 {
				q.issue(ticket, user)
			}
		}, `the ticket 1.10 of the user "u9" no longer exists`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &queue{shop: shop{quantity: 30}, crowd: 10, serve: test.serve}
			r := followed(t, q, load.Options{Users: 10, Prefix: "u"})
			found := r.Verdict.Breaches
			if r.OK() || found.Count["P9"] == 0 || len(found.Promises()) != 1 || !slices.ContainsFunc(found.Shown, func(b audit.Breach) bool { return strings.Contains(b.Text, test.text) }) {
				t.Errorf("%v: %v", r.Line.Ends, found.Shown)
			}
		})
	}
}
