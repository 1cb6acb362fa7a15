//go:build !check

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
)

// schedule lives through the schedule of a seed, and returns what it breaks and its trace.
func schedule(t *testing.T, seed uint64, b *bug) (breaches []breach, trace string) {
	synctest.Test(t, func(*testing.T) {
		town := build(rand.New(rand.NewPCG(seed, 14)), b)
		town.live()
		breaches, trace = town.verdict(), town.trace.String()
	})
	return breaches, trace
}

// again is the command that lives through a schedule again.
const again = "FIRSTCOME_TEST_SEED=%d go test ./test/sim -run '^%s$'"

// TestEveryScheduleKeepsThePromises wants everything to happen, too: schedules in which little happens keep promises easily.
func TestEveryScheduleKeepsThePromises(t *testing.T) {
	missing := slices.Clone(everything)
	for from := range seed.Each(t, schedules()) {
		breaches, trace := schedule(t, from, nil)
		if len(breaches) > 0 {
			t.Fatal(told(t, from, breaches, trace))
		}
		if from < 2000 {
			missing = slices.DeleteFunc(missing, func(what string) bool { return strings.Contains(trace, what) })
		}
	}
	if len(missing) > 0 && !seed.Given() {
		t.Errorf("of 2000 schedules none says %q", missing)
	}
}

// told returns what a schedule that breaks promises says: the command that lives through it again, the breaches, and the trace.
func told(t *testing.T, from uint64, breaches []breach, trace string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "the schedule of seed %d breaks promises. It comes again with\n\t"+again+"\n", from, from, t.Name())
	for _, b := range breaches {
		fmt.Fprintf(&text, "%s: %s\n", b.promise, b.text)
	}
	return text.String() + trace
}

func TestAScheduleThatBreaksAPromiseSaysHowItComesAgain(t *testing.T) {
	const from = 3
	broken := bug{models: claims(func(c *course, _ []firstcome.UserID, _ []firstcome.Decision) { c.Last = 0 })}
	breaches, trace := schedule(t, from, &broken)
	text := told(t, from, breaches, trace)
	for _, want := range []string{
		"FIRSTCOME_TEST_SEED=3 go test ./test/sim -run '^TestAScheduleThatBreaksAPromiseSaysHowItComesAgain$'", "P4: number 1 was given to",
		"wants a coupon of n1", "asks the gate: claims by", "BREACH of P4: number 1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func TestASeedAlwaysMakesTheSameSchedule(t *testing.T) {
	for from := range seed.Each(t, livedTwice) {
		b := &bug{kind: kind{putsBack: from%2 == 1, logs: from%4 > 1}}
		_, one := schedule(t, from, b)
		if _, other := schedule(t, from, b); one != other {
			t.Fatalf("seed %d made two schedules, which differ from here on:\n%s", from, parted(one, other))
		}
	}
}

// parted returns the lines around which two traces part.
func parted(one, other string) string {
	a, b := strings.Split(one, "\n"), strings.Split(other, "\n")
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	show := func(lines []string) string { return strings.Join(lines[max(0, n-8):min(len(lines), n+4)], "\n") }
	return show(a) + "\n--- and\n" + show(b)
}

// everything is what the schedules are worth living through for: each fault comes up in some of the first 2000, and people are told all that a
// gate may say.
var everything = []string{
	"that never arrives", "that is late", "gave up", "the answer is lost", "that comes again", "that is lost", "never hears", "waits no longer",
	"crashes", "starts again", "stands still", "goes on", "the gate's clock jumps", "hears that number",
	"tells a issued", "tells a already_issued", "tells a sold_out", "tells a not_open", "tells a closed", "tells a paused", "tells a error",
	"apply change 2 terms", "apply change 2 pause", "apply change 3 resume", "apply change 2 close", "apply change 2 void", "tells operator 1 done", "tells operator 2 error",
	"whether change 2 was refused, for operator 1", "to void number", "wants other prizes", "wants other names of the prizes",
	"server restarts", "server loses the campaign", "server is emptied", "server goes back to an older state", "a replica takes the place of the gate's server", "the old server follows the new one", "the address of the gate leads back", "the gate is older than the ledger", "the owner wants a rebuild",
	"to go on as run 2", "to freeze for attempt 1", "to freeze for attempt 2", "to load [1", "to switch to attempt 1 and epoch 2", "to hear that attempt 1 goes on",
	"to end attempt 1", "and 1 lost", "the ledger changed while it was loaded", "another node rebuilds the gate", "its gate is being rebuilt",
	"tells a waiting", "asks the gate: to serve the line", "] and 0 wait sold_out", "] and 1 wait", "to let a leave", "of leaving: done", "of leaving: error",
	"of their place: ticket 2", "of their place: ticket 0 number", "of their place: error", "wants a pace of", "wants no pace", "where people are in line", "wait closed",
	"to carry its line over, for attempt 1", "wait, and 1 were served",
	"at the old server number 1 is given to", "at the old server epoch 2 begins", "at the old server epoch 3 begins", "at the old server a joins the line", "at the old server a leaves the line",
	"at the old server all who wait are sent away as sold_out", "at the old server change 2 is made", "at the old server number 1 is voided",
}

// TestATownWhoseLedgerIsPutBackKeepsThePromises wants each step of a reconcile to happen, too.
func TestATownWhoseLedgerIsPutBackKeepsThePromises(t *testing.T) {
	missing := []string{
		"the ledger is put back", "the owner wants a reconcile", "for a reconcile by the owner behind attempt 1", "to adopt what the gate has at version 2 and to void [1",
		"which coupons its holders have", "the ledger is older than the gate",
	}
	for from := range seed.Each(t, putBack()) {
		breaches, trace := schedule(t, from, &bug{kind: kind{putsBack: true}})
		if len(breaches) > 0 {
			t.Fatal(told(t, from, breaches, trace))
		}
		missing = slices.DeleteFunc(missing, func(what string) bool { return strings.Contains(trace, what) })
	}
	if len(missing) > 0 && !seed.Given() {
		t.Errorf("no schedule says %q", missing)
	}
}

// TestALoggedLineKeepsThePromises also checks that each fault of a topic happens. In a third of the schedules the ledger is restored too.
func TestALoggedLineKeepsThePromises(t *testing.T) {
	missing := []string{
		"the topic does not answer", "the topic answers again", "the topic is made again", "the topic's records are deleted", "to append a:1.1.1", " left, for ",
		"whether epoch 2 decides", "tells a waiting", "epoch ended after it issued the place", "lacks records, or is another topic", "start each node with the same --line",
		"asks the log: what it has from", "to seat [a1", "where a line is logged from now on", "who was carried over", "the ledger is put back",
	}
	for from := range seed.Each(t, logged()) {
		breaches, trace := schedule(t, from, &bug{kind: kind{logs: true, putsBack: from%3 == 2}})
		if len(breaches) > 0 {
			t.Fatal(told(t, from, breaches, trace))
		}
		missing = slices.DeleteFunc(missing, func(what string) bool { return strings.Contains(trace, what) })
	}
	if len(missing) > 0 && !seed.Given() {
		t.Errorf("no schedule says %q", missing)
	}
}
