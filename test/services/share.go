package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Shared are servers for all the test processes of a run.
type Shared struct{ servers []*Server }

// Share starts a MariaDB, a PostgreSQL and a Kafka, and makes the data directories that other servers start from.
// Environment names both to the test processes, whose tests then start only the servers that they kill or freeze.
// Redis is not shared: its numbered databases do not separate publication channels, so a test would be woken by the
// others, and it starts in some 20 ms. ErrMissing says that this machine lacks a kind. The caller closes the result.
func Share(ctx context.Context) (*Shared, error) {
	s := &Shared{}
	for _, k := range []Kind{MariaDB, PostgreSQL, Kafka} {
		server, err := k.Start(ctx, append(k.Fast(), k.forMany()...)...)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.servers = append(s.servers, server)
	}
	return s, nil
}

// forMany returns the arguments of a server that the tests of a whole run use at once.
func (k Kind) forMany() []string {
	return map[Kind][]string{
		MariaDB:    {"--max-connections=2000", "--innodb-buffer-pool-size=256M"},
		PostgreSQL: {"-c", "max_connections=1000", "-c", "shared_buffers=128MB"},
		Kafka:      patientBroker,
	}[k]
}

// Environment returns NAME=VALUE for each server and each data directory.
func (s *Shared) Environment() (all []string) {
	for _, server := range s.servers {
		all = append(all, server.kind.variable()+"="+server.URL())
		if server.recipe.template == nil {
			continue
		}
		if template, err := server.recipe.template(); err == nil { // the server's own start made it
			all = append(all, server.kind.templateVariable()+"="+template.directory)
		}
	}
	return all
}

// Close ends the servers.
func (s *Shared) Close() (err error) {
	for _, server := range slices.Backward(s.servers) {
		err = errors.Join(err, server.Close())
	}
	return err
}

// templateVariable returns the name of the variable that has the directory of a kind's template.
func (k Kind) templateVariable() string {
	return strings.TrimSuffix(k.variable(), "_URL") + "_TEMPLATE"
}

// sharedTemplate returns the template that the environment names, or nil.
func (k Kind) sharedTemplate(r recipe) (*Server, error) {
	directory := os.Getenv(k.templateVariable())
	if directory == "" {
		return nil, nil
	}
	s := &Server{kind: k, recipe: r, directory: directory}
	if _, err := os.Stat(s.data()); err != nil {
		return nil, fmt.Errorf("%s: %w", k.templateVariable(), err)
	}
	return s, nil
}

// Environ returns the environment of this process without firstcome's variables, for a firstcome that a test starts: it
// would refuse those of the tests, and take others for its settings.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FIRSTCOME_") })
}
