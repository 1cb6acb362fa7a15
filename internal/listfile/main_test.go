package listfile_test

import (
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

func TestMain(m *testing.M) { services.Main(m) }
