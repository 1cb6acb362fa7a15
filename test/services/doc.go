// Package services starts real servers for tests and for benchmarks: Redis, MariaDB, PostgreSQL and Kafka.
//
// A test that only needs a database gets a new, empty one, on a server that all tests of the process share:
//
//	url := services.MariaDB.Database(t) // mysql://root@127.0.0.1:23817/firstcome5f0c91d2b06e7a44
//	db, err := services.Open(url)       // a *sql.DB beside what is tested
//
// A test that kills, stops or freezes a server gets a server of its own:
//
//	server := services.PostgreSQL.Server(t)
//	url, err := server.Database(ctx)
//	err = server.Kill()       // SIGKILL, to everything at once
//	err = server.Restart(ctx) // the same port, the same data
//	err = server.Freeze()     // SIGSTOP; Continue ends it
//
// A Proxy between client and server loses answers, delays them, or cuts the connection. User makes a user
// with limited rights:
//
//	proxy := services.Through(t, server.Address())
//	url, err = proxy.URL(url)
//	dropped := proxy.DropReply(2) // the second from now
//	proxy.Cut()                   // Heal ends it
//	url = services.User(t, url)   // reads and writes rows, makes no tables
//
// A Standby follows a MariaDB or PostgreSQL that was started as a Primary. It can lag, and it can be
// promoted:
//
//	primary := services.MariaDB.Primary(t)
//	standby := primary.Standby(t)
//	err = standby.Lag(ctx)                                        // CatchUp ends it
//	err = errors.Join(primary.Demote(ctx), standby.Promote(ctx))
//	proxy.SetUpstream(standby.Address())                          // the name moves
//
// A Redis Cluster can move a key's slot to another master while clients use the cluster:
//
//	cluster := services.RedisCluster(t, 3)
//	err = cluster.Move(ctx, "firstcome:{spring}:campaign")
//
// A Pair is a Redis and its replica, which takes over: by a call, by a Sentinel, or in a Cluster:
//
//	pair := services.RedisPair(t)        // or services.SentinelPair, or the Pair of a key in a PairedRedisCluster
//	err = pair.Promote(ctx)              // the old primary goes on
//	err = pair.TakeOver(ctx)             // it is killed, and Sentinel or Cluster promotes the replica
//	err = pair.Rejoin(ctx)               // who was killed follows
//
// SecuredRedisCluster starts a Redis Cluster with TLS. Secured starts a server with TLS. SecuredSentinel
// starts a Redis and the Sentinel that names it, with TLS.
//
// A program that is not a test calls Kind.Start, and Server.Close at its end.
//
// # Where the servers come from
//
// If FIRSTCOME_TEST_REDIS_URL, FIRSTCOME_TEST_MARIADB_URL, FIRSTCOME_TEST_POSTGRES_URL or FIRSTCOME_TEST_KAFKA_URL is set, databases
// (of Kafka, topics) are made on the server that the variable names (compose.yaml has such servers). Otherwise, and always for a
// test that needs a server of its own, the package starts a binary of this machine, with a free loopback port
// and a temporary directory. If this machine has no such binary, the test is skipped by name. Continuous
// integration counts a skip as a failure.
//
// # How they end
//
// A server ends with its test, and its directory is removed. Servers never outlive the test process, whatever
// happens to that. Each server runs under a shell that waits for the end of a pipe; the test process holds
// the other end of that pipe. Starting servers needs Linux.
package services
