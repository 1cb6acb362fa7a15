package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
)

// A key is written fc_ID_SECRET: the prefix lets scanners for leaked secrets find
// it, the id lets its row be found without searching for a secret.
const (
	keyPrefix   = "fc_"
	keyIDBytes  = 6  // 2⁴⁸ ids: two of 10,000 keys are the same once in millions of ledgers
	secretBytes = 32 // more than anybody can guess, so a plain SHA-256 keeps it
	maxKeyName  = 100
)

// NewKey returns a new API key and what the ledger keeps of it. The plain key is
// to be shown once and kept nowhere.
func NewKey(name string, role firstcome.Role) (plain string, key firstcome.Key, err error) {
	if err := checkKeyName(name); err != nil {
		return "", firstcome.Key{}, err
	}
	if _, err := firstcome.ParseRole(string(role)); err != nil {
		return "", firstcome.Key{}, err
	}
	var random [keyIDBytes + secretBytes]byte
	rand.Read(random[:]) // never fails: see its documentation
	id := hex.EncodeToString(random[:keyIDBytes])
	plain = keyPrefix + id + "_" + hex.EncodeToString(random[keyIDBytes:])
	return plain, firstcome.Key{
		ID: id, Name: name, Role: role,
		Hash: sha256.Sum256([]byte(plain)), CreatedAt: time.Now().UTC().Truncate(time.Microsecond),
	}, nil
}

func checkKeyName(name string) error {
	if name == "" || len(name) > maxKeyName {
		return fmt.Errorf("a key's name has 1 to %d bytes", maxKeyName)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return errors.New("a key's name is UTF-8 without control characters")
	}
	return nil
}

// keyID returns the id in a plain key, and whether the text has a key's form.
func keyID(plain string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(plain, keyPrefix)
	if !ok {
		return "", false
	}
	id, secret, ok := strings.Cut(rest, "_")
	return id, ok && len(id) == 2*keyIDBytes && len(secret) == 2*secretBytes
}
