//go:build unix

package sqldb

import (
	"io/fs"
	"syscall"
)

// hardLinks returns how many names a file has.
func hardLinks(f fs.FileInfo) uint64 {
	if stat, ok := f.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) // Nlink is narrower on some systems
	}
	return 1
}
