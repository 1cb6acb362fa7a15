//go:build !check

package redis_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// address returns the HOST:PORT of a URL.
func address(t testing.TB, at string) string {
	t.Helper()
	u, err := url.Parse(at)
	stage.Must(t, err)
	return u.Host
}

func TestTheScriptHasTheOutcomesOfTheRule(t *testing.T) {
	text, err := os.ReadFile("lua/decide.lua")
	stage.Must(t, err)
	line := regexp.MustCompile(`(?m)^local ([A-Z_, ]+) = ([0-9, ]+) -- firstcome.Outcome$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the scripts have no line of outcomes")
	}
	names, numbers := strings.Split(string(line[1]), ", "), strings.Split(string(line[2]), ", ")
	var want, got []string
	for _, o := range firstcome.Outcomes() {
		want = append(want, strings.ToUpper(o.String())+" "+strconv.Itoa(int(o)))
	}
	for n, name := range names {
		got = append(got, name+" "+numbers[n])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the scripts have others (-Go +Lua):\n%s", diff)
	}
}

func TestF15AUserIsNeverPartOfAKey(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	users := []firstcome.UserID{"{x}", firstcome.UserID(keysOf[0]), ":", "a b", "*", "$(id)", "'; return 1 --", "\x00\r", "version"}
	for n, user := range users {
		s.want(s.gate, []firstcome.UserID{user, user}, "issued:"+strconv.Itoa(n+1), "already_issued:"+strconv.Itoa(n+1))
	}
	if _, err := s.gate.Claim(t.Context(), "c", []firstcome.UserID{"a\nb"}); err == nil {
		t.Error("a user with a line feed was taken: it would be two in the journal")
	}
	keys, err := s.do("KEYS", "*").AsStrSlice()
	stage.Must(t, err)
	slices.Sort(keys)
	want := []string{"firstcome:created:-", "firstcome:instance", "firstcome:layout", keysOf[0], keysOf[1], keysOf[2]}
	slices.Sort(want)
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("there are other keys (-want +got):\n%s", diff)
	}
	s.drain(s.journal(), p.Take)
	p.Wait(t, "all but the one that is no user", func() bool { return len(p.Coupons("c")) == len(users)-1 && len(p.Letters()) == 1 })
}

func TestF19AVoidTakesTheCouponOfItsNumberOnly(t *testing.T) {
	var clock atomic.Int64
	s := newShop(t, services.Redis.Database(t), 2, func(o *redis.Options) { o.Clock = func() time.Time { return time.Unix(clock.Load(), 0) } })
	s.want(s.gate, crowd(0, 3), "issued:1", "issued:2", "sold_out")
	void := firstcome.Change{Version: 2, Kind: firstcome.ChangeVoid, Number: 1, User: "user-0"}
	s.apply(void)
	s.apply(void) // a repeat changes nothing
	clock.Add(1)
	s.want(s.gate, crowd(0, 1), "issued:3")
	void.Version = 3 // about the number that the user held before
	s.apply(void)
	clock.Add(1)
	s.want(s.gate, crowd(0, 3), "already_issued:3", "already_issued:2", "sold_out")
	if state := s.state(); state.InForce != 2 || state.Issued != 3 {
		t.Errorf("the state is %+v", state)
	}
}

func TestF25OneUserWhoClaimsAtOnceThroughThreeNodesIsIssuedOneCoupon(t *testing.T) {
	url := services.Redis.Database(t)
	s := newShop(t, url, 100)
	gates := []*node{s.gate, open(t, url), open(t, url)}
	var all sync.WaitGroup
	var mu sync.Mutex
	got := map[string]int{}
	for n := range 100 {
		all.Go(func() {
			decisions, err := gates[n%3].Claim(t.Context(), "c", crowd(0, 1))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			got[outcomes(decisions)[0]]++
		})
	}
	all.Wait()
	if diff := cmp.Diff(map[string]int{"issued:1": 1, "already_issued:1": 99}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestF27TheQuantityHoldsAtEveryValue(t *testing.T) {
	for _, quantity := range []int64{0, 1, 40, 10_000_000, firstcome.MaxQuantity, firstcome.Unlimited} {
		s := newShop(t, services.Redis.Database(t), quantity)
		issued := 0
		for _, d := range s.issue(0, 40) {
			if d.Outcome == firstcome.Issued {
				issued++
			}
		}
		if want := min(quantity, 40); int64(issued) != want {
			t.Errorf("of %d coupons %d were issued to 40 users", quantity, issued)
		}
	}
}

func TestF27AQuantityBelowWhatIsInForceIsRefusedForGood(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 10)
	s.issue(0, 5)
	lower := firstcome.Change{Version: 2, Kind: firstcome.ChangeTerms, Terms: firstcome.Terms{Quantity: 4}}
	if !s.apply(lower) || s.state().Version != 2 {
		t.Error("it was not refused, or its version not used up")
	}
	s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeVoid, Number: 5, User: "user-4"})
	if !s.apply(lower) {
		t.Error("asked again, the refusal is forgotten")
	}
	lower.Version = 4
	if once, again := s.apply(lower), s.apply(lower); once || again {
		t.Error("a quantity of what is in force was refused")
	}
	s.want(s.gate, crowd(5, 1), "sold_out")
}

func TestF28UsersAreByteExactInTheGateAndItsJournal(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), firstcome.Unlimited), stage.NewLedger("c")
	users := []firstcome.UserID{"user1", "User1", "user1 ", " user1", "\u00e9", "e\u0301", "007", "7", "\U0001f39f", "\u202eabc", firstcome.UserID(strings.Repeat("x", 128))}
	for _, user := range users {
		if d, err := s.gate.Claim(t.Context(), "c", []firstcome.UserID{user}); err != nil || d[0].Outcome != firstcome.Issued {
			t.Errorf("%q: %v, %v", user, d, err)
		}
	}
	s.drain(s.journal(), p.Take)
	p.WaitFor(t, len(users))
	for n, user := range users {
		if got := p.Coupons("c")[int64(n+1)].User; got != user {
			t.Errorf("%q became %q", user, got)
		}
		if c, err := s.gate.CouponOf(t.Context(), "c", user); err != nil || c.Number != int64(n+1) {
			t.Errorf("%q holds %+v, %v", user, c, err)
		}
	}
}

// TestF62NoLeaseOutlivesStockThatCameBack lets one node repeat sold_out while another returns stock. Returned stock is quarantined for longer than
// any lease, and no new lease begins in that time: once a coupon of it is issued, no node refuses anybody. The test sets the gate's clock.
func TestF62NoLeaseOutlivesStockThatCameBack(t *testing.T) {
	var clock atomic.Int64
	at, held := services.Redis.Database(t), func(o *redis.Options) { o.Clock = func() time.Time { return time.Unix(1_800_000_000, clock.Load()) } }
	s := newShop(t, at, 10, held)
	nodes := []*issue.Issuer{issue.NewIssuer(s.gate, issue.Options{}), issue.NewIssuer(open(t, at, held), issue.Options{})}
	for _, n := range nodes {
		defer func() { _ = n.Stop(context.Background()) }()
	}
	s.issue(0, 10)
	lease := s.issue(10, 1)[0].Lease
	want := func(node int, user firstcome.UserID, outcome firstcome.Outcome) {
		t.Helper()
		d, err := nodes[node].Claim(t.Context(), "c", user)
		stage.Must(t, err)
		if d.Outcome != outcome {
			t.Errorf("node %d says %v to %s, want %v", node, d.Outcome, user, outcome)
		}
	}
	stage.Await(t, "whether a refusal is repeated", true, func() bool {
		want(1, "late", firstcome.SoldOut)
		return nodes[1].Stats().Cached > 0
	})
	for number := range 2 {
		change := firstcome.Change{Version: int64(number + 2), Kind: firstcome.ChangeVoid, Number: int64(number + 1), User: crowd(number, 1)[0]}
		if err := nodes[0].Change("c", func() error {
			s.apply(change)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	clock.Add(int64(lease))
	want(0, "first", firstcome.SoldOut) // an earlier lease may not have ended yet
	stage.Await(t, "whether the other node asks again", true, func() bool {
		before := nodes[1].Stats().Cached
		want(1, "another", firstcome.SoldOut)
		return nodes[1].Stats().Cached == before
	})
	clock.Add(int64(lease))
	want(0, "first", firstcome.Issued)
	want(1, "second", firstcome.Issued)
}

func TestAGateWithAFullBacklogIssuesNothingAndKnowsItsHolders(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), 12, func(o *redis.Options) { o.Backlog = 10 }), stage.NewLedger("c")
	decisions := s.issue(0, 11)
	if decisions[9].Outcome != firstcome.Issued || decisions[10].Outcome != 0 {
		t.Errorf("got %v", outcomes(decisions))
	}
	s.want(s.gate, crowd(9, 2), "already_issued:10", "undecided")
	s.drain(s.journal(), p.Take)
	s.drained(10)
	s.want(s.gate, crowd(9, 4), "already_issued:10", "issued:11", "issued:12", "sold_out")
}

func TestChangesAreAppliedInOrderAndOnce(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 1)
	pause := firstcome.Change{Campaign: "c", Version: 3, Kind: firstcome.ChangePause}
	if _, err := s.gate.Apply(t.Context(), pause); !errors.Is(err, gate.ErrGap) {
		t.Errorf("a change before its turn got %v", err)
	}
	pause.Version = 2
	s.apply(pause)
	s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeResume})
	s.apply(pause) // a late repeat of an applied change
	s.want(s.gate, crowd(0, 1), "issued:1")
	s.do("DEL", keysOf[0])
	for _, version := range []int64{1, 4} {
		change := firstcome.Change{Campaign: "c", Version: version, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: firstcome.Terms{Quantity: 1}}
		if _, err := s.gate.Apply(t.Context(), change); !errors.Is(err, gate.ErrGone) {
			t.Errorf("change %d of a campaign that was lost got %v", version, err)
		}
	}
}

// TestARetiredCampaignLeavesNoKeysAlsoIfSomeWereGone leaves only the note that the campaign was created: see created.go.
func TestARetiredCampaignLeavesNoKeysAlsoIfSomeWereGone(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 5)
	s.issue(0, 3)
	for range 2 {
		stage.Must(t, s.gate.Retire(t.Context(), "c"))
		keys, err := s.do("KEYS", "*").AsStrSlice()
		slices.Sort(keys)
		if diff := cmp.Diff([]string{"firstcome:created:-", "firstcome:instance", "firstcome:layout"}, keys); diff != "" || err != nil {
			t.Errorf("keys are left: %v\n%s", err, diff)
		}
		s.do("XADD", keysOf[2], "*", "format", "1") // the journal without its campaign
	}
}

func TestNoErrorHasThePassword(t *testing.T) {
	const password = "hunter2"
	server := services.Redis.Server(t, "--requirepass", "another")
	for _, at := range []string{
		"redis://user:" + password + "@" + server.Address() + "/0", "redis://user:" + password + "@" + server.Address() + "/x",
		"redis://user:" + password + "%zz@host", "redis://:" + password + "@127.0.0.1:1", "http://user:" + password + "@host", "user:" + password,
	} {
		_, err := redis.Open(t.Context(), redis.Options{URL: at, Secret: secret(t)})
		if err == nil || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v", at, err)
		}
	}
	g := open(t, "redis://:another@"+server.Address()+"/0")
	if err := g.Ping(t.Context()); err != nil || !strings.HasPrefix(g.Name(), "redis:") {
		t.Errorf("%s: %v", g.Name(), err)
	}
}

func TestTheRightsInTheManualAreThoseThatAreTried(t *testing.T) {
	text, err := os.ReadFile("../../docs/operate.md")
	stage.Must(t, err)
	if !strings.Contains(string(text), " "+redis.Rights+"\n") {
		t.Errorf("docs/operate.md does not have the rights %s", redis.Rights)
	}
}

// TestP11AVoidOfAnImportedCodeLowersTheQuantity: its stock does not come back, and such a campaign begins paused.
func TestP11AVoidOfAnImportedCodeLowersTheQuantity(t *testing.T) {
	url := services.Redis.Database(t)
	s := &shop{t: t, url: url, gate: open(t, url), client: connect(t, url), alarms: make(stage.Alarms, 100)}
	s.apply(firstcome.Change{Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: firstcome.Terms{Quantity: 3, Imported: true}, Paused: true})
	s.want(s.gate, crowd(0, 1), "paused")
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeResume, Payload: `{"lists":[]}`})
	s.want(s.gate, crowd(0, 4), "issued:1", "issued:2", "issued:3", "sold_out")
	void := firstcome.Change{Version: 3, Kind: firstcome.ChangeVoid, Number: 1, User: "user-0", Burns: true}
	s.apply(void)
	s.apply(void) // a repeat changes nothing
	s.want(s.gate, []firstcome.UserID{"user-0", "user-1", "user-9"}, "sold_out", "already_issued:2", "sold_out")
	s.apply(firstcome.Change{Version: 4, Kind: firstcome.ChangeVoid, Number: 1, User: "user-9", Burns: true}) // of a dead letter that the gate does not have
	if state := s.state(); state.InForce != 2 || state.Issued != 3 {
		t.Errorf("the state is %+v", state)
	}
	quantity, err := s.do("HGET", keysOf[0], "quantity").ToString()
	stage.Must(t, err)
	if codes, err := s.do("HGET", keysOf[0], "codes").ToString(); err != nil || codes != `{"lists":[]}` || quantity != "1" {
		t.Errorf("the gate keeps the quantity %s and %q, %v", quantity, codes, err)
	}
}
