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
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
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
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A use is a call of a method of a ledger.
type use func(ctx context.Context, l *ledger.Ledger) error

// concludes are the methods whose answer somebody takes for the truth, or that write. Where they
// say that there is nothing, that is an answer.
var concludes = map[string]use{
	"Active": func(ctx context.Context, l *ledger.Ledger) error { _, err := l.Active(ctx); return err },
	"AddKey": func(ctx context.Context, l *ledger.Ledger) error {
		return l.AddKey(ctx, "test", firstcome.Key{ID: "k", Name: "k", Role: firstcome.Admin})
	},
	"Applied": func(ctx context.Context, l *ledger.Ledger) error {
		return l.Applied(ctx, firstcome.Change{Campaign: "c", Version: 1}, false)
	},
	"Bury": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Bury(ctx, flow.Batch{Campaign: "c", Garbage: []flow.Garbage{{Source: "s", Payload: "p"}}}, "")
		return err
	},
	"Campaign": func(ctx context.Context, l *ledger.Ledger) error { _, err := l.Campaign(ctx, "c"); return err },
	"Claim":    func(ctx context.Context, l *ledger.Ledger) error { _, err := l.Claim(ctx, "c", users("a")); return err },
	"ClaimRetired": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.ClaimRetired(ctx, "c", users("a"))
		return err
	},
	"Counts":   func(ctx context.Context, l *ledger.Ledger) error { _, err := l.Counts(ctx); return err },
	"CouponOf": func(ctx context.Context, l *ledger.Ledger) error { _, err := l.CouponOf(ctx, "c", "a"); return err },
	"Create": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Create(ctx, "test", "c", firstcome.Terms{Name: "Test", Answer: firstcome.Recorded, Benefit: []byte(`{}`)})
		return err
	},
	"DeadLetter": func(ctx context.Context, l *ledger.Ledger) error { _, err := l.DeadLetter(ctx, 1); return err },
	"DrainedThrough": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.DrainedThrough(ctx, "c")
		return err
	},
	"Find": func(ctx context.Context, l *ledger.Ledger) error {
		_, _, err := l.Find(ctx, "c", ledger.Choice{User: "a"})
		return err
	},
	"Forgotten": func(ctx context.Context, l *ledger.Ledger) error { return l.Forgotten(ctx, "c") },
	"Has": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Has(ctx, "c", []firstcome.Coupon{{Campaign: "c", Number: 1, User: "a"}})
		return err
	},
	"Holders": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Holders(ctx, "c", func(firstcome.UserID) {})
		return err
	},
	"Keys":         func(ctx context.Context, l *ledger.Ledger) error { _, err := l.Keys(ctx); return err },
	"LastDecision": func(ctx context.Context, l *ledger.Ledger) error { _, err := l.LastDecision(ctx); return err },
	"Mismatched": func(ctx context.Context, l *ledger.Ledger) error {
		secret, err := firstcome.NewSecret(make([]byte, firstcome.MinSecret))
		if err == nil {
			_, err = l.Mismatched(ctx, secret)
		}
		return err
	},
	"OtherGates": func(ctx context.Context, l *ledger.Ledger) error { _, err := l.OtherGates(ctx); return err },
	"Pending":    func(ctx context.Context, l *ledger.Ledger) error { _, err := l.Pending(ctx, "c"); return err },
	"Ping":       func(ctx context.Context, l *ledger.Ledger) error { return l.Ping(ctx) },
	"Record": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Record(ctx, flow.Batch{Campaign: "c"})
		return err
	},
	"Refused": func(ctx context.Context, l *ledger.Ledger) error { _, err := l.Refused(ctx, "c", 1); return err },
	"Replay":  func(ctx context.Context, l *ledger.Ledger) error { return l.Replay(ctx, "test", 1) },
	"Retire": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Retire(ctx, "c", flow.GateState{}, time.Hour)
		return err
	},
	"Retiring": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Retiring(ctx, time.Hour, time.Hour)
		return err
	},
	"RevokeKey": func(ctx context.Context, l *ledger.Ledger) error { return l.RevokeKey(ctx, "test", "none") },
	"SetTerms": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.SetTerms(ctx, "test", "c", 7, func(*firstcome.Terms) {})
		return err
	},
	"StateRetired": func(ctx context.Context, l *ledger.Ledger) error { _, err := l.StateRetired(ctx, "c"); return err },
	"Switch": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Switch(ctx, "test", "c", ledger.Resume)
		return err
	},
	"Terms": func(ctx context.Context, l *ledger.Ledger) error { _, err := l.Terms(ctx, "c", 1); return err },
	"Void": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Void(ctx, "test", "c", 7, "r")
		return err
	},
	"VoidLetter": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.VoidLetter(ctx, "test", 1, "r")
		return err
	},
	"Wallet": func(ctx context.Context, l *ledger.Ledger) error { _, err := l.Wallet(ctx, "a", "", 10); return err },
}

// lists are the methods that show what there is at an instant, and may do so at a standby.
var lists = map[string]use{
	"AtOnce": func(ctx context.Context, l *ledger.Ledger) error {
		return l.AtOnce(ctx, func(b *ledger.Books) error { _, err := b.Campaigns(ctx); return err })
	},
	"AuditLog": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.AuditLog(ctx, ledger.LogFilter{Limit: 9})
		return err
	},
	"Campaigns": func(ctx context.Context, l *ledger.Ledger) error { _, err := l.Campaigns(ctx, "", 9); return err },
	"Changes": func(ctx context.Context, l *ledger.Ledger) error {
		return l.Changes(ctx, "c", 0, 9, func(firstcome.Change, bool) error { return nil })
	},
	"Coupons": func(ctx context.Context, l *ledger.Ledger) error {
		return l.Coupons(ctx, "c", ledger.Page{}, func(firstcome.Coupon) error { return nil })
	},
	"DeadLetters": func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.DeadLetters(ctx, ledger.Letters{})
		return err
	},
	"Export": func(ctx context.Context, l *ledger.Ledger) error {
		return l.Export(ctx, "c", ledger.Page{}, func(firstcome.Coupon, string) error { return nil })
	},
	"Facts": func(ctx context.Context, l *ledger.Ledger) error {
		return l.Facts(ctx, "c", 0, 9, func(firstcome.Fact) error { return nil })
	},
	"Unclosed": func(ctx context.Context, l *ledger.Ledger) error { _, _, err := l.Unclosed(ctx, 9); return err },
	"Lost":     func(ctx context.Context, l *ledger.Ledger) error { _, err := l.Lost(ctx, "c"); return err },
}

func users(names ...firstcome.UserID) []firstcome.UserID { return names }

// TestEveryReadSaysWhetherAStandbyMayAnswerIt finds methods that ask the database and are in neither
// list, so that somebody decides which pool is theirs.
func TestEveryReadSaysWhetherAStandbyMayAnswerIt(t *testing.T) {
	asks := reflect.TypeFor[func(context.Context)]().In(0)
	for n := range reflect.TypeFor[*ledger.Ledger]().NumMethod() {
		m := reflect.TypeFor[*ledger.Ledger]().Method(n)
		if m.Type.NumIn() < 2 || m.Type.In(1) != asks || m.Name == "Run" || m.Name == "Backup" || m.Name == "Verify" { // the last two: of SQLite's file
			continue
		}
		if (concludes[m.Name] == nil) == (lists[m.Name] == nil) {
			t.Errorf("%s is to be in concludes or in lists", m.Name)
		}
	}
}

// isAnswer tells whether an error says something of a campaign.
func isAnswer(err error) bool {
	for _, answer := range []error{
		firstcome.ErrNoCampaign, firstcome.ErrNoCoupon, firstcome.ErrNoDeadLetter, ledger.ErrNoKey, firstcome.ErrCampaignExists, firstcome.ErrStale,
		firstcome.ErrClosed, firstcome.ErrPending, firstcome.ErrNotRecorded, firstcome.ErrGateMismatch, flow.ErrRefused, flow.ErrLost, flow.ErrGap,
	} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}

// TestF61WhereANameLeadsToAStandbyNothingIsConcluded has a name lead to a standby that lags, and
// then has that be the primary, under the same node.
func TestF61WhereANameLeadsToAStandbyNothingIsConcluded(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		p := newPair(t, kind)
		l := start(t, p.name, nil)
		create(t, l, "c", 1)
		same(t, "at the primary", "issued:1", claim(t, l, "c", "a"))
		if err := errors.Join(p.standby.CatchUp(t.Context()), p.standby.Lag(t.Context())); err != nil {
			t.Fatal(err)
		}
		p.lead(p.standby.Server)
		p.proxy.Cut() // the next connections are new ones
		p.proxy.Heal()
		for name, use := range concludes {
			if err := overCut(t, l, use); err == nil || isAnswer(err) || !strings.Contains(err.Error(), "the server is a standby") {
				t.Errorf("%s of a standby: %v", name, err)
			}
		}
		for name, use := range lists {
			if err := overCut(t, l, use); err != nil {
				t.Errorf("%s of a standby: %v", name, err)
			}
		}
		p.fail(t)
		for name, use := range concludes {
			if err := use(t.Context(), l); err != nil && !isAnswer(err) {
				t.Errorf("%s of the standby that was promoted: %v", name, err)
			}
		}
		same(t, "promoted", "already_issued:1 sold_out:0", claim(t, l, "c", "a", "b"))
	})
}

// overCut uses the ledger until it is no longer a connection that was cut which says no: of these a pool has a few.
func overCut(t *testing.T, l *ledger.Ledger, use func(context.Context, *ledger.Ledger) error) (err error) {
	t.Helper()
	for range 32 {
		if err = use(t.Context(), l); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.ErrUnexpectedEOF) {
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
		if err := p.standby.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		for what, open := range map[string]func(context.Context, string) (*ledger.Ledger, error){"a copy": ledger.OpenCopy, "the ledger": ledger.OpenShared} {
			l, err := open(t.Context(), p.second)
			if (err == nil) != (what == "a copy") {
				t.Errorf("%s at a standby: %v", what, err)
			}
			if err != nil {
				continue
			}
			if _, err := l.Campaign(t.Context(), "c"); err != nil {
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
