//go:build !check

package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/ops"
	"github.com/firstcome/firstcome/test/stage"
)

// A shelf is a server whose campaigns a fake gate decides, and a user of the command line. The test controls the clock.
type shelf struct {
	t      *testing.T
	now    atomic.Pointer[time.Time] // atomic, because goroutines of the server read it too
	ledger *ledger.Ledger
	gate   *blindGate
	url    string
}

// A blindGate returns an error instead of an answer while it has one.
type blindGate struct {
	*stage.Gate
	why atomic.Pointer[error]
}

func (g *blindGate) shut() error {
	if why := g.why.Load(); why != nil {
		return *why
	}
	return nil
}

// State implements gate.Gate.
func (g *blindGate) State(ctx context.Context, id firstcome.CampaignID) (gate.State, error) {
	if err := g.shut(); err != nil {
		return gate.State{}, err
	}
	return g.Gate.State(ctx, id)
}

// LineOf implements gate.Places.
func (g *blindGate) LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	if err := g.shut(); err != nil {
		return gate.LineState{}, err
	}
	return g.Gate.LineOf(ctx, id)
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	c := &shelf{t: t, gate: &blindGate{Gate: stage.NewGate(0)}}
	c.sets(stage.Epoch)
	c.gate.Clock, c.gate.Lease = c.clock, 0
	var err error
	c.ledger, err = ledger.Open(t.Context(), filepath.Join(t.TempDir(), "firstcome.db"), ledger.Options{Owner: "a test", Secret: stage.Secret(), Clock: c.clock, Gate: "redis:test"})
	stage.Must(t, err)
	stage.Serve(t, c.ledger)
	return c
}

func (c *shelf) clock() time.Time { return *c.now.Load() }

// sets sets the clock.
func (c *shelf) sets(now time.Time) { c.now.Store(&now) }

// serves starts another node, which has no cached answers: a node repeats a line's state for a quarter of a second.
func (c *shelf) serves() {
	t := c.t
	t.Helper()
	over := &gate.Router{Gate: c.gate, Retired: c.ledger.Gate, Ledger: c.ledger.Recorder}
	issuer := issue.NewIssuer(over, issue.Options{})
	t.Cleanup(func() { stage.Must(t, issuer.Stop(context.Background())) })
	terms := api.NewTermsCache(c.ledger.Reads.Terms)
	claims := &issue.Answerer{Issuer: issuer, Coupons: over, Terms: terms.Terms}
	log := slog.New(slog.DiscardHandler)
	monitor := ops.New(log, "test", "")
	served := httptest.NewServer(api.New(api.Options{
		Ledger: c.ledger.Reads, Keys: c.ledger.Deployment, Terms: terms, Claims: claims, Gate: over, Places: over, Auth: auth.New(auth.Options{Open: true}), Log: log, Observer: monitor, Health: monitor.Health,
		Operator: operate.NewRemote(operate.Ledger{Campaigns: c.ledger.Campaigns, Letters: c.ledger.Recorder, Reads: c.ledger.Reads}, issuer, claims, gate.NewChanger(c.ledger.Campaigns, over, nil), over, nil),
	}).Handler())
	t.Cleanup(served.Close)
	c.url = served.URL
}

// types runs a command, and returns what it printed, with one space between columns.
func (c *shelf) types(command string) (printed string, status int) {
	c.t.Helper()
	var out bytes.Buffer
	args := append(strings.Fields(command), "--server", c.url)
	if args[0] != "claim" {
		args = append(args, "--tz", "UTC")
	}
	status = run(c.t.Context(), args, terminal{out: &out, err: &out})
	return regexp.MustCompile(` {2,}`).ReplaceAllString(out.String(), " "), status
}

// does runs a command that changes something.
func (c *shelf) does(command string) {
	c.t.Helper()
	if printed, status := c.types(command); status != exitOK {
		c.t.Fatalf("firstcome %s: %d %s", command, status, printed)
	}
}

// gets claims for users at a node without cached answers.
func (c *shelf) gets(id firstcome.CampaignID, want firstcome.Outcome, users ...firstcome.UserID) {
	c.t.Helper()
	decisions, err := c.gate.Claim(c.t.Context(), id, users)
	stage.Must(c.t, err)
	for _, d := range decisions {
		if d.Outcome != want {
			c.t.Fatalf("a claim gets %v, want %v", d.Outcome, want)
		}
	}
}

// TestWhatTheCommandLinePrintsIsTrueInEveryState takes a campaign, and another with a line, through their states, by commands where a command exists.
func TestWhatTheCommandLinePrintsIsTrueInEveryState(t *testing.T) {
	c := newShelf(t)
	c.serves()
	at := func(at time.Time) string { return timeText(&client.Time{Time: at}) }
	opens := c.clock().Add(time.Hour)
	lapses := opens.Add(2 * time.Second)
	const lapsed = " (it has passed, so coupons issued now are already expired: "
	var opened, soldOut, closed time.Time
	c.does("campaign create spring --quantity 2 --answer decided --opens-at " + at(opens) + " --valid-until " + at(lapses))
	c.does("campaign create queue --quantity 2 --pace 1")
	figures := func(held, issued, quantity int) string {
		return fmt.Sprintf("quantity %d\nin force %d\nissued %d\nremaining %d\n", quantity, held, issued, quantity-held)
	}
	instants := func(opened, soldOut, closed string) string {
		return fmt.Sprintf("opened at %s\nfirst sold out %s\nclosed at %s\n", opened, soldOut, closed)
	}
	const away, began = "the gate does not answer", "Redis restarted or went back to an older state, another server took over, or a rebuild is under way: nodes verify or rebuild it within seconds"
	cannot := fmt.Errorf("%w: no route", firstcome.ErrGateUnavailable)
	verifying := fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, gate.ErrUnverified)
	var nobody error
	for _, step := range []struct {
		name string
		do   func()
		// says has texts that commands must print, or must not print if the text begins with !.
		says func() map[string][]string
	}{
		{"before it opens", func() {}, func() map[string][]string {
			return map[string][]string{
				"campaign show spring": {"state not_open\n", figures(0, 0, 2), instants("-", "-", "-")},
				"campaign list":        {"spring not_open 2 0 0 " + at(opens), "queue open 2 0 0 -"},
			}
		}},
		{"one has a coupon that is not recorded, and another waits", func() {
			c.sets(opens)
			opened = opens
			c.gets("spring", firstcome.Issued, "a")
			c.gets("queue", firstcome.Waiting, "a")
		}, func() map[string][]string {
			return map[string][]string{
				"campaign show spring":        {"state open\n", figures(1, 1, 2), instants(at(opened), "-", "-")},
				"campaign list":               {"spring open 2 1 1 ", "queue open 2 0 0 -"},
				"campaign show queue":         {"state open\n", "in line 1\n", "next in line ticket 1 or later"},
				"place spring a":              {"already_issued", "number 1"},
				"place queue a":               {"waiting", "ticket 1"},
				"!place spring stranger":      {"Not Found"},
				"!coupon show spring 1":       {"the ledger has no coupon 1 of the campaign spring"},
				"coupon list spring --user a": {"!a "},
			}
		}},
		{"sold out", func() {
			c.gate.Record(t, c.ledger.Recorder, "spring")
			soldOut = c.clock().Add(time.Second)
			c.sets(soldOut)
			c.gets("spring", firstcome.Issued, "b")
			c.gate.Record(t, c.ledger.Recorder, "spring")
		}, func() map[string][]string {
			return map[string][]string{
				"campaign show spring":        {"state sold_out\n", figures(2, 2, 2), instants(at(opened), at(soldOut), "-"), "valid until " + at(lapses) + "\n"},
				"campaign list":               {"spring sold_out 2 2 2 "},
				"!claim spring c":             {"sold_out"},
				"coupon show spring 1":        {"state in_force\n", "user a\n", "recorded true\n"},
				"coupon list spring --user b": {"spring 2 b "},
			}
		}},
		{"voided since", func() { c.does("coupon void spring 2 --reason asked"); c.sets(c.clock().Add(time.Second)) }, func() map[string][]string {
			return map[string][]string{
				"campaign show spring": {"state open\n", figures(1, 2, 2), instants(at(opened), at(soldOut), "-"), "valid until " + at(lapses) + lapsed},
				"!campaign update spring --valid-until " + at(lapses.Add(-1)): {"coupon.valid_until: must be in the future"},
				"coupon show spring 2":                 {"state voided\n"},
				"coupon list spring --user b --voided": {"spring 2 b ", " voided "},
				"!place spring b":                      {"Not Found"},
			}
		}},
		{"raised since", func() { c.does("campaign update spring --quantity 5") }, func() map[string][]string {
			return map[string][]string{
				"campaign show spring": {"state open\n", figures(1, 2, 5), instants(at(opened), at(soldOut), "-")},
			}
		}},
		{"paused", func() { c.does("campaign pause spring"); c.does("campaign pause queue") }, func() map[string][]string {
			return map[string][]string{
				"campaign list":   {"spring paused 5 1 2 ", "queue paused 2 0 0 "},
				"!claim spring c": {"paused"},
				"place queue a":   {"waiting", "paused"},
			}
		}},
		{"the gate away", func() { c.gate.why.Store(&cannot) }, func() map[string][]string {
			return map[string][]string{
				"campaign list":         {"spring unknown (" + away + ") 5 - - ", "queue unknown (" + away + ")"},
				"!campaign show spring": {"the gate does not answer", "!state open"},
			}
		}},
		{"recovering", func() { c.gate.why.Store(&verifying) }, func() map[string][]string {
			return map[string][]string{
				"campaign list":        {"spring unknown (" + began + ") 5 - - ", "queue unknown (" + began + ")"},
				"campaign show spring": {"state unknown (" + began + ")\n", "quantity 5\nin force -\nissued -\nremaining -\n", instants("-", "-", "-")},
				"campaign show queue":  {"state unknown (" + began + ")\n", "in line -\n", "!next in line"},
			}
		}},
		{"closed", func() {
			c.gate.why.Store(&nobody)
			closed = c.clock()
			c.does("campaign close spring --yes")
			c.does("campaign close queue --yes")
		}, func() map[string][]string {
			return map[string][]string{
				"campaign show spring": {"state closed\n", figures(1, 2, 5), instants(at(opened), at(soldOut), at(closed)), "valid until " + at(lapses) + "\n"},
				"campaign show queue":  {"state closed\n", "in line 0\n", "last line ended closed at " + at(closed)},
				"!place queue a":       {"Not Found"},
				"!claim queue a":       {"closed"},
			}
		}},
	} {
		step.do()
		c.serves()
		for command, texts := range step.says() {
			command, fails := strings.CutPrefix(command, "!")
			printed, status := c.types(command)
			if (status != exitOK) != fails {
				t.Errorf("%s: firstcome %s ends with %d: %s", step.name, command, status, printed)
			}
			for _, text := range texts {
				if text, not := strings.CutPrefix(text, "!"); strings.Contains(printed, text) == not {
					t.Errorf("%s: firstcome %s says %q should be %t:\n%s", step.name, command, text, !not, printed)
				}
			}
		}
	}
}
