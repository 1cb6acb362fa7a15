package services

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/redis/rueidis"
)

// redisRecipe runs Redis as for a gate: durable to the second. Redis writes before it answers, so confirmed
// data survives a kill of the process. The exception is data that Redis confirms while a sync is under way:
// Redis writes that after the sync.
func redisRecipe() (recipe, error) {
	server, err := binary(nil, "redis-server", "valkey-server")
	return recipe{
		command: func(data, port string) []string {
			return []string{
				server, "--port", port, "--bind", "127.0.0.1", "--dir", data, "--save", "",
				"--appendonly", "yes", "--repl-ping-replica-period", "1", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction",
			}
		},
		stop: syscall.SIGTERM,
		end:  "KILL",
		url:  func(address string) string { return "redis://" + address + "/0" },
		ping: pingRedis,
	}, err
}

// pingRedis pings a server with a new connection. A server that asks for a password counts as answering.
func pingRedis(ctx context.Context, at string) error {
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if answer = strings.TrimSpace(answer); answer != "+PONG" && !strings.HasPrefix(answer, "-NOAUTH ") {
		return fmt.Errorf("it answers %q", answer)
	}
	return nil
}

// askRedis sends commands to the server of a URL and returns the answer to the last one.
func askRedis(ctx context.Context, at string, commands ...[]string) (answer rueidis.RedisResult, err error) {
	option, err := rueidis.ParseURL(at)
	if err != nil {
		return answer, err
	}
	option.DisableCache, option.ForceSingleClient = true, true
	client, err := rueidis.NewClient(option)
	if err != nil {
		return answer, err
	}
	defer client.Close()
	for _, command := range commands {
		answer = client.Do(ctx, client.B().Arbitrary(command...).Build())
		if err := answer.Error(); err != nil {
			return answer, fmt.Errorf("%s: %w", command[0], err)
		}
	}
	return answer, nil
}

// numberedDatabases is how many databases a Redis has by default.
const numberedDatabases = 16

// newRedisDatabase empties one of the server's numbered databases and returns its URL. All processes that use
// the server take the databases in turn; database 0 counts the turns.
func newRedisDatabase(ctx context.Context, at string) (string, error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	u.Path = "/0"
	answer, err := askRedis(ctx, u.String(), []string{"INCR", "firstcome:test:databases"})
	if err != nil {
		return "", err
	}
	turn, err := answer.AsInt64()
	if err != nil {
		return "", err
	}
	u.Path = fmt.Sprintf("/%d", 1+turn%(numberedDatabases-1))
	_, err = askRedis(ctx, u.String(), []string{"FLUSHDB"})
	return u.String(), err
}

// Appended returns the file to which a Redis of this package appends what it does, and how long it is. Whoever cuts it shorter, while the
// server does not run, takes what came behind that away.
func (s *Server) Appended() (file string, length int64, err error) {
	files, err := filepath.Glob(filepath.Join(s.data(), "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		return "", 0, errors.Join(err, fmt.Errorf("there are %d append-only files", len(files)))
	}
	about, err := os.Stat(files[0])
	if err != nil {
		return "", 0, err
	}
	return files[0], about.Size(), nil
}
