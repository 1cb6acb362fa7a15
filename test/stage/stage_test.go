package stage_test

import (
	"testing"

	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

func TestTheFakeLedgerConforms(t *testing.T) {
	conform.Ledger(t, func(*testing.T) conform.Book { return stage.NewLedger() })
}
