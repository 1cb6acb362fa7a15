//go:build soak && !race

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/stage"
)

// TestFaultsComeWhenTheyAreDue runs all faults of a design that loses winners at a known point, and of firstcome. It wants those of the design to be
// lost there, and none of firstcome's.
func TestFaultsComeWhenTheyAreDue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "all.json")
	var out, problems strings.Builder
	if status := run(t.Context(), []string{"--only", "lua-list,distributed-lock,firstcome-redis,firstcome-sqlite", "--rounds", "1", "--json", file}, &out, &problems); status != exitOK {
		t.Fatalf("exit %d: %s\n%s", status, problems.String(), out.String())
	}
	var rep report
	text, err := os.ReadFile(file)
	stage.Must(t, err)
	stage.Must(t, json.Unmarshal(text, &rep))
	seen := map[string]*result{}
	for _, c := range contestants() {
		for _, res := range rep.of(c.name, underFault.Name) {
			seen[c.name+", "+res.Fault] = res
			if c.product && (res.wrong() > 0 || res.Breach != "") {
				t.Errorf("%s, %s: %s", c.name, res.Fault, res.line())
			}
			if res.Nothing != "" {
				t.Errorf("%s, %s: %s", c.name, res.Fault, res.Nothing)
			}
		}
		for _, f := range faultsOf(c) {
			if len(rep.of(c.name, "exact")) > 0 && seen[c.name+", "+f.name] == nil {
				t.Errorf("%s, %s did not run", c.name, f.name)
			}
		}
	}
	if res := seen["lua-list, killed at lua-list:popped"]; res == nil || res.Verdict.Lost == 0 {
		t.Error("lua-list lost nobody when it was killed between LPOP and INSERT")
	}
	if res := seen["distributed-lock, stopped at distributed-lock:checked"]; res == nil || res.Verdict.Oversold == 0 {
		t.Error("distributed-lock sold no coupon too many when a holder was stopped for longer than its lease")
	}
}
