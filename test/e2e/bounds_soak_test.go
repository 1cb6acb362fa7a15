//go:build linux && soak && !race

package e2e_test

import "testing"

// TestF34FiftyThousandRequestsWaitInBoundedMemory has that many, with the limits that are the defaults.
func TestF34FiftyThousandRequestsWaitInBoundedMemory(t *testing.T) {
	stalledWriter{requests: 50_000, waiting: 16_384, conns: 250, residentLimit: 512 << 20}.keepsItsBounds(t)
}

// TestF55ADiskThatIsFullAgainAndAgainHealsWithoutARestart fills it often.
func TestF55ADiskThatIsFullAgainAndAgainHealsWithoutARestart(t *testing.T) { aFullDisk(t, 30) }
