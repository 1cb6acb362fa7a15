package services

import (
	"context"
	"net/url"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

// mariaDBRecipe runs MariaDB with its own settings, but small, so that several servers can run. The server
// refuses to run as root. MariaDB's packages create the account mysql.
func mariaDBRecipe() (recipe, error) {
	server, err := binary(nil, "mariadbd")
	if err != nil {
		return recipe{}, err
	}
	install, err := binary(nil, "mariadb-install-db")
	return recipe{
		account: "mysql",
		prepare: func(data string) []string {
			return append([]string{
				install, "--no-defaults", "--datadir=" + data, "--skip-test-db",
				"--auth-root-authentication-method=normal", "--innodb-log-file-size=16M",
			}, MariaDB.Fast()...) // nobody kills this command
		},
		command: func(data, port string) []string {
			return []string{
				server, "--no-defaults", "--datadir=" + data, "--bind-address=127.0.0.1", "--port=" + port,
				// The path of a socket may have 107 bytes at most. This one is relative to the data
				// directory.
				"--socket=socket", "--pid-file=pid", "--skip-name-resolve", "--max-connections=500",
				"--innodb-log-file-size=16M", "--innodb-buffer-pool-size=32M", "--innodb-fast-shutdown=1",
			}
		},
		stop: syscall.SIGTERM,
		end:  "KILL",
		url:  func(address string) string { return "mysql://root@" + address + "/" },
		ping: pingSQL,
	}, err
}

// mysqlConfig returns the driver's settings for a URL of the form
// mysql://user:password@host:port/database?parameters.
func mysqlConfig(u *url.URL) (*mysql.Config, error) {
	source := "/"
	if u.RawQuery != "" {
		source += "?" + u.RawQuery
	}
	c, err := mysql.ParseDSN(source)
	if err != nil {
		return nil, err
	}
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	c.ParseTime = true
	// Otherwise the driver logs every failed connection to standard error.
	c.Logger = &mysql.NopLogger{}
	return c, nil
}

// pingSQL pings a MariaDB or PostgreSQL with a new connection.
func pingSQL(ctx context.Context, at string) error {
	db, err := Open(at)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.PingContext(ctx)
}
