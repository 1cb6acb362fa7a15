//go:build !unix

package main

import "errors"

// maxOpenFiles returns how many files and connections this process may have open.
func maxOpenFiles() (uint64, error) { return 0, errors.ErrUnsupported }

// freeBytes returns how much a user may still write to a directory's disk.
func freeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }

// syncDirectory does nothing: directories cannot be synced here.
func syncDirectory(string) error { return nil }
