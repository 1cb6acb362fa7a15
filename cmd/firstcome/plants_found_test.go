//go:build !check && (!race || soak)

package main

import (
	"maps"
	"slices"
	"testing"
)

// TestTheAuditFindsWhateverTheLedgerSaysTwice changes every column of every table, and deletes a row of each, and
// audits: what is not found is listed in docs/operate.md, and nothing else is.
func TestTheAuditFindsWhateverTheLedgerSaysTwice(t *testing.T) {
	for _, kind := range kinds(t) {
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
			for _, p := range plants {
				if !slices.Contains(append(g.columns[p.table()], "*"), p.name()) {
					t.Errorf("a line of plants is about %s, and there is no such column", p.column)
					continue
				}
				g.plantIn(p)
			}
		})
	}
}
