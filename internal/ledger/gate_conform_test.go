//go:build !race || soak

package ledger_test

import (
	"testing"

	"github.com/firstcome/firstcome/test/conform"
)

func TestTheSQLiteGateConforms(t *testing.T) {
	t.Parallel()
	conform.Gate(t, newKillable)
}

func TestTheSQLiteGatesLinesConform(t *testing.T) {
	t.Parallel()
	conform.Line(t, newKillable)
}
