package services

import (
	"fmt"
	"os"
	"testing"
)

// Galera starts a cluster of two MariaDB servers for t, both of which take writes. It returns when the second has all that
// the first has.
func Galera(t testing.TB) (first, second *Server) {
	t.Helper()
	const library = "/usr/lib/galera/libgalera_smm.so"
	if _, err := os.Stat(library); err != nil {
		MariaDB.must(t, fmt.Errorf("Galera: %w", ErrMissing))
	}
	member := func(peer string, more ...string) (s *Server, address string) {
		address = fmt.Sprintf("127.0.0.1:%d", portFor(t))
		return MariaDB.Server(t, append(append(MariaDB.Fast(), "--wsrep-on=ON", "--wsrep-provider="+library, "--wsrep-cluster-address=gcomm://"+peer,
			"--wsrep-node-address="+address, "--wsrep-sst-method=rsync", fmt.Sprintf("--wsrep-sst-receive-address=127.0.0.1:%d", portFor(t)),
			fmt.Sprintf("--wsrep-provider-options=gmcast.listen_addr=tcp://%s;ist.recv_addr=127.0.0.1:%d;gcache.size=16M", address, portFor(t)),
			"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2"), more...)...), address
	}
	first, at := member("", "--wsrep-new-cluster")
	second, _ = member(at)
	if err := second.awaitTrue(t.Context(), `SELECT VARIABLE_VALUE = 'Synced' FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_local_state_comment'`); err != nil {
		t.Fatalf("join a cluster: %v\n%s", err, second.Log())
	}
	return first, second
}
