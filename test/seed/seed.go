// Package seed makes the random choices of tests, so that they can be made again: a test that fails
// says with which FIRSTCOME_TEST_SEED its choices were made, and who sets that variable has them again.
// What else is random (the scheduler, the kernel, the time that a disk takes) no seed gives again.
package seed

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

const (
	// variable has the seed of a test that is repeated.
	variable = "FIRSTCOME_TEST_SEED"
	// runVariable has the seed of a whole run, which all its processes share. Unlike variable, it leaves Each all its seeds.
	runVariable = "FIRSTCOME_TEST_RUN_SEED"
)

// given returns the seed of the environment, if there is one.
func given() (seed uint64, ok bool) { return number(variable) }

// number returns the number that a variable of the environment has, if it is set.
func number(variable string) (n uint64, ok bool) {
	text := os.Getenv(variable)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s=%q is no number from 0 on", variable, text))
	}
	return n, true
}

// Given tells whether there is a seed in the environment: then a test that goes through many goes
// through this one alone, and cannot say how often something came up.
func Given() bool {
	_, ok := given()
	return ok
}

// process is the seed of this process: the given one, the run's, or a new one, which it prints.
var process = sync.OnceValue(func() uint64 {
	for _, name := range []string{variable, runVariable} {
		if seed, ok := number(name); ok {
			return seed
		}
	}
	seed := rand.Uint64()>>1 | 1 // rapid takes 0 for none
	fmt.Fprintf(os.Stderr, "%s=%d\n", variable, seed)
	return seed
})

// Rand returns what makes a test's random choices, or those of one part of it, for any number of
// goroutines. Tests and parts of other names have other choices, so that it does not matter which ran
// before; the same begin with the same.
func Rand(t testing.TB, part ...any) *rand.Rand {
	t.Helper()
	again(t, process())
	return Of(t.Name() + fmt.Sprint(part...))
}

// Of is Rand where there is no test: a test that uses it and fails says its seed only if it uses Rand, too.
func Of(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // which never fails
	return rand.New(&locked{from: rand.NewPCG(process(), h.Sum64())})
}

// again has a test say, if it fails, how to make its choices again.
func again(t testing.TB, seed uint64) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to make the same random choices again: %s=%d", variable, seed)
		}
	})
}

// Each returns the seeds from 0 to below n, or the given one alone. The seed at which a test fails
// is said.
func Each(t testing.TB, n uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		first, end := uint64(0), n
		if seed, ok := given(); ok {
			first, end = seed, seed+1
		}
		failed := t.Failed()
		at := first
		defer func() { // also when the test ends in the loop
			if t.Failed() && !failed {
				t.Logf("to make the same random choices again: %s=%d", variable, at)
			}
		}()
		for ; at < end && t.Failed() == failed; at++ {
			if !yield(at) {
				return
			}
		}
		at--
	}
}

// Check is rapid.Check with the process's seed, and with fewer checks than rapid has by default unless this is a soak.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	again(t, process())
	if err := rapidFlags(); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, property)
}

// rapidFlags sets the flags of rapid once: tests that run beside each other read them.
var rapidFlags = sync.OnceValue(func() error {
	return errors.Join(flag.Set("rapid.seed", strconv.FormatUint(process(), 10)), flag.Set("rapid.checks", strconv.Itoa(checks)))
})

// A locked source is one for many goroutines.
type locked struct {
	mu   sync.Mutex // guards from
	from rand.Source
}

// Uint64 is a rand.Source's.
func (l *locked) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from.Uint64()
}
