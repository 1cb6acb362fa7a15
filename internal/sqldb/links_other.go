//go:build !unix

package sqldb

import "io/fs"

// hardLinks returns 1: the number of names is not known on this system.
func hardLinks(fs.FileInfo) uint64 { return 1 }
