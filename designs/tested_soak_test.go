//go:build soak

package designs_test

import (
	"github.com/firstcome/firstcome/designs"
	"github.com/firstcome/firstcome/test/services"
)

// tested are the designs that a soak tries: all.
var tested = func() (names []string) {
	for _, contestant := range designs.Contestants {
		names = append(names, contestant.Name)
	}
	return names
}()

var databases = []services.Kind{services.MariaDB, services.PostgreSQL}
