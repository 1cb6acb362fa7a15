package redis

import (
	"fmt"
	"strings"
	"testing"
)

func TestEachScriptOfACampaignKnowsTheLayoutThatThisProgramKnows(t *testing.T) {
	if !strings.Contains(prelude, fmt.Sprintf("\nlocal LAYOUT = %d --", layout)) || strings.Count(prelude, "> LAYOUT") != 1 {
		t.Errorf("the prelude does not compare the layout with %d", layout)
	}
	if before, _, compares := strings.Cut(statePart, "= fields("); !compares || strings.Contains(before, "redis.") {
		t.Error("the state of a campaign is not what is read first")
	}
	for name, script := range map[string]string{
		"create": createLua, "settle": settleLua, "journal_state": journalStateLua, "has": hasLua, "forget": forgetLua,
	} {
		if before, _, compares := strings.Cut(script, "= campaign("); !compares || strings.Contains(before, "redis.") {
			t.Errorf("the script %s does something before it compares the layout", name)
		}
	}
}
