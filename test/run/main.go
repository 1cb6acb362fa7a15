// Command run runs the tests of one tier, and reports them so that a failure fits on a screen. CONTRIBUTING.md says which
// tier a test belongs to.
//
//	go run ./test/run check
//	go run ./test/run test
//	SOAK=0.1 go run ./test/run soak
//
// While it runs it prints go test's line of each package that has ended, and which packages still run. The last lines
// of a green run are the slowest tests and the time of the whole. The last lines of a red run are, for each test that
// failed: its name, the promise or fault row that it holds, what it said, and the command that repeats it alone.
package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A pass is one go test over some packages.
type pass struct {
	name      string
	env       []string // in addition to the environment of this process
	arguments []string // of go test, in front of the packages
	packages  []string
	prefix    string // of the command that repeats a test of this pass
}

// slowFirst lists the packages whose tests take longest. They start first, so that they do not run alone at the end.
var slowFirst = []string{
	"./test/e2e", "./cmd/firstcome", "./internal/ledger", "./internal/console", "./internal/kafka", "./examples/storefront", "./internal/api", "./test/services", "./...",
}

// The packages that start goroutines or are called by several. The race detector runs all their tests in a soak.
// Outside of it, it runs the tests of make check of those in inProcess, and of those in atServers, which test little
// without a server, all that take a few seconds.
var (
	inProcess = []string{
		"./cmd/firstcome", "./internal/ledger", "./internal/issue", "./internal/record", "./internal/line", "./internal/api", "./internal/httpd", "./internal/console",
		"./internal/figures", "./internal/auth", "./internal/ops", "./internal/load", "./client", "./firstcometest",
	}
	atServers = []string{"./internal/redis", "./internal/kafka"}
)

// detector are the flags of the race detector. It does not watch SQLite, which is C translated into Go: that is not our
// code, and it is up to three times slower with the detector.
var detector = []string{"-race", "-gcflags=modernc.org/...=-race=false"}

// withoutCgo builds the tests as the released binary is built. The race detector needs cgo.
var (
	withoutCgo = []string{"CGO_ENABLED=0"}
	withCgo    = []string{"CGO_ENABLED=1"}
)

// once are the flags of passes that do not take results from the cache. Tests mostly wait, so more of them run at once than there are
// cores. lint has vetted them.
func once(timeout string, seed uint64) []string {
	return []string{"-vet=off", "-count=1", "-parallel=4", "-timeout=" + timeout, "-shuffle=" + strconv.FormatUint(seed, 10)}
}

// check needs no server. Its results are cached, as in any inner loop.
func check(uint64) ([][]pass, error) {
	arguments := []string{"-vet=off", "-tags=check", "-timeout=5m"}
	return [][]pass{{{"check", withoutCgo, arguments, []string{"./..."}, "CGO_ENABLED=0 "}}}, nil
}

// test runs every test without the race detector, and short ones with it, side by side.
func test(seed uint64) ([][]pass, error) {
	plain := pass{"plain", withoutCgo, append(once("40m", seed), "-p=2"), slowFirst, "CGO_ENABLED=0 "}
	race := slices.Concat(once("40m", seed), detector, []string{"-p=1"})
	return [][]pass{{
		plain,
		{"race", withCgo, append(race, "-tags=check"), inProcess, ""},
		{"race-at-servers", withCgo, race, atServers, ""},
	}}, nil
}

// soakRounds is how often a whole soak runs everything with the race detector.
const soakRounds = 10

// soak runs everything, also the tests that depend on chance. The first step has the race detector, in the processes of
// the fleets, too. Without it run the big crowds, for which it needs too much memory, and the simulation, where one thing
// happens after the other.
func soak(seed uint64) ([][]pass, error) {
	scale := fmt.Sprintf("SOAK=%v", stage.Soak())
	rounds := "-count=" + strconv.Itoa(max(1, int(math.Round(soakRounds*stage.Soak()))))
	common := append(once("24h", seed), "-tags=soak", "-p=2")
	return [][]pass{
		{{"race", append([]string{"SOAK=0"}, withCgo...), slices.Concat(common, detector, []string{rounds}), slices.Concat([]string{"./test/e2e"}, inProcess, atServers), "SOAK=0 "}},
		{{"soak", append([]string{scale}, withoutCgo...), common, slowFirst, "CGO_ENABLED=0 " + scale + " "}},
	}, nil
}

// tiers are what this command runs. Passes of one step run side by side, one step after the other.
var tiers = map[string]func(seed uint64) (steps [][]pass, err error){"check": check, "test": test, "soak": soak}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs a tier. It returns an error if a test failed or was skipped.
func run(ctx context.Context, arguments []string) (err error) {
	if len(arguments) != 1 || tiers[arguments[0]] == nil {
		return errors.New("usage: go run ./test/run check|test|soak")
	}
	seed, err := runSeed()
	if err != nil {
		return err
	}
	steps, err := tiers[arguments[0]](seed)
	if err != nil {
		return err
	}
	env := append(os.Environ(), "FIRSTCOME_TEST_RUN_SEED="+strconv.FormatUint(seed, 10))
	if arguments[0] != "check" {
		servers, err := services.Share(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, servers.Close()) }()
		env = append(env, servers.Environment()...)
	}
	report, err := newReport(os.Stdout, seed)
	if err != nil {
		return err
	}
	go report.tick(ctx)
	for _, step := range steps {
		var all sync.WaitGroup
		for _, p := range step {
			all.Go(func() { report.run(ctx, p, env) })
		}
		all.Wait()
	}
	return errors.Join(ctx.Err(), report.end())
}

// runSeed returns the seed of the run's random choices: SEED, or a new one.
func runSeed() (uint64, error) {
	text := os.Getenv("SEED")
	if text == "" {
		var random [8]byte
		_, _ = rand.Read(random[:])                              // it never fails
		return binary.LittleEndian.Uint64(random[:])>>1 | 1, nil // the property tests take 0 for none
	}
	seed, err := strconv.ParseUint(text, 10, 63)
	if err != nil || seed == 0 {
		return 0, fmt.Errorf("SEED=%q is no number from 1 to 2^63-1", text)
	}
	return seed, nil
}
