//go:build !check && (!race || soak)

package ledger_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/follow"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A pair is a primary and its standby, and a name that leads to one of them.
type pair struct {
	primary *services.Server
	standby *services.Standby
	proxy   *services.Proxy
	// The database: at the primary, at the standby, and by the name.
	first, second, name string
}

func newPair(t *testing.T, kind services.Kind) *pair {
	t.Helper()
	p := &pair{primary: kind.Primary(t)}
	p.first = database(t, p.primary, true)
	p.standby = p.primary.Standby(t)
	var err error
	if p.second, err = p.standby.At(p.first); err != nil {
		t.Fatal(err)
	}
	p.proxy, p.name = through(t, p.first)
	return p
}

// lead has the name lead to a server, from the next connection on.
func (p *pair) lead(to *services.Server) { p.proxy.SetUpstream(to.Address()) }

// fail has the primary end, and the standby, with all that the primary had, be the primary.
func (p *pair) fail(t *testing.T) {
	t.Helper()
	for _, step := range []func(context.Context) error{p.standby.CatchUp, p.primary.Demote, p.standby.Promote} {
		stage.Must(t, step(t.Context()))
	}
}

// concludes are the methods whose answer somebody takes for the truth, or that write, with what follows the context in a
// call. Where they say that there is nothing, that is an answer.
var concludes = map[string][]any{
	"Active":           {},
	"AddKey":           {"test", firstcome.Key{ID: "k", Name: "k", Role: firstcome.Admin}},
	"Applied":          {firstcome.Change{Campaign: "c", Version: 1}, false},
	"Adopt":            {recovery.Rebuild{Campaign: "c", Attempt: 1}, recovery.GateState{}, []firstcome.Coupon(nil), true},
	"BeginReconcile":   {"test", firstcome.CampaignID("c"), int64(0)},
	"BeginRebuild":     {"test", firstcome.CampaignID("c"), int64(0)},
	"DurableRun":       {"run"},
	"FinishRebuild":    {recovery.Rebuild{Campaign: "c", Attempt: 1}, recovery.Loaded{}, recovery.Frozen{}},
	"GiveUpRebuild":    {recovery.Rebuild{Campaign: "c", Attempt: 1}},
	"Heartbeat":        {recovery.Rebuild{Campaign: "c", Attempt: 1}},
	"LastRebuild":      {firstcome.CampaignID("c")},
	"LettersToResolve": {ledger.Letters{}},
	"ByCode":           {"", stage.Secret().Code("c", 1)},
	"ByImported":       {"A-1"},
	"CodeOf":           {&firstcome.Coupon{Campaign: "c", Number: 1, Recorded: true}, &firstcome.Terms{Imported: true}},
	"Entries":          {"c"},
	"Import":           {"test", "c", "", []string{"A-1"}},
	"MayIssue":         {"c"},
	"Numbered":         {"c", int64(0), func(int64) {}},
	"RecentRuns":       {time.Second},
	"Refills":          {firstcome.CampaignID("c"), func(firstcome.Coupon) error { return nil }},
	"SeeRun":           {recovery.Run{ID: "run"}},
	"KeepProof":        {ledger.Proof{Campaign: "c", Found: []byte("{}")}},
	"LedgerState":      {firstcome.CampaignID("c"), int64(1)},
	"Bury":             {record.Batch{Campaign: "c", Garbage: []record.Garbage{{Source: "s", Payload: "p"}}}, ""},
	"Campaign":         {"c"},
	"Claim":            {"c", users("a")},
	"Clock":            {},
	"Nodes":            {},
	"TakeNode":         {ledger.NodeRow{Host: "here"}},
	"WriteNode":        {ledger.NodeRow{Host: "here", Counts: []byte("{}")}, false},
	"ClaimRetired":     {"c", users("a")},
	"Counts":           {},
	"CouponOf":         {"c", "a"},
	"Create":           {"test", "c", terms(0)},
	"DeadLetter":       {1},
	"DrainedThrough":   {"c"},
	"Find":             {"c", ledger.Choice{User: "a"}},
	"Forgotten":        {"c"},
	"Behind":           {"topic", 9},
	"JournalOf":        {"ledger"},
	"LineHistory":      {"c"},
	"LineLogs":         {func(firstcome.CampaignID, firstcome.LineLog) {}},
	"NoteJournal":      {"id"},
	"UseGate":          {ledger.RemoteGate{Gate: "ledger"}}, // as it is
	"Whose":            {"c"},
	"CursorOf":         {"topic", firstcome.CampaignID("c")},
	"Follow":           {"topic", "node", time.Second},
	"Followed":         {follow.Following{Follower: "topic", Attempt: 1}, time.Second, []follow.Cursor(nil)},
	"ReplayFacts":      {"test", "topic", firstcome.CampaignID("c"), int64(1)},
	"ReplayAllFacts":   {"test", "topic"},
	"Has":              {"c", []firstcome.Coupon{{Campaign: "c", Number: 1, User: "a"}}},
	"Holders":          {"c", func(firstcome.UserID) {}},
	"Issue":            {gate.Order{Actor: "test"}, "c", users("a")},
	"Keys":             {},
	"LastDecision":     {},
	"Leave":            {"c", "a"},
	"LineOf":           {"c"},
	"Lined":            {},
	"Lines":            {func(firstcome.CampaignID) {}},
	"LogDirect":        {gate.Order{Actor: "test"}, "c", []firstcome.Decision{{Outcome: firstcome.Issued, InLine: 1}}},
	"LoseLine":         {"c"},
	"Mismatched":       {stage.Secret()},
	"OtherGates":       {},
	"Pending":          {"c"},
	"OldTransaction":   {time.Minute},
	"Exists":           {"unknown"}, // a known one is not read
	"Ping":             {},
	"Place":            {"c", "b"},
	"Stays":            {"c", "b"},
	"Record":           {record.Batch{Campaign: "c"}},
	"Refusal":          {"c", 1},
	"Replay":           {"test", 1},
	"Retire":           {"c", gate.State{}, time.Hour},
	"Retiring":         {time.Hour, time.Hour},
	"RevokeKey":        {"test", "none"},
	"EndSessions":      {"none", stage.Epoch},
	"Foreign":          {stage.Epoch},
	"Serve":            {"c", 9},
	"SetTerms":         {"test", "c", 7, func(*firstcome.Terms) {}},
	"StateRetired":     {"c"},
	"ChangeState":      {"test", "c", int64(0), firstcome.ChangeResume},
	"Terms":            {"c", 1},
	"Void":             {"test", "c", 7, "r"},
	"VoidLetter":       {"test", 1, "r"},
	"Wallet":           {"a", "", 10},
}

// lists are the methods that show what there is at an instant, and may do so at a standby.
var lists = map[string][]any{
	"AtOnce":      {func(b *ledger.Tables) error { return stage.Err(b.Campaigns(context.Background())) }},
	"AuditLog":    {ledger.LogFilter{Limit: 9}},
	"Campaigns":   {"", 9},
	"Changes":     {"c", 0, 9, func(firstcome.Change, bool) error { return nil }},
	"Coupons":     {"c", ledger.Page{}, func(firstcome.Coupon) error { return nil }},
	"Course":      {"c", 9, 9},
	"List":        {ledger.Listing{Text: "c", Limit: 9}},
	"StepsAt":     {"c", []int64{1}},
	"Voids":       {"c", 9},
	"DeadLetters": {ledger.Letters{}}, "LetterCauses": {"c"},
	"Export":      {"c", ledger.Page{}, func(firstcome.Coupon, string) error { return nil }},
	"Facts":       {"c", 0, 9, func(firstcome.Fact) error { return nil }},
	"FollowerLag": {"topic"},
	"Unclosed":    {9},
	"Lost":        {"c"},
	"PrizesGiven": {"c", &firstcome.Terms{Prizes: []firstcome.Prize{{Quantity: 1}, {}}}, 1},
	"Proofs":      {[]firstcome.CampaignID{"c"}},
}

// roles returns a ledger, and the types that it has as fields for its roles.
func roles(l *ledger.Ledger) []reflect.Value {
	all := []reflect.Value{reflect.ValueOf(l)}
	for n := range reflect.TypeFor[ledger.Ledger]().NumField() {
		if reflect.TypeFor[ledger.Ledger]().Field(n).IsExported() {
			all = append(all, reflect.ValueOf(l).Elem().Field(n))
		}
	}
	return all
}

// call calls a method of a role of a ledger, and returns its error.
func call(ctx context.Context, l *ledger.Ledger, method string, arguments []any) error {
	var m reflect.Value
	for _, role := range roles(l) {
		if found := role.MethodByName(method); found.IsValid() {
			m = found
		}
	}
	in := []reflect.Value{reflect.ValueOf(ctx)}
	for n, a := range arguments {
		in = append(in, reflect.ValueOf(a).Convert(m.Type().In(n+1)))
	}
	out := m.Call(in)
	err, _ := out[len(out)-1].Interface().(error)
	return err
}

// TestEveryReadSaysWhetherAStandbyMayAnswerIt finds methods that ask the database and are in neither
// list, so that somebody decides which pool is theirs.
func TestEveryReadSaysWhetherAStandbyMayAnswerIt(t *testing.T) {
	asks := reflect.TypeFor[func(context.Context)]().In(0)
	found := map[string]string{}
	for _, role := range roles(&ledger.Ledger{}) {
		for n := range role.NumMethod() {
			m := role.Type().Method(n)
			if m.Type.NumIn() < 2 || m.Type.In(1) != asks || m.Name == "Run" || m.Name == "Backup" || m.Name == "Verify" { // the last two: of SQLite's file
				continue
			}
			if (concludes[m.Name] == nil) == (lists[m.Name] == nil) {
				t.Errorf("%s is to be in concludes or in lists", m.Name)
			}
			if other := found[m.Name]; other != "" {
				t.Errorf("%s is a method of %s and of %s, and is called at one of them", m.Name, other, role.Type())
			}
			found[m.Name] = role.Type().String()
		}
	}
	for _, names := range []map[string][]any{concludes, lists} {
		for name := range names {
			if found[name] == "" {
				t.Errorf("nothing of a ledger is called %s", name)
			}
		}
	}
}

// TestF61WhereANameLeadsToAStandbyNothingIsConcluded has a name lead to a standby that lags, and
// then has that be the primary, under the same node.
func TestF61WhereANameLeadsToAStandbyNothingIsConcluded(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		p := newPair(t, kind)
		l := start(t, p.name, nil)
		create(t, l, "c", 1)
		stage.Same(t, "at the primary", "issued:1", claim(t, l.Gate, "c", "a"))
		stage.Must(t, errors.Join(p.standby.CatchUp(t.Context()), p.standby.Lag(t.Context())))
		p.lead(p.standby.Server)
		p.proxy.Cut() // the next connections are new ones
		p.proxy.Heal()
		for name, arguments := range concludes {
			if name == "OldTransaction" && kind == services.MariaDB {
				continue // it asks nothing there
			}
			if err := overCut(t, l, name, arguments); err == nil || isAnswer(err) || !strings.Contains(err.Error(), "the server is a standby") {
				t.Errorf("%s of a standby: %v", name, err)
			}
		}
		for name, arguments := range lists {
			if err := overCut(t, l, name, arguments); err != nil {
				t.Errorf("%s of a standby: %v", name, err)
			}
		}
		p.fail(t)
		for name, arguments := range concludes {
			if err := call(t.Context(), l, name, arguments); err != nil && !isAnswer(err) {
				t.Errorf("%s of the standby that was promoted: %v", name, err)
			}
		}
		stage.Same(t, "promoted", "already_issued:1 sold_out:0", claim(t, l.Gate, "c", "a", "b"))
	})
}

// overCut calls a method until the error is no longer of a connection that was cut: of these a pool has a few.
func overCut(t *testing.T, l *ledger.Ledger, method string, arguments []any) (err error) {
	t.Helper()
	for range 32 {
		if err = call(t.Context(), l, method, arguments); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
	}
	return err
}

// TestACopyOfTheLedgerIsReadAtAStandbyAndOnlyThere opens the ledger where there is no primary.
func TestACopyOfTheLedgerIsReadAtAStandbyAndOnlyThere(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		p := newPair(t, kind)
		create(t, start(t, p.first, nil), "c", 1)
		stage.Must(t, p.standby.CatchUp(t.Context()))
		for what, open := range map[string]func(context.Context, string) (*ledger.Ledger, error){"a copy": ledger.OpenCopy, "the ledger": ledger.OpenShared} {
			l, err := open(t.Context(), p.second)
			if (err == nil) != (what == "a copy") {
				t.Errorf("%s at a standby: %v", what, err)
			}
			if err != nil {
				continue
			}
			if _, err := l.Reads.Campaign(t.Context(), "c"); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		found := examine(t, p.second)
		found.Want(t, "FAIL", map[services.Kind]string{services.MariaDB: "read_only", services.PostgreSQL: "writes"}[kind])
	})
}
