//go:build unix

package doctor

import "golang.org/x/sys/unix"

// maxOpenFiles returns how many files and connections this process may have open.
func maxOpenFiles() (uint64, error) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err
}

// freeBytes returns how many bytes a user may still write to the disk of a directory.
func freeBytes(dir string) (uint64, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(dir, &stat)
	return uint64(stat.Bavail) * uint64(stat.Bsize), err
}
