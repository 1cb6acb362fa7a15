package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/test/seed"
)

// schedule lives through the schedule of a seed, and returns what it breaks and its trace.
func schedule(t *testing.T, seed uint64, b *bug) (breaches []audit.Breach, trace string) {
	synctest.Test(t, func(*testing.T) {
		town := build(rand.New(rand.NewPCG(seed, 14)), b)
		town.live()
		breaches, trace = town.verdict(), town.trace.String()
	})
	return breaches, trace
}

// again is the command that lives through a schedule again.
const again = "FIRSTCOME_TEST_SEED=%d go test ./test/sim -run '^TestEveryScheduleKeepsThePromises$'"

// schedules is how many are lived through: some seconds of them, or a million in soak.
func schedules() uint64 {
	if os.Getenv("SOAK") != "" {
		return 1_000_000
	}
	return 2000
}

func TestEveryScheduleKeepsThePromises(t *testing.T) {
	for from := range seed.Each(t, schedules()) {
		if breaches, trace := schedule(t, from, nil); len(breaches) > 0 {
			t.Fatalf("the schedule of seed %d breaks promises. It comes again with\n\t%s\n%s\n%s", from, fmt.Sprintf(again, from), spoken(breaches), trace)
		}
	}
}

// spoken returns breaches as text.
func spoken(breaches []audit.Breach) string {
	var text strings.Builder
	for _, b := range breaches {
		fmt.Fprintf(&text, "%s: %s\n", b.Promise, b.Text)
	}
	return text.String()
}

func TestASeedAlwaysMakesTheSameSchedule(t *testing.T) {
	for from := range seed.Each(t, 1000) {
		_, one := schedule(t, from, nil)
		if _, other := schedule(t, from, nil); one != other {
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
