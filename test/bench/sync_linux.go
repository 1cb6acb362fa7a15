package main

import (
	"os"
	"syscall"
)

// syncData has what was written to a file on the disk, without its times.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
