//go:build !unix

package main

// syncDirectory does nothing: this system cannot sync directories.
func syncDirectory(string) error { return nil }
