package ledger

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxLinks bounds the links that are followed one behind the other, as Linux does.
const maxLinks = 40

// File returns the file that a path leads to behind symbolic links, also one that is yet to be made. What
// lies beside a ledger (its lock, log and secret) lies beside the file, so that it is the same by
// whatever name the ledger is opened. A path that cannot be followed is returned as it is: to open it says why.
func File(path string) string {
	followed := path
	for range maxLinks {
		if file, err := filepath.EvalSymlinks(followed); err == nil {
			return file
		}
		// The last link may lead to where SQLite will make the file.
		dir, err := filepath.EvalSymlinks(filepath.Dir(followed))
		if err != nil {
			return path
		}
		followed = filepath.Join(dir, filepath.Base(followed))
		target, err := os.Readlink(followed)
		if err != nil {
			return followed
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		followed = target
	}
	return path
}

// checkNames returns an error that says what to do if the file has more names than one: SQLite keeps
// a log beside each, and a process that opens it by another does not see the lock.
func checkNames(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // it is yet to be made, or opening it says why not
	}
	if n := hardLinks(info); n > 1 {
		return fmt.Errorf("the ledger %[1]s has %[2]d names (hard links), and SQLite keeps a log beside each: remove the others, which find DIRECTORY -samefile %[1]s finds; firstcome backup makes a copy", path, n)
	}
	return nil
}
