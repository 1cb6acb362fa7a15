package seed_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
)

func TestMain(m *testing.M) { services.Main(m) }

// failing names, in a process of its own, the test that is to fail and say what it drew.
const failing = "FIRSTCOME_TEST_FAILING"

// TestInAProcessOfItsOwn fails where it is told to.
func TestInAProcessOfItsOwn(t *testing.T) {
	switch os.Getenv(failing) {
	case "rand":
		t.Errorf("drew %d", seed.Rand(t).IntN(1_000_000_000))
	case "each":
		for at := range seed.Each(t, 10) {
			if at >= 7 {
				t.Fatalf("drew %d", at)
			}
		}
	case "check":
		seed.Check(t, func(r *rapid.T) {
			if drawn := rapid.Uint64().Draw(r, "n"); drawn > 1000 {
				r.Fatalf("drew %d", drawn)
			}
		})
	}
}

// fail runs a test that fails and returns what it drew, and the seed that it says.
func fail(t *testing.T, what, given string) (drew, said string) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run", "^TestInAProcessOfItsOwn$", "-rapid.nofailfile")
	c.Env = append(os.Environ(), failing+"="+what, "FIRSTCOME_TEST_SEED="+given)
	out, err := c.CombinedOutput()
	if err == nil {
		t.Fatalf("%s does not fail:\n%s", what, out)
	}
	draws := regexp.MustCompile(`drew (\d+)`).FindStringSubmatch(string(out))
	seeds := regexp.MustCompile(`FIRSTCOME_TEST_SEED=(\d+)`).FindStringSubmatch(string(out))
	if draws == nil || seeds == nil {
		t.Fatalf("%s does not say its seed:\n%s", what, out)
	}
	return draws[1], seeds[1]
}

func TestATestThatFailsSaysTheSeedThatMakesItFailAgain(t *testing.T) {
	for _, what := range []string{"rand", "each", "check"} {
		drew, said := fail(t, what, "")
		if again, repeated := fail(t, what, said); again != drew || repeated != said {
			t.Errorf("%s drew %s with the seed %s, and %s with the same, said as %s", what, drew, said, again, repeated)
		}
		if what == "each" && (drew != "7" || said != "7") {
			t.Errorf("the seed 7 is said as %s", said)
		}
	}
	one := must(fail(t, "rand", "1"))
	if other := must(fail(t, "rand", "2")); one == other {
		t.Errorf("two seeds drew %s", one)
	}
	t.Setenv("FIRSTCOME_TEST_RUN_SEED", "1")
	if drew, said := fail(t, "rand", ""); drew != one || said != "1" {
		t.Errorf("in a run whose seed is 1 it drew %s and says the seed %s, want %s", drew, said, one)
	}
	if drew, said := fail(t, "each", ""); drew != "7" || said != "7" {
		t.Errorf("in a run whose seed is 1 the seed 7 of all is said as %s", said)
	}
}

func must(drew, _ string) string { return drew }

func TestEachGoesThroughAllSeedsUnlessOneIsGiven(t *testing.T) {
	for given, want := range map[string][]uint64{"": {0, 1, 2}, "41": {41}} {
		t.Setenv("FIRSTCOME_TEST_SEED", given)
		if got := slices.Collect(seed.Each(t, 3)); !slices.Equal(got, want) || seed.Given() != (given != "") {
			t.Errorf("with %q it goes through %v", given, got)
		}
	}
	t.Setenv("FIRSTCOME_TEST_SEED", "many")
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "is no number") {
			t.Errorf("a seed that is no number is %q", text)
		}
	}()
	seed.Given()
}
