package services

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, as its TestMain, and ends the process. They fail
// also if Leaks does.
func Main(m *testing.M) {
	status := m.Run()
	if status == 0 {
		if err := Leaks(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}

// longestEnd is above the longest time for which a client that was told to close goes on
// with a connection: PostgreSQL's cancels what is under way for 15 seconds at most.
const longestEnd = 20 * time.Second

// Leaks returns an error that shows the goroutines that there are besides the caller's, if
// they do not end. goleak alone waits for less than half a second, in which on a busy
// machine a connection may not have ended that a client closes in the background.
func Leaks() error {
	ctx, cancel := context.WithTimeout(context.Background(), longestEnd)
	defer cancel()
	var left error
	_ = until(ctx, func() bool { // that it is over is an error in left
		left = goleak.Find(leftByClients()...)
		return left == nil
	})
	return left
}

// leftByClients are the goroutines that a closed client of Redis leaves for some seconds, and
// that are no leak of who used it: it looks once more, within a second, at a server that it
// left, and closes its connections to a cluster's server that it left after five.
func leftByClients() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
	}
}
