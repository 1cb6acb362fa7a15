package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// readLedger opens the ledger, also while a node serves it, and calls read.
func readLedger(ctx context.Context, path string, read func(*ledger.Ledger) error) error {
	return readOpened(ctx, path, ledger.OpenShared, read)
}

// readOpened is like readLedger, but opens the ledger with open.
func readOpened(ctx context.Context, path string, open func(context.Context, string) (*ledger.Ledger, error), read func(*ledger.Ledger) error) error {
	if err := mustExist(path); err != nil {
		return err
	}
	l, err := open(ctx, path)
	if err != nil {
		return err
	}
	return errors.Join(read(l), l.Close())
}

// mustExist returns a usageError if there is no ledger.
func mustExist(path string) error {
	if _, err := os.Stat(path); err != nil && !sqldb.OnServer(path) {
		return usageError{fmt.Errorf("there is no ledger: %w. Name it with --ledger sqlite:FILE", err)}
	}
	return nil
}

// writeLedger opens the ledger, also while a node serves it, and calls write. It creates the ledger if there is none.
func writeLedger(ctx context.Context, path string, write func(*ledger.Ledger) error) error {
	l, err := openToWrite(ctx, path)
	if err != nil {
		return err
	}
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- l.Run(writing) }()
	err = write(l)
	stop()
	return errors.Join(err, <-ended, l.Close())
}

func openToWrite(ctx context.Context, path string) (*ledger.Ledger, error) {
	if sqldb.OnServer(path) {
		return ledger.Open(ctx, path, ledger.Options{Secret: noSecret()})
	}
	if size(path) == 0 {
		if err := makeLedger(ctx, path, "creating it"); err != nil {
			return nil, err
		}
	}
	return ledger.OpenShared(ctx, path)
}

// makeLedger creates the ledger if there is none, and migrates it.
func makeLedger(ctx context.Context, path, owner string) error {
	if err := makePrivate(path); err != nil {
		return err
	}
	l, err := ledger.Open(ctx, path, ledger.Options{Owner: owner, Secret: noSecret()})
	if err != nil {
		return err
	}
	return l.Close()
}

// makePrivate creates the ledger's file, empty, if there is none. Only its owner can read the coupon codes in it. SQLite gives the files beside it the
// same mode. A ledger on a server has no file.
func makePrivate(path string) error {
	if sqldb.OnServer(path) {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the ledger: %w", err)
	}
	return f.Close()
}
