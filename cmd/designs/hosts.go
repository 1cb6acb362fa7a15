package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/designs"
	"github.com/firstcome/firstcome/test/services"
)

// hosts has the servers that all contestants use. Redis and the database have proxies that a fault can cut. A server is nil if it is the user's own, or
// not needed.
type hosts struct {
	redis, database, kafka          *services.Server
	redisURL, databaseURL, kafkaURL string // direct
	redisLink, databaseLink         *link
	asks                            rueidis.Client // direct
	tables                          *designs.Database
}

// A link is a proxy to a server.
type link struct {
	*services.Proxy
	url  string // of the server through the proxy
	stop func()
}

func newLink(ctx context.Context, url, address string) (*link, error) {
	proxy, err := services.Listen(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = proxy.Run(ctx)
	}()
	through, err := proxy.URL(url)
	return &link{proxy, through, func() { cancel(); <-ended }}, err
}

// sized has arguments of the servers that we start. They set the sizes that are the servers' defaults, where those of the tests are smaller.
var sized = map[services.Kind][]string{
	services.MariaDB: {"--innodb-log-file-size=96M", "--innodb-buffer-pool-size=128M", "--max-connections=1000"},
	services.Redis:   {"--save", "", "--auto-aof-rewrite-percentage", "0"}, // the append-only file is rewritten between runs
}

// startHosts starts the servers that the user did not name. Redis syncs every second, the database at each commit.
func startHosts(ctx context.Context, o options, kafka bool) (h *hosts, err error) {
	h = &hosts{redisURL: o.Redis, databaseURL: o.Database, kafkaURL: o.Kafka}
	for _, s := range []struct {
		kind   services.Kind
		given  *string
		server **services.Server
		needed bool
	}{
		{services.Redis, &h.redisURL, &h.redis, true}, {services.MariaDB, &h.databaseURL, &h.database, true}, {services.Kafka, &h.kafkaURL, &h.kafka, kafka},
	} {
		if *s.given != "" || !s.needed {
			continue
		}
		server, err := s.kind.Start(ctx, sized[s.kind]...)
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		*s.server, *s.given = server, server.URL()
	}
	if h.database != nil {
		if h.databaseURL, err = h.database.Database(ctx); err != nil {
			return nil, errors.Join(err, h.close())
		}
	}
	option, err := rueidis.ParseURL(h.redisURL)
	if err != nil {
		return nil, errors.Join(usageError{err}, h.close())
	}
	option.DisableCache, option.ForceSingleClient = true, true
	if h.asks, err = rueidis.NewClient(option); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if h.tables, err = designs.OpenDatabase(h.databaseURL, 2); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if err := h.unused(ctx, o); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if h.redisLink, err = newLink(ctx, h.redisURL, addressOf(h.redisURL)); err == nil {
		h.databaseLink, err = newLink(ctx, h.databaseURL, addressOf(h.databaseURL))
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// unused refuses servers of the user that have data, because a comparison empties them.
func (h *hosts) unused(ctx context.Context, o options) error {
	keys, err := h.asks.Do(ctx, h.asks.B().Dbsize().Build()).AsInt64()
	if err != nil {
		return err
	}
	if o.Redis != "" && keys > 0 {
		return usageError{fmt.Errorf("this database of Redis has %d keys, and a comparison empties it: name an empty database (…/1)", keys)}
	}
	names, err := h.tables.Tables(ctx)
	if err != nil {
		return err
	}
	if o.Database != "" && len(names) > 0 {
		return usageError{fmt.Errorf("this database has %d tables, and a comparison drops them: name an empty database", len(names))}
	}
	return nil
}

// missing returns an error that says how to get the servers that are neither named nor installed.
func missing(o options, kafka bool) error {
	var errs []error
	for kind, given := range map[services.Kind]string{services.Redis: o.Redis, services.MariaDB: o.Database, services.Kafka: o.Kafka} {
		if given != "" || kind == services.Kafka && !kafka {
			continue
		}
		if err := kind.Installed(); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return usageError{fmt.Errorf("%w\nOr name your own servers with --redis, --database and --kafka. docs/designs.md says how to get a Kafka; --without kafka leaves out the two contestants that need it", err)}
	}
	return nil
}

// addressOf returns the host and port of a URL, with the server's usual port if it names none.
func addressOf(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	rest, _, _ = strings.Cut(rest, "/")
	address := rest[strings.LastIndexByte(rest, '@')+1:]
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	usual := map[string]string{"redis": "6379", "mysql": "3306", "postgres": "5432", "postgresql": "5432"}[scheme]
	return net.JoinHostPort(strings.Trim(address, "[]"), usual)
}

// empty deletes all data in Redis and in the database, and in the append-only file of a Redis that we started.
func (h *hosts) empty(ctx context.Context) error {
	if err := h.asks.Do(ctx, h.asks.B().Flushdb().Build()).Error(); err != nil {
		return err
	}
	if h.redis != nil {
		if err := h.rewrite(ctx); err != nil {
			return err
		}
	}
	return h.tables.Empty(ctx)
}

// rewrite makes Redis rewrite its append-only file, and waits for the end of it.
func (h *hosts) rewrite(ctx context.Context) error {
	if err := h.asks.Do(ctx, h.asks.B().Bgrewriteaof().Build()).Error(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		info, err := h.asks.Do(ctx, h.asks.B().Info().Section("persistence").Build()).ToString()
		if err != nil {
			return err
		}
		if strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0") {
			return nil
		}
		wait(ctx, every)
	}
	return ctx.Err()
}

// prepare recreates the tables, with one coupon.
func (h *hosts) prepare(ctx context.Context, coupon string, quantity int64) error {
	if err := h.empty(ctx); err != nil {
		return err
	}
	return h.tables.MakeTables(ctx, coupon, quantity)
}

// close closes the connections and the proxies, and stops the servers that were started.
func (h *hosts) close() (err error) {
	if h.asks != nil {
		h.asks.Close()
	}
	if h.tables != nil {
		err = h.tables.Close()
	}
	for _, l := range []*link{h.redisLink, h.databaseLink} {
		if l != nil {
			l.stop()
		}
	}
	for _, s := range []*services.Server{h.kafka, h.database, h.redis} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

// A cost is the processor time of a run, and its commands and transactions at the servers.
type cost struct {
	service, redis, database time.Duration
	commands, transactions   int64
}

func (c cost) since(before cost) cost {
	return cost{c.service - before.service, c.redis - before.redis, c.database - before.database, c.commands - before.commands, c.transactions - before.transactions}
}

// cost returns the cost so far. The processor time of a user's own server stays zero.
func (r *runner) cost(ctx context.Context, on *rival) (c cost, err error) {
	for _, p := range on.processes {
		c.service += p.cpu()
	}
	for server, to := range map[*services.Server]*time.Duration{r.redis: &c.redis, r.database: &c.database} {
		if server == nil {
			continue
		}
		if *to, err = server.CPU(); err != nil {
			return c, err
		}
	}
	info, err := r.asks.Do(ctx, r.asks.B().Info().Section("stats").Build()).ToString()
	if err != nil {
		return c, err
	}
	_, rest, _ := strings.Cut(info, "total_commands_processed:")
	if _, err := fmt.Sscan(rest, &c.commands); err != nil {
		return c, fmt.Errorf("Redis does not report its number of commands: %w", err)
	}
	c.transactions, err = r.tables.Commits(ctx)
	return c, err
}
