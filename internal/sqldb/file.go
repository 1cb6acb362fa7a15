package sqldb

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxLinks bounds the length of a chain of symbolic links, with Linux's own limit.
const maxLinks = 40

// File returns the file that a path leads to through symbolic links, even if there is no such file yet. A
// ledger's lock, log and secret lie beside that file. So they are the same by whatever name the ledger is
// opened. A path that cannot be followed is returned as it is: opening it will say why.
func File(path string) string {
	followed := path
	for range maxLinks {
		if file, err := filepath.EvalSymlinks(followed); err == nil {
			return file
		}
		// The last link may lead to a file that SQLite has yet to create.
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

// checkNames returns an error that says what to do if the file has several names. SQLite keeps a log beside
// each name, and a process that opens the file by another name does not see the lock.
func checkNames(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // there is no file yet, or opening it will say what is wrong
	}
	if n := hardLinks(info); n > 1 {
		return fmt.Errorf("the ledger %[1]s has %[2]d names (hard links), and SQLite keeps a log beside each: remove the others, which find DIRECTORY -samefile %[1]s finds; firstcome backup makes a copy", path, n)
	}
	return nil
}
