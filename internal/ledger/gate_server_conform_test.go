//go:build !check && (!race || soak)

package ledger_test

import (
	"testing"

	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
)

func TestF16F27F62TheServersGatesConform(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		conform.Gate(t, func(t *testing.T) conform.Subject { return newFleet(t, kind, false) })
	})
}

func TestTheServersGatesLinesConform(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		conform.Line(t, func(t *testing.T) conform.Subject { return newFleet(t, kind, false) })
	})
}
