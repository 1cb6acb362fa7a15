//go:build linux && soak && !race

package e2e_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/firstcome/firstcome/test/stage"
)

// TestF22SIGTERMAgainAndAgain stops a server under load many times.
func TestF22SIGTERMAgainAndAgain(t *testing.T) {
	stopsUnderLoad(t, slices.Repeat([]time.Duration{0, 300 * time.Millisecond}, rounds(3, 50))...)
}

// TestF22SIGTERMAtPeakLosesNoAnswerAndResetsNoConnection has clients behind a load
// balancer that sends no more requests once the server is not ready. It has five seconds
// for that, because the machine may have other work.
func TestF22SIGTERMAtPeakLosesNoAnswerAndResetsNoConnection(t *testing.T) {
	const clients = 32
	p := serve(t, launch{args: []string{"--drain-delay", "5s", "--shutdown-grace", "10s"}})
	p.create("spring", 10_000_000)
	crowd := newCrowd("spring")
	stop := crowd.claimUntil(p, clients)
	crowd.awaitAnswers(t, 1000)
	stage.Must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	waitFor(t, "the server to be unready", func() bool { return p.calls.Ready(t.Context()) != nil })
	crowd.awaitAnswers(t, 100)
	stop()
	p.closeIdle()
	p.awaitEnd()
	again := serve(t, launch{dir: p.dir})
	crowd.verdict(again)
	again.stop()
}
