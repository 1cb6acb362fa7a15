//go:build linux && !check

package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A keyed caller calls nodes with a key.
type keyed struct {
	t     *testing.T
	calls []*client.Client // of each node
}

// newKeyed makes a key in a ledger and returns who calls nodes with it, and the key's id.
func newKeyed(t *testing.T, ledger string, nodes ...*process) (*keyed, string) {
	t.Helper()
	status, out := executeWith(t, t.TempDir(), nil, "key", "create", "--ledger", ledger, "--name", "shop", "--role", "admin")
	key := lastLine(out)
	if status != 0 {
		t.Fatalf("make a key: %s", out)
	}
	k := &keyed{t: t}
	for _, p := range nodes {
		c := client.New(p.url, key)
		t.Cleanup(c.CloseIdle)
		k.calls = append(k.calls, c)
	}
	_, rest, _ := strings.Cut(key, "_")
	id, _, _ := strings.Cut(rest, "_")
	return k, id
}

// told returns what a node tells a user who claims.
func (k *keyed) told(node int, campaign, user string) string {
	k.t.Helper()
	var answer client.Answer
	err := insist(k.t, func() (err error) {
		answer, err = k.calls[node].Claim(k.t.Context(), campaign, user)
		return err
	})
	if err != nil {
		k.t.Errorf("%s claims of %s: %v", user, campaign, err)
	}
	return answer.Outcome
}

func (k *keyed) want(what, want, got string) {
	k.t.Helper()
	if got != want {
		k.t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// done does something that has to be answered.
func (k *keyed) done(what string, do func(context.Context) error) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), patience)
	defer cancel()
	if err := do(ctx); err != nil {
		k.t.Errorf("%s: %v", what, err)
	}
}

// TestF61NodesThatListAtALaggingStandbyConcludeAtThePrimary has nodes with a name of two hosts, of which the
// first is a standby that stands still: lists are what it has, and nothing else is.
func TestF61NodesThatListAtALaggingStandbyConcludeAtThePrimary(t *testing.T) {
	for what, gate := range map[string]func(testing.TB) string{
		"the ledger decides": func(testing.TB) string { return "" }, "Redis decides": services.Redis.Database,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			primary := services.PostgreSQL.Primary(t)
			at, err := primary.Database(t.Context())
			stage.Must(t, err)
			standby := primary.Standby(t)
			u, err := url.Parse(at)
			stage.Must(t, err)
			u.Host = standby.Address() + "," + u.Host
			args := []string{"--ledger", u.String()}
			if g := gate(t); g != "" {
				args = append(args, "--gate", g)
			}
			start := func() *process {
				return serve(t, launch{args: args, env: []string{"FIRSTCOME_SECRET=" + fleetSecret}})
			}
			maker := start() // in development mode, since there is no key
			for id, quantity := range map[string]int64{"spring": 1, "summer": 100} {
				maker.create(id, quantity)
			}
			maker.stop()
			stage.Must(t, errors.Join(standby.CatchUp(t.Context()), standby.Lag(t.Context())))
			_, _ = newKeyed(t, u.String())        // which the standby does not have
			nodes := []*process{start(), start()} // which are not in development mode
			k, id := newKeyed(t, u.String(), nodes...)

			waitFor(t, "the key to be known", func() bool {
				_, err0 := k.calls[0].Campaigns(t.Context(), "", 0)
				_, err1 := k.calls[1].Campaigns(t.Context(), "", 0)
				return err0 == nil && err1 == nil
			})
			k.want("the first", "issued", k.told(0, "spring", "a"))
			for range 20 { // so that the node repeats the refusal, and has read the holders
				for node := range nodes {
					k.want("all are sold out", "sold_out", k.told(node, "spring", "b"))
					k.want("whoever holds one", "already_issued", k.told(node, "spring", "a"))
				}
			}
			k.done("a holder reads the coupon", func(ctx context.Context) error {
				_, err := k.calls[1].ClaimOf(ctx, "spring", "a")
				return err
			})
			k.done("two changes, one behind the other", func(ctx context.Context) error {
				for _, node := range []int{0, 1} {
					if _, err := k.calls[node].UpdateCampaign(ctx, "summer", 0, map[string]any{"quantity": 50 - node}); err != nil {
						return err
					}
				}
				return nil
			})
			k.want("before it is closed", "issued", k.told(1, "summer", "a"))
			k.done("it is closed", func(ctx context.Context) error { _, err := k.calls[0].Close(ctx, "summer"); return err })
			for node := range nodes {
				k.want("after the operator's answer", "closed", k.told(node, "summer", "late"))
			}
			k.done("a campaign is made", func(ctx context.Context) error {
				_, err := k.calls[0].CreateCampaign(ctx, client.NewCampaign{ID: "autumn", Name: "Autumn"})
				return err
			})
			k.done("it is read at the other node", func(ctx context.Context) error { _, err := k.calls[1].Campaign(ctx, "autumn"); return err })
			k.want("of the one that was made", "issued", k.told(1, "autumn", "a"))
			k.done("the standby lists", func(ctx context.Context) error {
				list, err := k.calls[1].Campaigns(ctx, "", 0)
				if len(list.Items) != 2 {
					t.Errorf("the lists come from the primary: there are %d campaigns", len(list.Items))
				}
				return err
			})
			k.done("an audit reads the primary, and compares the gate with that", func(ctx context.Context) error {
				for _, campaign := range []string{"spring", "autumn"} {
					found, err := k.calls[1].Operator().Audit(ctx, campaign)
					if err != nil {
						return err
					}
					if g := found.Gate; found.Coupons != 1 || found.Breaches.Total > 0 || g != nil && g.Breaches.Total > 0 {
						t.Errorf("the audit finds %+v, at the gate %+v", found, g)
					}
				}
				return nil
			})
			if status, out := executeWith(t, t.TempDir(), nil, "key", "revoke", id, "--ledger", u.String()); status != 0 {
				t.Fatalf("revoke a key: %s", out)
			}
			waitFor(t, "the key to be bad", func() bool {
				_, err := k.calls[0].Campaign(t.Context(), "spring")
				p := isProblem(err)
				return p != nil && p.Status == http.StatusUnauthorized
			})
			told := func() string {
				_, text := nodes[0].ask(http.MethodGet, "http://"+nodes[0].ops+"/readyz?verbose", "")
				return string(text)
			}
			waitFor(t, "the ledger to be read within a second", func() bool { return strings.Contains(told(), `"ledger":"ok"`) })
			stage.Must(t, primary.Kill())
			if text := told(); !strings.Contains(text, "cannot be read") {
				t.Errorf("where only the standby is left the node says %s", text)
			}
		})
	}
}

// TestF61ANameThatMovesToAnotherPrimaryIsFollowedWithoutARestart switches over as operate.md says, under a node
// that has connections to the old primary.
func TestF61ANameThatMovesToAnotherPrimaryIsFollowedWithoutARestart(t *testing.T) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			primary := kind.Primary(t)
			at, err := primary.Database(t.Context())
			stage.Must(t, err)
			standby := primary.Standby(t)
			proxy, name := through(t, primary, at)
			start := func() *process {
				return serve(t, launch{args: []string{"--ledger", name}, env: []string{"FIRSTCOME_SECRET=" + fleetSecret}})
			}
			one := start()
			one.create("spring", 1)
			k := &keyed{t: t, calls: []*client.Client{one.calls}}
			k.want("the first", "issued", k.told(0, "spring", "a"))
			k.want("all are sold out", "sold_out", k.told(0, "spring", "b"))

			for _, step := range []func(context.Context) error{standby.CatchUp, primary.Demote, standby.Promote} {
				stage.Must(t, step(t.Context()))
			}
			proxy.SetUpstream(standby.Address())
			k.calls = append(k.calls, start().calls)
			k.done("more at the new primary", func(ctx context.Context) error {
				_, err := k.calls[1].UpdateCampaign(ctx, "spring", 0, map[string]any{"quantity": 2})
				return err
			})
			waitFor(t, "the stock to be claimable", func() bool { return k.told(1, "spring", "b") == "issued" })
			k.want("at the node that was there before", "already_issued", k.told(0, "spring", "b"))
			k.want("whoever had one", "already_issued", k.told(0, "spring", "a"))
			k.done("it is closed", func(ctx context.Context) error { _, err := k.calls[1].Close(ctx, "spring"); return err })
			k.want("after the operator's answer", "closed", k.told(0, "spring", "late"))
			if status, out := executeWith(t, t.TempDir(), []string{"FIRSTCOME_SECRET=" + fleetSecret}, "audit", "--ledger", name); status != 0 {
				t.Errorf("the audit ends with %d:\n%s", status, out)
			}
		})
	}
}
