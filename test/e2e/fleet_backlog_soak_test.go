//go:build linux && soak && !race

package e2e_test

import (
	"testing"
	"time"
)

// TestF49ABacklogOfAMillionSlowsNobody measures claims before there is a backlog, and with it.
func TestF49ABacklogOfAMillionSlowsNobody(t *testing.T) {
	const (
		answers = 400
		slower  = 10 // times what half of the claims took before; some 1.2 where nothing else runs
	)
	on(t, func(t *testing.T, s setup) {
		var median []time.Duration
		aBacklog(t, s, rounds(50_000, 1_000_000), func(d *deployment, crowd *crowd) {
			crowd.awaitAnswers(t, answers) // connections are made
			median = append(median, crowd.quantile(crowd.during(t, answers), 0.5))
		})
		t.Logf("half of the claims took at most %v before, and %v with the backlog", median[0], median[1])
		if median[0] == 0 || median[1] > slower*median[0] {
			t.Errorf("half of the claims took %v before and %v with the backlog", median[0], median[1])
		}
	}, redisOfMariaDB, redisOfPostgreSQL)
}
