package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/internal/trust"
)

// secretText returns the code secret's text from the environment or from a file: file, or, if that is empty, the file beside the ledger. It returns
// nil if there is no secret yet.
func secretText(t terminal, file, ledgerPath string) ([]byte, error) {
	value, beside := t.variable(secretVariable), file == ""
	switch {
	case value != "" && file != "":
		return nil, errors.New("FIRSTCOME_SECRET and --secret-file are both set: which secret is meant? Unset one")
	case value != "":
		return []byte(value), nil
	case beside && (ledgerPath == "" || sqldb.OnServer(ledgerPath)):
		return nil, nil
	case beside:
		file = secretBeside(ledgerPath)
	}
	text, err := trust.ReadFile(file)
	switch {
	case beside && errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the code secret: %w", err)
	}
	return text, nil
}

// secretBeside returns the name of the file for the secret that the first start creates.
func secretBeside(ledgerPath string) string { return ledgerPath + ".secret" }

// parseSecret reads a secret: hexadecimal digits, or any other text as it is. It drops blanks around the text, such as an editor's last line end.
func parseSecret(text []byte) (firstcome.Secret, error) {
	text = bytes.TrimSpace(text)
	if key, err := hex.DecodeString(string(text)); err == nil {
		return firstcome.NewSecret(key)
	}
	return firstcome.NewSecret(text)
}

// newSecretText returns a new secret in the format of its file.
func newSecretText() []byte {
	key := make([]byte, firstcome.MinSecret)
	rand.Read(key) // never fails: see its documentation
	return append([]byte(hex.EncodeToString(key)), '\n')
}

// errNoSecret means that a node of a ledger on a server has no secret. It must not create one, because other nodes would not have it.
var errNoSecret = errors.New("the nodes of a ledger on a server share one secret of the coupon codes: give each node the same FIRSTCOME_SECRET or --secret-file; openssl rand -hex 32 creates a secret")

// openLedger opens the ledger for this process with its secret. The first start creates the secret and keeps it beside the ledger. A ledger with
// campaigns never gets a new secret, because none of the campaigns could be decided with it.
func openLedger(ctx context.Context, path string, o ledger.Options, text []byte) (l *ledger.Ledger, secret firstcome.Secret, err error) {
	fresh := text == nil
	if fresh && sqldb.OnServer(path) {
		return nil, secret, usageError{errNoSecret}
	}
	if fresh {
		text = newSecretText()
	}
	if secret, err = parseSecret(text); err != nil {
		return nil, secret, usageError{err}
	}
	if err := makePrivate(path); err != nil {
		return nil, secret, err
	}
	o.Secret = secret
	l, err = ledger.Open(ctx, path, o)
	if err != nil || !fresh {
		return l, secret, err
	}
	if err := keepSecret(ctx, l, path, text); err != nil {
		return nil, secret, errors.Join(err, l.Close())
	}
	return l, secret, nil
}

// keepSecret keeps a new secret beside a ledger that has no campaigns yet. It creates the whole file or nothing. Only its owner can read it, and it is
// on disk before a coupon code is made with the secret. The caller has the ledger's lock, so no other process writes a secret.
func keepSecret(ctx context.Context, l *ledger.Ledger, path string, text []byte) error {
	campaigns, err := l.Reads.Campaigns(ctx, "", 1)
	if err != nil {
		return err
	}
	file := secretBeside(path)
	if len(campaigns) > 0 {
		return usageError{fmt.Errorf("the ledger %s has campaigns, but the secret of their coupon codes is missing: restore %s, or name the secret with FIRSTCOME_SECRET or --secret-file", path, file)}
	}
	err = wholeFile(file, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the code secret: %w", err)
	}
	return nil
}
