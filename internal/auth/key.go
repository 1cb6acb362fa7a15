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

// A key has the form fc_ID_SECRET. Scanners for leaked secrets find it by the prefix. By the id its row is found without a search for a secret.
const (
	keyPrefix   = "fc_"
	keyIDBytes  = 6  // 2⁴⁸ ids: among 10,000 keys two are equal once in millions of ledgers
	secretBytes = 32 // cannot be guessed, so a plain SHA-256 protects it
	maxKeyName  = 100
)

// NewKey returns a new API key, and what the ledger keeps of it. The plain key must be shown once and not stored.
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

// keyID returns the id in a plain key, and whether the text has the form of a key.
func keyID(plain string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(plain, keyPrefix)
	if !ok {
		return "", false
	}
	id, secret, ok := strings.Cut(rest, "_")
	return id, ok && len(id) == 2*keyIDBytes && len(secret) == 2*secretBytes
}
