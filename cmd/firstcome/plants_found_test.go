//go:build !check && (!race || soak)

package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestTheAuditFindsWhateverTheLedgerSaysTwice changes every column of every table, and deletes a row of each, and
// audits: what is not found is listed in docs/operate.md, and nothing else is.
func TestTheAuditFindsWhateverTheLedgerSaysTwice(t *testing.T) {
	t.Parallel()
	for kind := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := gardenOn(t, kind)
			if lines := g.audit(false); len(lines) > 0 {
				t.Fatalf("before anything was planted: %q", lines)
			}
			for _, table := range slices.Sorted(maps.Keys(g.columns)) {
				for _, column := range g.columns[table] {
					if !slices.ContainsFunc(plants, func(p plant) bool { return p.column == table+"."+column }) {
						t.Errorf(`no line of plants is about the column %[1]s.%[2]s. If the ledger says it twice, have internal/audit compare both and add {column: "%[1]s.%[2]s", where: "…", to: "…", `+
							`found: "the breach: what it says"} to plants_test.go; if only once, {…, once: "of which of its values"}, and the line | %[3]s%[1]s.%[2]s%[3]s | of which of its values | to docs/operate.md, "What the audit cannot find"`,
							table, column, "`")
					}
				}
			}
			for n, p := range plants {
				if !isTurn(n, kind) {
					continue
				}
				if !slices.Contains(append(g.columns[p.table()], "*"), p.name()) {
					t.Errorf("a line of plants is about %s, and there is no such column", p.column)
					continue
				}
				g.plantIn(p)
			}
		})
	}
}

// TestEachQueryIsBrokenByAPlant expects a plant for each query. TestTheAuditFindsWhatTheSchemaRefuses has the plants that the schema refuses.
func TestEachQueryIsBrokenByAPlant(t *testing.T) {
	for _, q := range append(audit.Queries(), audit.OfNone()...) {
		begins := q.Breaks + " " + q.Name + ":"
		planted := slices.ContainsFunc(plants, func(p plant) bool { return p.found == begins })
		_, refused := refusedPlants[begins]
		if !planted && !refused {
			t.Errorf("no plant is found as %q: add one to plants_test.go", begins)
		}
	}
}

// refusedPlants are plants that SQLite's schema refuses, by the audit's finding. The first statement makes the schema accept the second.
var refusedPlants = map[string][]string{
	"P1 in_force:":      {`PRAGMA ignore_check_constraints = ON`, `UPDATE campaigns SET quantity = 1 WHERE id = 'spring'`},
	"P3 two_in_force:":  {`DROP INDEX coupons_p3_one_per_user`, `UPDATE coupons SET user_id = 'a' WHERE campaign_id = 'spring' AND number = 3`},
	"P9 in_line_twice:": {`DROP INDEX tickets_p9_one_per_user`, `UPDATE tickets SET user_id = 'a' WHERE campaign_id = 'gone' AND ticket = 2`},
}

func TestTheAuditFindsWhatTheSchemaRefuses(t *testing.T) {
	for begins, statements := range refusedPlants {
		g := gardenOn(t, services.SQLite)
		g.db.SetMaxOpenConns(1) // a PRAGMA applies to its connection
		if _, err := g.db.ExecContext(t.Context(), statements[1]); err == nil {
			t.Errorf("%s: the schema takes it", statements[1])
		}
		g.must(statements[0])
		g.must(statements[1])
		if lines := g.audit(true); !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, begins) }) {
			t.Errorf("%s: the audit does not say %q: %q", statements[1], begins, lines)
		}
	}
}

// TestTheOrderQueryIsItsDefinition gives the first four coupons of summer each combination of three instants and two versions of the terms; the fifth
// is of the last of both. The query compares ranges, and must find the same combinations as a comparison of each coupon with all lower ones.
func TestTheOrderQueryIsItsDefinition(t *testing.T) {
	g := gardenOn(t, services.SQLite)
	queries := audit.Of("P4")
	order := queries[slices.IndexFunc(queries, func(q audit.Query) bool { return q.Name == "order" })]
	g.must(`UPDATE coupons SET issued_at = 2, terms_version = 1 WHERE campaign_id = 'summer' AND number = 8`)
	for combination := range 6 * 6 * 6 * 6 {
		var at, terms [4]int
		want := false
		for n, rest := 0, combination; n < len(at); n, rest = n+1, rest/6 {
			at[n], terms[n] = rest%3, rest/3%2
			g.must(fmt.Sprintf(`UPDATE coupons SET issued_at = %d, terms_version = %d WHERE campaign_id = 'summer' AND number = %d`, at[n], terms[n], n+1))
			for lower := range n {
				want = want || at[lower] > at[n] || terms[lower] > terms[n]
			}
		}
		found := false
		stage.Must(t, g.ledger.Tables().Source().Each(t.Context(), strings.ReplaceAll(order.SQL, ":campaign", "'summer'"), nil, func(_, _ []string) { found = true }))
		if found != want {
			t.Fatalf("instants %v and terms %v: a breach is found: %t, want %t", at, terms, found, want)
		}
	}
}

// TestAReportCountsWhatBecameOfTheNumbers is of summer. Then its last number is raised, so that three numbers are on their way, and its first terms answer when they are decided.
func TestAReportCountsWhatBecameOfTheNumbers(t *testing.T) {
	g := gardenOn(t, services.SQLite)
	report := func() audit.Report {
		r, err := audit.Ledger(t.Context(), g.ledger.Tables().Source(), "summer", &plantSecret, nil)
		stage.Must(t, err)
		r.Breaches = audit.Breaches{}
		return r
	}
	want := audit.Report{Campaign: "summer", Coupons: 5, InForce: 4, Voided: 1, Facts: 6, Letters: 1, Lost: 2, Held: []string{"P1", "P3", "P4", "P5", "P10"}}
	stage.Same(t, "the report", want, report())
	g.must(`UPDATE campaigns SET last_number = last_number + 3 WHERE id = 'summer'`)
	g.must(`UPDATE changes SET payload = REPLACE(payload, '"recorded"', '"decided"') WHERE campaign_id = 'summer' AND version = 1`)
	want.Missing, want.LostTold = 3, 2
	stage.Same(t, "the report then", want, report())
}

// TestAnImpossibleNumberEndsNoAudit plants numbers that a database cannot add up, in one campaign, and a breach in a campaign after it and in a row
// without a campaign.
func TestAnImpossibleNumberEndsNoAudit(t *testing.T) {
	const huge = "9223372036854775807"
	for _, kind := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := gardenOn(t, kind)
			g.must(`UPDATE facts SET count = ` + huge + ` WHERE campaign_id = 'spring'`)
			g.must(`UPDATE campaigns SET quantity = 11 WHERE id = 'winter'`)
			g.must(`UPDATE api_keys SET created_at = created_at + 1`)
			report := &auditReport{}
			c := auditCmd{Ledger: g.url()}
			stage.Must(t, c.auditTables(t.Context(), terminal{err: new(bytes.Buffer)}, g.ledger, report, &plantSecret))
			lines := linesOf(report)
			for _, want := range []string{"unreadable issued: the check was not made", "changes terms:", "keys key_log:"} {
				if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) {
					t.Errorf("the audit does not say %q: %q", want, lines)
				}
			}
			for _, r := range report.Campaigns {
				if held := slices.Contains(r.Held, "P5"); held == (r.Campaign == "spring") {
					t.Errorf("%s: it is said that %q were checked", r.Campaign, r.Held)
				}
			}
		})
	}
}
