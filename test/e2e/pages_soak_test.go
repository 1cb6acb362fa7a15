//go:build linux && soak && !race

package e2e_test

import "testing"

// TestThePagesExportAMillionCouponsInBoundedMemory exports them by the page's link.
func TestThePagesExportAMillionCouponsInBoundedMemory(t *testing.T) { exportOf(t, 1_000_000) }

// TestThePagesTellTheSameOfBothDatabases tells of a backlog, of dead letters and of a breaker where each database is behind Redis.
func TestThePagesTellTheSameOfBothDatabases(t *testing.T) {
	on(t, pagesTellWhatIsOnItsWay, redisOfMariaDB, redisOfPostgreSQL)
}
