package sqldb

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// namesOf lists the kinds of ledgers, for the error about a URL of any other kind.
const namesOf = "name it sqlite:FILE, mysql://USER@HOST/DATABASE or postgres://USER@HOST/DATABASE"

// OnServer reports whether a ledger's name is the URL of a database on a server: mysql://, mariadb://,
// postgres:// or postgresql://.
func OnServer(name string) bool {
	scheme, _, found := strings.Cut(name, "://")
	return found && serverDialect(scheme) != nil
}

func serverDialect(scheme string) *Dialect {
	switch scheme {
	case "mysql", "mariadb":
		return &MySQL
	case "postgres", "postgresql":
		return &PostgreSQL
	}
	return nil
}

// CheckName returns an error that says how to name a ledger, if name is not a ledger's name. The error never
// repeats a password.
func CheckName(name string) error {
	if !OnServer(name) {
		_, err := Path(name)
		return err
	}
	u, err := parseServer(name)
	if err != nil {
		return err
	}
	_, err = serverDialect(u.Scheme).connector(u, reading)
	return err
}

// Path returns the file that a ledger's name, sqlite:FILE, names.
func Path(name string) (string, error) {
	path, ok := strings.CutPrefix(name, "sqlite:")
	if !ok {
		scheme, _, _ := strings.Cut(name, ":")
		return "", fmt.Errorf("there is no ledger of the kind %q: %s", scheme, namesOf)
	}
	path = strings.TrimPrefix(path, "//")
	if path == "" || strings.ContainsAny(path, "?#\x00") {
		return "", errors.New("the ledger's file has a name without ? and #: sqlite:firstcome.db")
	}
	return path, nil
}

// Masked returns a ledger's name for display: without password and options. It shows nothing of a name that
// cannot be parsed.
func Masked(name string) string {
	if !OnServer(name) {
		return name
	}
	u, err := parseServer(name)
	if err != nil {
		return "a ledger whose name cannot be read"
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.User.Username() != "" {
		shown.User = url.User(u.User.Username())
	}
	return shown.String()
}

// parseServer parses the URL of a database on a server. It hides the error of net/url, which repeats the URL,
// password included.
func parseServer(name string) (*url.URL, error) {
	u, err := url.Parse(name)
	if err != nil {
		return nil, errors.New("the ledger's name is no URL: in its user and password write % and two hexadecimal digits for characters like @ : / ? # %")
	}
	if u.Host == "" || strings.Trim(u.Path, "/") == "" || strings.Contains(strings.Trim(u.Path, "/"), "/") {
		return nil, errors.New("the ledger's name has no host or no database: " + namesOf)
	}
	return u, nil
}
