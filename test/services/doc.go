// Package services has real servers for tests, and for programs that measure:
// Redis, MariaDB and PostgreSQL.
//
// A test that only needs a database gets one of its own, new and empty, on a
// server that all tests of the process share:
//
//	url := services.MariaDB.Database(t) // mysql://root@127.0.0.1:23817/firstcome5f0c91d2b06e7a44
//	db, err := services.Open(url)       // a *sql.DB beside what is tested
//
// A test that does something to a server gets a server of its own:
//
//	server := services.PostgreSQL.Server(t)
//	url, err := server.Database(ctx)
//	err = server.Kill()       // SIGKILL, to everything at once
//	err = server.Restart(ctx) // the same port, the same data
//	err = server.Freeze()     // SIGSTOP; Continue ends it
//
// A Proxy between the two loses answers, delays them, or cuts the connection; User makes
// a user who may not do everything:
//
//	proxy := services.Through(t, server.Address())
//	url, err = proxy.URL(url)
//	dropped := proxy.DropReply(2) // the second from now
//	proxy.Cut()                   // Heal ends it
//	url = services.User(t, url)   // reads and writes rows, makes no tables
//
// A Standby follows a MariaDB or PostgreSQL that was started as a Primary, lags, and is promoted:
//
//	primary := services.MariaDB.Primary(t)
//	standby := primary.Standby(t)
//	err = standby.Lag(ctx)                                        // CatchUp ends it
//	err = errors.Join(primary.Demote(ctx), standby.Promote(ctx))
//	proxy.SetUpstream(standby.Address())                          // the name moves
//
// A Redis Cluster moves a key's slot to another master while it is used:
//
//	cluster := services.RedisCluster(t, 3)
//	err = cluster.Move(ctx, "firstcome:{spring}:campaign")
//
// SecuredRedisCluster is one with TLS, as Secured is a server with TLS; SecuredSentinel
// is a Redis and the Sentinel that names it, with TLS.
//
// A program that is no test calls Kind.Start, and Server.Close at its end.
//
// # Where the servers come from
//
// Databases are made on the server that a variable names, if it is set:
// FIRSTCOME_TEST_REDIS_URL, FIRSTCOME_TEST_MARIADB_URL or
// FIRSTCOME_TEST_POSTGRES_URL (compose.yaml has such servers). Else, and always
// where a test wants a server of its own, a binary of this machine is started on a
// free loopback port and a temporary directory. If there is none the test is
// skipped by name, which fails continuous integration.
//
// # How they end
//
// A server ends with its test, and its directory goes with it. Whatever happens to
// the test process, its servers do not outlive it: each is under a shell that waits
// for the end of a pipe, of which the test process holds the other end. Servers of
// one's own need Linux.
package services
