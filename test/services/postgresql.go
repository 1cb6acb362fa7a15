package services

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// postgreSQLRecipe runs PostgreSQL with its own settings, but small. The server refuses to run as root.
// PostgreSQL's packages create the account postgres.
func postgreSQLRecipe() (recipe, error) {
	versions := newestFirst("/usr/lib/postgresql/*/bin")
	server, err := binary(versions, "postgres")
	if err != nil {
		return recipe{}, err
	}
	initdb, err := binary(versions, "initdb")
	return recipe{
		account: "postgres",
		prepare: func(data string) []string {
			return []string{initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"}
		},
		command: func(data, port string) []string {
			return []string{
				server, "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
				"-c", "max_connections=400", "-c", "shared_buffers=32MB",
				// So a killed server leaves its shared memory in its directory, and not in /dev/shm.
				"-c", "dynamic_shared_memory_type=mmap",
			}
		},
		stop:   syscall.SIGINT, // SIGTERM would wait for the clients to leave
		end:    "QUIT",         // unlike KILL, it has the server remove its segment of shared memory
		remove: removeSegment,
		url:    func(address string) string { return "postgres://postgres@" + address + "/postgres?sslmode=disable" },
		ping:   pingSQL,
	}, err
}

// removeSegment removes the shared memory segment of a server that did not shut down in order. PostgreSQL uses the segment to
// see whether processes of a server still live. Line 7 of the lock file names the segment.
func removeSegment(data string) error {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it shut down in order
	}
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 {
		return nil // it ended before it had a segment
	}
	var key, id int
	if _, err := fmt.Sscan(lines[6], &key, &id); err != nil {
		return nil
	}
	return removeSharedMemory(id)
}
