package services

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main is the TestMain of a package: it runs the tests and ends the process. It also fails if Leaks returns
// an error.
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

// longestEnd is longer than a closed client may keep a connection: PostgreSQL's client takes up to 15 seconds
// to cancel a query that is running.
const longestEnd = time.Minute

// Leaks returns an error that shows all goroutines other than the caller's that do not end. goleak alone
// waits for less than half a second. On a busy machine a client that closes a connection in the background
// may need longer.
func Leaks() error {
	ctx, cancel := context.WithTimeout(context.Background(), longestEnd)
	defer cancel()
	var left error
	_ = until(ctx, func() bool { // left has the error if the time is over
		left = goleak.Find(leftByClients()...)
		return left == nil
	})
	return left
}

// leftByClients ignores the goroutines that a closed Redis client leaves for some seconds. They are no leak
// of its user. Within a second the client checks once more a server that it left. After five seconds it
// closes its connections to a cluster's server that it left.
func leftByClients() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
	}
}
