//go:build !linux

package services

import (
	"errors"
	"syscall"
	"time"
)

const (
	sigFreeze = syscall.Signal(0)
	sigThaw   = syscall.Signal(0)
)

// A process is a running server. No server runs on this system: Kind.Start returns an error before it would
// launch one.
type process struct{}

func launch(_, _, _ string, _ []string) (*process, error) { return nil, errors.ErrUnsupported }

func attributes(string) (*syscall.SysProcAttr, error) { return nil, errors.ErrUnsupported }

func give(_, _ string) error { return errors.ErrUnsupported }

// CPU needs Linux.
func (*Server) CPU() (time.Duration, error) { return 0, errors.ErrUnsupported }

func removeSharedMemory(int) error { return errors.ErrUnsupported }

func (*process) end(bool) error                          { return errors.ErrUnsupported }
func (*process) signal(syscall.Signal) error             { return errors.ErrUnsupported }
func (*process) signalAll(syscall.Signal) ([]int, error) { return nil, errors.ErrUnsupported }
func allEnded([]int) bool                                { return true }
func (*process) ended() bool                             { return true }
func (*process) stopped() bool                           { return true }
