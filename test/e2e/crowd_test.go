//go:build linux && !check

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/stage"
)

// A crowd is many clients of one campaign. It keeps the answer to each claim.
type crowd struct {
	campaign string
	start    time.Time
	longest  time.Duration // how long whoever insists waits for an answer; 0: as long as it takes
	returned bool          // stock came back meanwhile
	next     atomic.Int64  // the user who came last
	random   *rand.Rand    // whom it asks, and who

	mu      sync.Mutex // guards what follows
	claims  []audit.Claim
	holders []string // users who were answered a coupon, in the order of the first answers
	held    map[string]bool
	told    int           // answers with a coupon
	last    time.Time     // when the last of them came
	grown   chan struct{} // closed when there are more
	errs    []error       // of claims whose outcome is unknown
}

func newCrowd(campaign string) *crowd {
	return &crowd{campaign: campaign, start: time.Now(), random: seed.Of("crowd of " + campaign), held: map[string]bool{}, grown: make(chan struct{})}
}

// user returns a user who has not claimed yet.
func (c *crowd) user() string { return "user-" + strconv.FormatInt(c.next.Add(1), 10) }

// claim sends one claim and keeps the answer.
func (c *crowd) claim(ctx context.Context, calls *client.Client, user string) (client.Answer, error) {
	claim := audit.Claim{User: firstcome.UserID(user), Sent: time.Since(c.start)}
	answer, err := calls.Claim(ctx, c.campaign, user)
	c.keep(claim, answer, err)
	return answer, err
}

// post sends one claim, keeps the answer, and returns it as it came.
func (c *crowd) post(p *process, user string) (answer *http.Response, text []byte) {
	p.t.Helper()
	claim := audit.Claim{User: firstcome.UserID(user), Sent: time.Since(c.start)}
	answer, text = p.ask(http.MethodPost, p.url+"/v1/campaigns/"+c.campaign+"/claims", `{"user_id":"`+user+`"}`)
	var said client.Answer // of a refusal it reads the outcome
	err := json.Unmarshal(text, &said)
	c.keep(claim, said, err)
	return answer, text
}

// keep stores a claim with the answer that has just come.
func (c *crowd) keep(claim audit.Claim, said client.Answer, err error) {
	claim.Received = time.Since(c.start)
	if err == nil {
		claim.Outcome, err = firstcome.ParseOutcome(said.Outcome)
	}
	if k := said.Coupon; k != nil {
		claim.Number, claim.Code, claim.Recorded, claim.Ranked = k.Number, k.Code, k.Recorded, ranked(k)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims = append(c.claims, claim)
	if err != nil {
		c.errs = append(c.errs, err)
	}
	if claim.Outcome.HasCoupon() {
		if user := string(claim.User); !c.held[user] {
			c.held[user] = true
			c.holders = append(c.holders, user)
		}
		c.told++
		c.last = time.Now()
		close(c.grown)
		c.grown = make(chan struct{})
	}
}

// answered returns how many answers had a coupon, when the last came, and a
// channel that is closed when there are more.
func (c *crowd) answered() (count int, last time.Time, grown <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told, c.last, c.grown
}

// awaitAnswers waits until so many more answers had a coupon.
func (c *crowd) awaitAnswers(t *testing.T, more int) {
	t.Helper()
	before, _, grown := c.answered()
	for now := before; now < before+more; now, _, grown = c.answered() {
		select {
		case <-grown:
		case <-time.After(patience):
			t.Fatalf("waited in vain for %d coupons, there are %d", more, now-before)
		}
	}
}

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// claimUntil has clients claim for new users until stop is called, which waits for them.
// Every claim is answered.
func (c *crowd) claimUntil(p *process, clients int) (stop func()) {
	var all sync.WaitGroup
	var stopped atomic.Bool
	for range clients {
		all.Go(func() {
			for !stopped.Load() {
				if _, err := c.claim(p.t.Context(), p.calls, c.user()); err != nil {
					p.t.Errorf("a client gets %v", err)
				}
			}
		})
	}
	return func() {
		stopped.Store(true)
		all.Wait()
	}
}

// verdict compares all answers with the coupons that the server has, and audits its
// ledger.
func (c *crowd) verdict(p *process) {
	p.t.Helper()
	p.audit()
	c.wereTrue(p)
}

// wereTrue compares all answers with the coupons that a node has.
func (c *crowd) wereTrue(p *process) {
	p.t.Helper()
	campaign, err := p.calls.Campaign(p.t.Context(), c.campaign)
	stage.Must(p.t, err)
	history := audit.History{Claims: c.claims, Quantity: *campaign.Quantity, Returned: c.returned}
	for _, p := range campaign.Prizes {
		prize := audit.Prize{ID: p.ID, From: p.From, To: firstcome.Unlimited}
		if p.To != nil {
			prize.To = *p.To
		}
		history.Prizes = append(history.Prizes, prize)
	}
	err = p.calls.Coupons(p.t.Context(), c.campaign, true, func(k client.Coupon) error {
		coupon := firstcome.Coupon{
			Campaign: firstcome.CampaignID(k.CampaignID), Number: k.Number, User: firstcome.UserID(k.UserID), Code: k.Code,
			IssuedAt: k.IssuedAt.Time, Recorded: k.Recorded,
		}
		if k.State == "voided" {
			coupon.VoidedAt = k.IssuedAt.Time // when is not asked
		}
		history.Coupons, history.Ranks = append(history.Coupons, coupon), append(history.Ranks, ranked(&k))
		return nil
	})
	stage.Must(p.t, err)
	at, err := p.calls.Operator().LedgerState(p.t.Context(), c.campaign)
	stage.Must(p.t, err)
	for _, numbers := range at.Lost {
		history.Lost = append(history.Lost, firstcome.Range(numbers))
	}
	found := audit.Answers(history)
	for _, breach := range found.Shown {
		p.t.Errorf("%s: %s", breach.Promise, breach.Text)
	}
	p.t.Logf("%d claims, %d of them unknown; %d coupons; %d breaches", len(c.claims), len(c.errs), len(history.Coupons), found.Total)
}

// ranked returns a coupon's rank and prize, in the audit's form.
func ranked(k *client.Coupon) audit.Ranked {
	r := audit.Ranked{Rank: k.Rank}
	if k.Prize != nil {
		r.Prize = k.Prize.ID
	}
	return r
}

// findAgain has every holder ask again. The test fails unless each finds their coupon.
// The verdict compares numbers and codes.
func (c *crowd) findAgain(p *process) {
	p.t.Helper()
	users := make(chan string)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for user := range users {
				if answer, err := c.claim(p.t.Context(), p.calls, user); err != nil || answer.Outcome != firstcome.AlreadyIssued.String() {
					p.t.Errorf("%s asks again and gets %s, %v", user, answer.Outcome, err)
				}
			}
		})
	}
	c.mu.Lock()
	holders := c.holders
	c.mu.Unlock()
	for _, user := range holders {
		users <- user
	}
	close(users)
	all.Wait()
}

// isProblem returns the server's answer if it has no outcome, or nil if the server
// did not answer at all.
func isProblem(err error) *client.Problem {
	var p *client.Problem
	if errors.As(err, &p) {
		return p
	}
	return nil
}

// campaign returns what a server says of a campaign.
func (p *process) campaign(id string) (campaign client.Campaign) {
	p.t.Helper()
	err := insist(p.t, func() (err error) {
		campaign, err = p.calls.Campaign(p.t.Context(), id)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return campaign
}

// counted returns what a server says of a campaign once its gate says how many coupons there are.
func (p *process) counted(id string) (campaign client.Campaign) {
	p.t.Helper()
	waitFor(p.t, "the gate's counts", func() bool { campaign = p.campaign(id); return campaign.Issued != nil })
	return campaign
}

func remaining(t *testing.T, p *process, id string) int64 {
	t.Helper()
	return *p.counted(id).Remaining
}
