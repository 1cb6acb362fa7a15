package services_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

func TestAServerThatIsMissingIsNamedWithItsPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := services.Redis.Installed()
	if !errors.Is(err, services.ErrMissing) || !strings.Contains(err.Error(), "install redis-server") {
		t.Errorf("without its binary in the path: %v", err)
	}
}
