//go:build !check

package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// nodesOn returns nodes on one new database, by the server's clock, with the campaign c.
func nodesOn(t *testing.T, kind services.Kind, nodes int, quantity int64) (all []*ledger.Ledger, name string) {
	t.Helper()
	name = kind.Database(t)
	for range nodes {
		all = append(all, start(t, name, nil))
	}
	create(t, all[0], "c", quantity)
	return all, name
}

func TestF25OneUserWhoClaimsAtEveryNodeAtOnceIsIssuedOnce(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, _ := nodesOn(t, kind, 3, 50)
		var outcomes [10]atomic.Int64
		var all sync.WaitGroup
		for n := range 100 {
			all.Go(func() {
				var d []firstcome.Decision
				err := inTime(func() (err error) { d, err = nodes[n%3].Gate.Claim(context.Background(), "c", users("a")); return err })
				if err != nil || d[0].Coupon.Number != 1 || d[0].Lease != 0 {
					t.Errorf("got %+v, %v", d, err)
					return
				}
				outcomes[d[0].Outcome].Add(1)
			})
		}
		all.Wait()
		stage.Same(t, "issued", int64(1), outcomes[firstcome.Issued].Load())
		stage.Same(t, "already issued", int64(99), outcomes[firstcome.AlreadyIssued].Load())
	})
}

// TestF16NodesWhoseClocksDifferKeepTheOrder has two nodes with clocks five minutes
// apart, one of which then jumps back an hour.
func TestF16NodesWhoseClocksDifferKeepTheOrder(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		var ahead atomic.Int64
		noon := time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC)
		ahead.Store(int64(5 * time.Minute))
		name := kind.Database(t)
		early := start(t, name, func() time.Time { return noon })
		late := start(t, name, func() time.Time { return noon.Add(time.Duration(ahead.Load())) })
		later := terms(9)
		later.OpensAt = noon.Add(time.Minute)
		stage.Must(t, early.Campaigns.Create(t.Context(), "test", "c", later))
		stage.Same(t, "before opening", "not_open:0", claim(t, early.Gate, "c", "a"))
		stage.Same(t, "open", "issued:1", claim(t, late.Gate, "c", "a"))
		stage.Same(t, "it does not un-open", "issued:2", claim(t, early.Gate, "c", "b"))
		ahead.Store(-int64(time.Hour))
		stage.Same(t, "nor after a jump", "issued:3", claim(t, late.Gate, "c", "c"))
		for n, c := range allCoupons(t, early) {
			if at := noon.Add(5 * time.Minute); c.Number != int64(n+1) || !c.IssuedAt.Equal(at) {
				t.Errorf("number %d was issued at %v", c.Number, c.IssuedAt)
			}
		}
	})
}

// TestF16TheServersClockDecides holds what a node without a clock of its own says
// against the server's clock.
func TestF16TheServersClockDecides(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, name := nodesOn(t, kind, 1, 5)
		db := services.Beside(t, name)
		clock := map[services.Kind]string{
			services.MariaDB:    `SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)`,
			services.PostgreSQL: `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`,
		}[kind]
		server := func() (at int64) {
			stage.Must(t, db.QueryRow(clock).Scan(&at))
			return at
		}
		before := server()
		claim(t, nodes[0].Gate, "c", "a")
		after := server()
		if at := allCoupons(t, nodes[0])[0].IssuedAt.UnixMicro(); at < before || at > after {
			t.Errorf("issued at %d, between %d and %d of the server", at, before, after)
		}
		if now := status(t, nodes[0]).Now.UnixMicro(); now < after || now > server() {
			t.Errorf("the gate's time is %d", now)
		}
	})
}

// TestF51ManyBatchesAndChangesAtOnceFinish has nodes claim, void and change terms of
// two campaigns at the same time.
func TestF51ManyBatchesAndChangesAtOnceFinish(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, _ := nodesOn(t, kind, 3, firstcome.Unlimited)
		create(t, nodes[0], "d", firstcome.Unlimited)
		const batches, size = 10, 20
		var all sync.WaitGroup
		for worker := range 6 {
			all.Go(func() {
				for batch := range batches {
					id := firstcome.CampaignID([]string{"c", "d"}[(worker+batch)%2])
					users := make([]firstcome.UserID, size)
					for n := range users { // every user comes at several workers, in another order at each
						users[n] = firstcome.UserID(fmt.Sprint("user-", (batch*size+n*(worker+1))%(batches*size)))
					}
					l := nodes[worker%3]
					if err := inTime(func() error { return stage.Err(l.Gate.Claim(context.Background(), id, users)) }); err != nil {
						t.Errorf("worker %d: %v", worker, err)
					}
					if err := inTime(func() error {
						return stage.Err(l.Campaigns.Void(context.Background(), "test", id, int64(1+batch*3+worker), "test"))
					}); err != nil &&
						!errors.Is(err, firstcome.ErrAlreadyVoided) && !errors.Is(err, firstcome.ErrNoCoupon) {
						t.Errorf("worker %d: %v", worker, err)
					}
				}
			})
		}
		all.Wait()
		sound := map[firstcome.UserID]bool{}
		for n, c := range allCoupons(t, nodes[0]) {
			if c.Number != int64(n+1) || c.VoidedAt.IsZero() && sound[c.User] {
				t.Fatalf("number %d of %s is in the place of %d, or a second one", c.Number, c.User, n+1)
			}
			sound[c.User] = sound[c.User] || c.VoidedAt.IsZero()
		}
	})
}

// TestFactsOfOneNodeWakeWhoWaitsAtAnother follows a campaign at the node that does nothing.
func TestFactsOfOneNodeWakeWhoWaitsAtAnother(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, _ := nodesOn(t, kind, 2, 10)
		seen := int64(0)
		for seen < 4 {
			news, forget := nodes[1].Reads.NewFacts("c")
			before := seen
			stage.Must(t, nodes[1].Reads.Facts(t.Context(), "c", seen, 100, func(f firstcome.Fact) error {
				seen = f.Position
				return nil
			}))
			switch {
			case seen == 0:
				claim(t, nodes[0].Gate, "c", "a", "b")
			case seen == 2 && before < 2:
				claim(t, nodes[0].Gate, "c", "d")
				void(t, nodes[0], "c", 1)
			}
			if seen < 4 {
				<-news
			}
			forget()
		}
	})
}

// TestWhatOneNodeWroteEveryNodeReads makes changes at one node and reads all there is at
// another, and at one that only reads.
func TestWhatOneNodeWroteEveryNodeReads(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, name := nodesOn(t, kind, 2, 10)
		create(t, nodes[0], "d", firstcome.Unlimited)
		claim(t, nodes[0].Gate, "c", "a", "b", "c")
		claim(t, nodes[1].Gate, "d", "a")
		void(t, nodes[0], "c", 2)
		key := firstcome.Key{ID: "k", Name: "test", Role: firstcome.Admin, Hash: [32]byte{0, 255, 39, 92}, CreatedAt: time.Now()}
		stage.Must(t, nodes[0].Deployment.AddKey(t.Context(), "test", key))
		stage.Must(t, nodes[1].Deployment.RevokeKey(t.Context(), "test", "k"))
		shared := reader(t, name)
		for what, l := range map[string]*ledger.Ledger{"another": nodes[1], "a reader": shared} {
			readAll(t, what, l, key)
		}
		if n, _, err := shared.Mismatched(t.Context(), stage.Secret()); err != nil || n != 0 {
			t.Errorf("%d campaigns mismatch, %v", n, err)
		}
	})
}

func readAll(t *testing.T, what string, l *ledger.Ledger, key firstcome.Key) {
	t.Helper()
	keys, err := l.Deployment.Keys(t.Context())
	if err != nil || len(keys) != 1 || keys[0].Hash != key.Hash || keys[0].RevokedAt.Before(keys[0].CreatedAt) {
		t.Errorf("%s: the keys are %+v, %v", what, keys, err)
	}
	campaigns, err := l.Reads.Campaigns(t.Context(), "c", 5)
	if err != nil || len(campaigns) != 1 || campaigns[0].ID != "d" || campaigns[0].Quantity != firstcome.Unlimited {
		t.Errorf("%s: the campaigns behind c are %+v, %v", what, campaigns, err)
	}
	for wallet, after := range map[string]firstcome.CampaignID{"[c d]": "", "[d]": "c", "[]": "d"} {
		coupons, err := l.Reads.Wallet(t.Context(), "a", after, 5)
		ids := []firstcome.CampaignID{}
		for _, c := range coupons {
			ids = append(ids, c.Campaign)
		}
		if err != nil || fmt.Sprint(ids) != wallet {
			t.Errorf("%s: the wallet behind %q is %v, want %s, %v", what, after, ids, wallet, err)
		}
	}
	stage.Same(t, what+": the audit log", []string{"key.revoke", "key.create", "coupon.void", "campaign.create", "campaign.create"}, actions(t, l, ""))
	var numbers []int64
	stage.Must(t, l.Reads.Coupons(t.Context(), "c", ledger.Page{After: 1, Limit: 1}, func(c firstcome.Coupon) error {
		numbers = append(numbers, c.Number)
		return nil
	}))
	stage.Same(t, what+": a page of coupons in force", []int64{3}, numbers)
}

// issuedByHand gives the user a the coupon 1 of the campaign c, beside all nodes.
var issuedByHand = []string{
	`UPDATE campaigns SET in_force = 1, issued = 1, last_number = 1, position = 1 WHERE id = 'c'`,
	`INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position)
		VALUES ('c', 1, 'a', 'x', 1, 1, 1, 1)`,
}

// claimBehind has a claim by a and b wait for a transaction by hand, which runs the
// statements, and returns the decisions, and the gate's time before the hand committed.
func claimBehind(t *testing.T, kind services.Kind, statements ...string) (decisions []firstcome.Decision, held time.Time) {
	t.Helper()
	nodes, name := nodesOn(t, kind, 1, 10)
	db := services.Beside(t, name)
	hand := begin(t, db, statements...)
	claimed := make(chan error, 1)
	go func() {
		var err error
		decisions, err = nodes[0].Gate.Claim(context.Background(), "c", []firstcome.UserID{"a", "b"})
		claimed <- err
	}()
	waitUntilBlocked(t, kind, db)
	before := status(t, nodes[0])
	stage.Must(t, errors.Join(hand.Commit(), <-claimed))
	return decisions, before.Now
}

// TestTheClockAndTheHoldersAreReadAfterTheLock has another node, here a hand, issue the
// claimant a coupon while the claim waits for the campaign's row.
func TestTheClockAndTheHoldersAreReadAfterTheLock(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		got, held := claimBehind(t, kind, issuedByHand...)
		if got[0].Outcome != firstcome.AlreadyIssued || got[0].Coupon.Number != 1 || got[1].Outcome != firstcome.Issued || got[1].Coupon.Number != 2 {
			t.Errorf("got %+v", got)
		}
		if got[1].At.Before(held) {
			t.Errorf("decided at %v, while the lock was still held at %v", got[1].At, held)
		}
	})
}

// TestF61AClaimWaitsForAChangeThatIsUnderWay has a hand close the campaign.
func TestF61AClaimWaitsForAChangeThatIsUnderWay(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		got, _ := claimBehind(t, kind, `UPDATE campaigns SET closed = true, version = 2 WHERE id = 'c'`)
		for _, d := range got {
			if d.Outcome != firstcome.Closed || d.Version != 2 {
				t.Errorf("got %+v", d)
			}
		}
	})
}

// TestANewNodeTakesTheRowOfOneThatIsForgotten has three nodes say what they are, and a fourth come when one of them said nothing for an hour.
func TestANewNodeTakesTheRowOfOneThatIsForgotten(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, name := nodesOn(t, kind, 1, 10)
		l, db := nodes[0], services.Beside(t, name)
		var took []byte
		say := func(host string, stopped bool) {
			t.Helper()
			now, err := l.Deployment.Clock(t.Context())
			stage.Must(t, err)
			row := ledger.NodeRow{Host: host, Listen: ":80", Role: "all", Version: "1", StartedAt: now, Counts: []byte(`"of ` + host + `"`)}
			if err = l.Deployment.WriteNode(t.Context(), row, stopped); errors.Is(err, ledger.ErrNodeTaken) {
				took, err = l.Deployment.TakeNode(t.Context(), row)
				stage.Must(t, err)
				err = l.Deployment.WriteNode(t.Context(), row, stopped)
			}
			stage.Must(t, err)
		}
		hosts := func() (heard []string) {
			t.Helper()
			rows, err := l.Deployment.Nodes(t.Context())
			stage.Must(t, err)
			for _, n := range rows {
				if !n.Forgotten {
					heard = append(heard, fmt.Sprint(n.Host, n.StoppedAt.IsZero()))
				}
			}
			return heard
		}
		rows := func() (n int) {
			stage.Must(t, db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM nodes`).Scan(&n))
			return n
		}
		say("a", false)
		say("b", false)
		say("c", true)
		say("a", false)
		stage.Same(t, "who is heard", []string{"atrue", "btrue", "cfalse"}, hosts())
		execute(t, db, `UPDATE nodes SET seen_at = seen_at - 3601000000 WHERE host = 'b'`)
		stage.Same(t, "who is not forgotten", []string{"atrue", "cfalse"}, hosts())
		say("d", false)
		stage.Same(t, "what stands in the row that it took", `"of b"`, string(took))
		stage.Same(t, "who is heard then", []string{"atrue", "cfalse", "dtrue"}, hosts())
		stage.Same(t, "rows", 3, rows())
		say("b", false) // it was frozen
		stage.Same(t, "who comes back", []string{"atrue", "btrue", "cfalse", "dtrue"}, hosts())
		stage.Same(t, "rows then", 4, rows())
	})
}
