//go:build !check && !soak

package designs_test

import "github.com/firstcome/firstcome/test/services"

// tested are the designs that make test tries.
var tested = []string{"zset-queue", "zset-rank"}

// databases are those that they are tried on.
var databases = []services.Kind{services.MariaDB}
