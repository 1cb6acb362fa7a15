//go:build !unix

package main

// syncDirectory does nothing: directories cannot be synced here.
func syncDirectory(string) error { return nil }
