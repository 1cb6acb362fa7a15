package client_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/client"
)

// TestAnInstantWithoutAZoneIsToldWithAZoneOfItsReaders matters because a reader in Seoul who copies an example that ends in Z opens nine hours late.
func TestAnInstantWithoutAZoneIsToldWithAZoneOfItsReaders(t *testing.T) {
	var at client.Time
	err := json.Unmarshal([]byte(`"2026-12-24 10:00"`), &at)
	if err == nil || !strings.Contains(err.Error(), "like 2026-12-24T10:00:00+09:00") {
		t.Error(err)
	}
}
