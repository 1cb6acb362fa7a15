package services

import "go.uber.org/goleak"

// LeftByClients are the goroutines that a closed client of Redis leaves for some seconds, and
// that are no leak of who used it: it looks once more, within a second, at a server that it
// left, and closes its connections to a cluster's server that it left after five.
func LeftByClients() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
	}
}
