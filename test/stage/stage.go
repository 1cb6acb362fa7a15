// Package stage has what the tests of several packages stand on: a fake gate, journal and ledger, which do what
// test/conform wants of the real ones.
package stage

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
)

// Epoch is when the gate of these coupons issued number 0.
var Epoch = time.Date(2026, 12, 24, 1, 0, 0, 0, time.UTC)

// Coupon returns the coupon that a gate gave a number, to the user named after it.
func Coupon(id firstcome.CampaignID, number int64) firstcome.Coupon {
	return firstcome.Coupon{
		Campaign: id, Number: number, User: firstcome.UserID(fmt.Sprint("user-", number)), Code: secret.Code(id, number),
		IssuedAt: Epoch.Add(time.Duration(number) * time.Millisecond), TermsVersion: 1,
	}
}

// Coupons returns the coupons with the numbers from first to last.
func Coupons(id firstcome.CampaignID, first, last int64) (coupons []firstcome.Coupon) {
	for n := first; n <= last; n++ {
		coupons = append(coupons, Coupon(id, n))
	}
	return coupons
}

// Numbers returns the numbers from first to last.
func Numbers(first, last int64) (numbers []int64) {
	for n := first; n <= last; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// Must ends a test at an error that the test is not about.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Err returns the error of a call whose other result a test does not look at.
func Err[T any](_ T, err error) error { return err }

// Run runs what has a Run until stop is called or the test ends, and none of it may fail.
func Run(t testing.TB, runs ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, run := range runs {
		all.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// Serve runs something until stop is called or the test ends, and then closes it.
func Serve(t testing.TB, s interface {
	Run(ctx context.Context) error
	Close() error
},
) (stop func()) {
	end := Run(t, s.Run)
	stop = sync.OnceFunc(func() {
		end()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

var secret = newSecret("a secret of the tests, 32 bytes and more")

func newSecret(text string) firstcome.Secret {
	s, err := firstcome.NewSecret([]byte(text))
	if err != nil {
		panic(err)
	}
	return s
}

// Terms returns the terms of a campaign: open from now on, and answered when recorded.
func Terms(quantity int64) firstcome.Terms {
	return firstcome.Terms{Name: "n", Quantity: quantity, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
}

// Users returns n users, whose names are a prefix and a number, the first of which is from.
func Users(prefix string, from, n int) (users []firstcome.UserID) {
	for k := range n {
		users = append(users, firstcome.UserID(fmt.Sprint(prefix, from+k)))
	}
	return users
}

// Same compares what a test got with what it wants.
func Same(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Await looks again and again until it sees what is wanted. After a minute it ends the test, and says what it saw last.
func Await[T comparable](t testing.TB, what string, want T, look func() T) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(time.Minute)
	for seen := look(); seen != want; seen = look() {
		<-tick.C
		if time.Now().After(end) {
			t.Fatalf("%s never came: at last it was %v, want %v", what, seen, want)
		}
	}
}

// Next returns what comes next, and ends the test if nothing comes for a minute.
func Next[T any](t testing.TB, what string, from <-chan T) (next T) {
	t.Helper()
	select {
	case next = <-from:
	case <-time.After(time.Minute):
		t.Fatalf("%s never came", what)
	}
	return next
}

// Alarms gets the alarms about campaigns.
type Alarms chan error

// Raise keeps an alarm, or drops it if there is no room.
func (a Alarms) Raise(_ firstcome.CampaignID, err error) {
	select {
	case a <- err:
	default:
	}
}

// A Log passes on what is written to it: of slog, a line each time.
type Log chan string

func (l Log) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default: // nobody wants as many
	}
	return len(line), nil
}

// Secret returns the secret of the tests' codes.
func Secret() firstcome.Secret { return secret }
