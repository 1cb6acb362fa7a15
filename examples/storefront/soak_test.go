//go:build soak

package main

import (
	"testing"

	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/services"
)

// TestInTheBrowserACustomersDayInATopic has the line in a topic, in which a place outlives a reload by the proof that the page keeps.
func TestInTheBrowserACustomersDayInATopic(t *testing.T) {
	aCustomersDay(t, services.Kafka.Database(t), browser.Look{Language: "en", Width: 360}, browser.Look{Language: "ko", Width: 2560, Dark: true})
}
