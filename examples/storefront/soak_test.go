//go:build soak

package main

import (
	"testing"

	"github.com/firstcome/firstcome/test/browser"
)

// TestInTheBrowserACustomersDayLooksGoodOnOtherScreens has the languages and the schemes the other way round, and a wide screen.
func TestInTheBrowserACustomersDayLooksGoodOnOtherScreens(t *testing.T) {
	aCustomersDay(t, browser.Look{Language: "en", Width: 360}, browser.Look{Language: "ko", Width: 2560, Dark: true})
}
