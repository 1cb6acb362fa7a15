package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// auditing returns what the command finds in the tables of an open ledger, of all campaigns or of one.
func auditing(t *testing.T, l *ledger.Ledger, of ...firstcome.CampaignID) *auditReport {
	t.Helper()
	report, c := &auditReport{}, &auditCmd{}
	if len(of) > 0 {
		c.Campaign = string(of[0])
	}
	stage.Must(t, c.auditTables(t.Context(), terminal{err: new(bytes.Buffer)}, l, report, &plantSecret))
	return report
}

// decider opens a ledger that decides claims until the test ends.
func decider(t *testing.T, name string) *ledger.Ledger {
	l, err := ledger.Open(t.Context(), name, ledger.Options{Secret: plantSecret})
	stage.Must(t, err)
	stage.Serve(t, l)
	return l
}

// TestTheAuditFindsNoBreachWhileClaimsAndChangesAreDecided audits repeatedly while coupons are issued and voided, terms change, and the campaign is
// paused and resumed.
func TestTheAuditFindsNoBreachWhileClaimsAndChangesAreDecided(t *testing.T) {
	t.Parallel()
	const clients, audits, coupons = 3, 15, 3000
	for _, kind := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := services.Ledgers[kind](t)
			l := decider(t, name)
			s := &scene{Ledger: l, t: t}
			s.create("spring", firstcome.Terms{Quantity: 1_000_000})
			var all sync.WaitGroup
			var over atomic.Bool
			var issued atomic.Int64
			for client := range clients {
				all.Go(func() {
					for n := 0; !over.Load(); n++ {
						var users []firstcome.UserID
						for k := range 20 {
							users = append(users, firstcome.UserID(fmt.Sprint(client, "-", n, "-", k)))
						}
						decisions, err := l.Gate.Claim(t.Context(), "spring", users)
						if err != nil {
							t.Error(err)
							return
						}
						if decisions[0].Outcome == firstcome.Issued {
							issued.Add(20)
						}
					}
				})
			}
			all.Go(func() {
				for n := int64(1); !over.Load(); n++ {
					if _, err := l.Campaigns.Void(t.Context(), "op", "spring", n, "sold"); err != nil && !errors.Is(err, firstcome.ErrNoCoupon) {
						t.Error(err)
					}
					s.quantity("spring", 1_000_000+n)
					s.turn("spring", firstcome.ChangePause)
					s.turn("spring", firstcome.ChangeResume)
				}
			})
			reader := readable(t, name)
			for n := 0; !t.Failed() && (n < audits || issued.Load() < coupons); n++ {
				if lines := linesOf(auditing(t, reader)); len(lines) > 0 {
					t.Errorf("while it decides: %q", lines)
				}
			}
			over.Store(true)
			all.Wait()
			if lines := linesOf(auditing(t, reader)); len(lines) > 0 || issued.Load() == 0 {
				t.Errorf("in the end, with %d issued: %q", issued.Load(), lines)
			}
		})
	}
}

// TestAPageThatCannotBeReadIsABreachOfItsCampaignAndEndsNothingElse spoils a page of SQLite's file.
func TestAPageThatCannotBeReadIsABreachOfItsCampaignAndEndsNothingElse(t *testing.T) {
	name := services.Ledgers[services.SQLite](t)
	s := &scene{t: t}
	s.as(name, "", func() {
		for _, id := range []firstcome.CampaignID{"autumn", "spring", "winter"} {
			s.create(id, firstcome.Terms{Quantity: 10_000})
			stage.Must(t, stage.Err(s.Gate.Claim(t.Context(), id, stage.Users("u-", 1, 2000))))
		}
	})
	spoilPage(t, name, plantSecret.Code("spring", 1000))
	report := auditing(t, readable(t, name))
	if len(report.Campaigns) != 3 || len(report.File) == 0 {
		t.Fatalf("%+v", report)
	}
	for _, c := range report.Campaigns {
		want := int64(0)
		if c.Campaign == "spring" {
			want = 1
		} else if c.Coupons != 2000 {
			t.Errorf("of %s %d coupons are audited", c.Campaign, c.Coupons)
		}
		if c.Breaches.Total != want || c.Breaches.Count["unreadable"] != want {
			t.Errorf("%s: %v", c.Campaign, c.Breaches.Shown)
		}
	}
}

// spoilPage overwrites the beginning of the file's page that contains a text.
func spoilPage(t *testing.T, name, text string) {
	t.Helper()
	const page = 4096
	all, err := os.ReadFile(name)
	stage.Must(t, err)
	at := bytes.Index(all, []byte(text))
	if at < page {
		t.Fatalf("%q is not in the file", text)
	}
	copy(all[at/page*page:], "spoiled")
	stage.Must(t, os.WriteFile(name, all, 0o600))
}
