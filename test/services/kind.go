package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// A Kind is a kind of server.
type Kind string

// The kinds of servers.
const (
	Redis      Kind = "Redis" // or Valkey
	MariaDB    Kind = "MariaDB"
	PostgreSQL Kind = "PostgreSQL"
	Kafka      Kind = "Kafka"
)

// SQLite is the kind of ledger that needs no server.
const SQLite = "SQLite"

// Ledgers has the kinds of databases that a ledger may be in: SQLite alone with the build tag check, otherwise SQLite,
// MariaDB and PostgreSQL. Each function makes a new, empty database for a test and returns the ledger's name.
var Ledgers = ledgers

func sqlite(t testing.TB) string { return filepath.Join(t.TempDir(), "firstcome.db") }

// ErrMissing says that this machine lacks the binary for a kind of server.
var ErrMissing = errors.New("not installed")

// A recipe says how to make and use servers of a kind.
type recipe struct {
	account  string                              // the account that runs the server if this process is root's; "" is this process's
	prepare  func(data string) []string          // the command that fills the data directory; nil if it may be empty
	template func() (*Server, error)             // returns a server whose data directory is to be copied, instead of prepare; nil if there is none
	command  func(data, port string) []string    // the command that runs the server
	stop     syscall.Signal                      // has the server end without waiting for clients
	remove   func(data string) error             // removes what a killed server has left outside of its directory; nil if there is nothing
	end      string                              // the signal that ends the server at once and leaves nothing behind
	url      func(address string) string         // the URL for a user with all rights
	ping     func(context.Context, string) error // returns nil if the server answers
}

// recipe returns the recipe of a kind, with this machine's binaries.
func (k Kind) recipe() (recipe, error) {
	r, err := k.withoutTemplate()
	r.template = templates[k]
	return r, err
}

func (k Kind) withoutTemplate() (recipe, error) {
	recipes := map[Kind]func() (recipe, error){Redis: redisRecipe, MariaDB: mariaDBRecipe, PostgreSQL: postgreSQLRecipe, Kafka: kafkaRecipe}
	if runtime.GOOS != "linux" {
		return recipe{}, fmt.Errorf("%s of one's own: %w: it needs Linux", k, ErrMissing)
	}
	r, err := recipes[k]()
	if err != nil {
		return recipe{}, fmt.Errorf("%s: %w", k, err)
	}
	if os.Getuid() != 0 {
		r.account = ""
	}
	return r, nil
}

// Installed returns nil if this machine has the binaries of a kind. Otherwise the error is ErrMissing and
// names their Debian package, which .ci/install installs.
func (k Kind) Installed() error {
	_, err := k.recipe()
	if errors.Is(err, ErrMissing) && runtime.GOOS == "linux" {
		packages := map[Kind]string{Redis: "install redis-server", MariaDB: "install mariadb-server", PostgreSQL: "install postgresql", Kafka: "Debian has none"}
		err = fmt.Errorf("%w: %s, or run make install", err, packages[k])
	}
	return err
}

// Fast returns arguments for Start and Server that give up durability for speed: the server loses data if the
// machine stops, and Redis also if it is killed.
func (k Kind) Fast() []string {
	return map[Kind][]string{
		Redis:      {"--appendonly", "no"},
		MariaDB:    {"--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-flush-method=nosync"},
		PostgreSQL: {"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"},
	}[k]
}

// variable returns the name of the environment variable that has the URL of a server.
func (k Kind) variable() string {
	return map[Kind]string{
		Redis:      "FIRSTCOME_TEST_REDIS_URL",
		MariaDB:    "FIRSTCOME_TEST_MARIADB_URL",
		PostgreSQL: "FIRSTCOME_TEST_POSTGRES_URL",
		Kafka:      "FIRSTCOME_TEST_KAFKA_URL",
	}[k]
}

// Server starts a server for t; see Start. The server ends with the test. If the test has failed, its log
// shows the end of the server's log.
func (k Kind) Server(t testing.TB, arguments ...string) *Server {
	t.Helper()
	k.mayStart(t)
	s, err := k.Start(t.Context(), arguments...)
	k.ends(t, s, err)
	return s
}

// ends has a server end with the test. err is the error of its start.
func (k Kind) ends(t testing.TB, s *Server, err error) {
	t.Helper()
	k.must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of %s's log:\n%s", k, s.Log())
		}
		if err := s.Close(); err != nil {
			t.Errorf("close %s: %v", k, err)
		}
	})
}

// must skips the test if the server is not installed, and fails it for any other error.
func (k Kind) must(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) {
		t.Skipf("%v; install it (.ci/install), or set %s (compose.yaml)", err, k.variable())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// patientBroker are the arguments of a Kafka that no test kills. With the session of a second that others have, a controller
// on a busy machine misses the broker, and its topics lose their leader.
var patientBroker = overriding("broker.session.timeout.ms=60000")

// shared has the servers that all tests of this process share. The first call starts a server. It ends with
// the process.
var shared = map[Kind]func() (*Server, error){
	MariaDB:    sync.OnceValues(func() (*Server, error) { return MariaDB.Start(context.Background(), MariaDB.Fast()...) }),
	PostgreSQL: sync.OnceValues(func() (*Server, error) { return PostgreSQL.Start(context.Background(), PostgreSQL.Fast()...) }),
	Kafka: sync.OnceValues(func() (*Server, error) {
		return Kafka.Start(context.Background(), patientBroker...)
	}),
}

// templates has, for a kind, a server that never runs and whose data directory is copied: filling a data
// directory takes longer than the rest of a start. The first call makes the template. It ends with the
// process.
var templates = map[Kind]func() (*Server, error){
	MariaDB:    sync.OnceValues(func() (*Server, error) { return MariaDB.newTemplate() }),
	PostgreSQL: sync.OnceValues(func() (*Server, error) { return PostgreSQL.newTemplate() }),
	Kafka:      sync.OnceValues(newKafkaTemplate),
}

// temporary has the templates. A test may set TMPDIR to a directory that ends with the test. What is made for the whole
// process is not made there.
var temporary = os.TempDir()

// newTemplate makes a template with a kind's recipe.
func (k Kind) newTemplate() (*Server, error) {
	recipe, err := k.withoutTemplate()
	if err != nil {
		return nil, err
	}
	s, err := k.sharedTemplate(recipe)
	if s != nil || err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s = &Server{kind: k, recipe: recipe}
	if err = s.prepare(ctx, temporary); err == nil {
		s.process, err = launch(s.directory, recipe.account, recipe.end, []string{"true"}) // its keeper keeps the directory
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the data directory of %s: %w", k, err), s.Close())
	}
	return s, nil
}

// Database makes a new, empty database for t and returns its URL, for a user with all rights. The database
// ends with the test. It is not durable, because no test can kill this server. On Redis it is one of the
// numbered databases, which do not separate publication channels. On Kafka it is a topic of three partitions.
func (k Kind) Database(t testing.TB) string {
	t.Helper()
	k.mayStart(t)
	if url := os.Getenv(k.variable()); url != "" {
		return k.databaseAt(t, url)
	}
	if k == Redis { // it starts in no time
		return k.Server(t, k.Fast()...).URL()
	}
	s, err := shared[k]()
	k.must(t, err)
	url, err := s.Database(t.Context())
	k.must(t, err)
	return url
}

// binary returns the file of the first of the commands that this machine has: in PATH, in the given
// directories, or in the directories where systems keep servers.
func binary(directories []string, commands ...string) (string, error) {
	for _, command := range commands {
		if file, err := exec.LookPath(command); err == nil {
			return file, nil
		}
		for _, directory := range append(directories, "/usr/sbin", "/usr/local/sbin") {
			if file, err := exec.LookPath(filepath.Join(directory, command)); err == nil {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", commands[0], ErrMissing)
}

// newestFirst returns the directories that match a pattern, the newest version first. The pattern has one
// asterisk, for a version, and one more name after it.
func newestFirst(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	version := func(directory string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(directory)))
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	return found
}
