package redis

import (
	"fmt"
	"strings"
	"testing"
)

func TestEachScriptOfACampaignKnowsTheLayoutThatThisProgramKnows(t *testing.T) {
	for name, script := range map[string]string{
		"claim": claimScript, "apply": applyScript, "settle": settleScript, "look": lookScript, "has": hasScript, "over": overScript, "tidy": tidyScript, "forget": forgetScript,
	} {
		if !strings.Contains(script, fmt.Sprintf("\nlocal LAYOUT = %d --", layout)) || strings.Count(script, "> LAYOUT") != 1 {
			t.Errorf("the script %s does not compare the layout with %d", name, layout)
		}
	}
}
