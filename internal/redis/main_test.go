package redis_test

import (
	"errors"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// secret returns the secret of the tests.
func secret(t testing.TB) firstcome.Secret {
	t.Helper()
	return stage.Secret()
}

// A node has all parts of a gate, as a node has them.
type node struct {
	*redis.Redis
	*redis.Gate
	*redis.Line
	*redis.Journal
	*redis.Recovery
	inspector
}

// An inspector is a field of its own, because other parts may have methods with the same names.
type inspector struct{ *redis.Inspector }

func nodeOf(r *redis.Redis) *node {
	return &node{r, r.Gate, r.Line, r.Journal, r.Recovery, inspector{redis.InspectorOf(r)}}
}

// open opens a gate, and closes it at the end of the test.
func open(t testing.TB, url string, edit ...func(*redis.Options)) *node {
	t.Helper()
	options := redis.Options{URL: url, Secret: secret(t)}
	for _, e := range edit {
		e(&options)
	}
	g, err := redis.Open(t.Context(), options)
	stage.Must(t, err)
	t.Cleanup(g.Close)
	return nodeOf(g)
}

func crowd(from, count int) []firstcome.UserID { return stage.Users("user-", from, count) }

// classOf returns the class of an error, and fails the test if it has none.
func classOf(t testing.TB, err error) redis.Class {
	t.Helper()
	var e *redis.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no error of Redis", err)
	}
	return e.Class
}
