//go:build !check && (!race || soak)

package httpd_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/seed"
)

// TestAConnectionIsAnsweredAsByNetHTTPAlone sends streams of requests, cut anywhere, to a server with lanes and to one without lanes.
func TestAConnectionIsAnsweredAsByNetHTTPAlone(t *testing.T) {
	inLane := [3]int{}
	for from := range seed.Each(t, 1500) {
		random := rand.New(rand.NewPCG(from, 0))
		var pieces []string
		for range 1 + random.IntN(14) {
			text := streamed[random.IntN(8)] // plain
			if random.IntN(4) == 0 {
				text = streamed[random.IntN(len(streamed))]
			}
			if random.IntN(8) == 0 {
				text += streamed[random.IntN(len(streamed))]
			}
			pieces = append(pieces, cut(random, text)...)
		}
		patience := random.IntN(4)
		waits := func(n int) bool { return int(from+uint64(n)*7)%4 <= patience }
		want := exchanged(t, alone, pieces, waits)
		for way := inLanes; way <= bodiesLast; way++ {
			lanes := exchanged(t, way, pieces, waits)
			inLane[way] += lanes.lane
			lanes.lane = 0
			if difference := cmp.Diff(want, lanes, cmp.AllowUnexported(exchange{})); difference != "" {
				t.Fatalf("seed %d, %d: %s\nof %q", from, way, difference, pieces)
			}
		}
	}
	if !seed.Given() && (inLane[inLanes] < 1000 || inLane[bodiesLast] < 500) {
		t.Errorf("only %d requests were answered in a lane", inLane)
	}
}

// cut cuts a text into pieces.
func cut(random *rand.Rand, text string) (pieces []string) {
	for len(text) > 0 {
		n := len(text)
		if random.IntN(3) == 0 {
			n = 1 + random.IntN(n)
		}
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return pieces
}
