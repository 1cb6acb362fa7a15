// Package codes seals codes that other systems made, and compares them without showing them.
package codes

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"strconv"

	"github.com/firstcome/firstcome"
)

// A Box seals codes with AES-256-GCM under a key that follows from the code secret, and computes their HMACs. Its methods may be called from many
// goroutines.
type Box struct {
	aead cipher.AEAD
	mac  []byte // the key of the HMACs
}

// NewBox returns the box of a secret.
func NewBox(s firstcome.Secret) *Box {
	block, err := aes.NewCipher(s.Key("imported codes"))
	var aead cipher.AEAD
	if err == nil {
		aead, err = cipher.NewGCMWithRandomNonce(block)
	}
	if err != nil {
		panic(err) // only a key of another length is an error
	}
	return &Box{aead: aead, mac: s.Key("HMACs of imported codes")}
}

// An At is where a code is: in a prize's list of a campaign. Entries count from 1.
type At struct {
	Campaign firstcome.CampaignID
	Prize    firstcome.PrizeID
	Entry    int64
}

// bound returns what a sealed code is bound to, so that it cannot be moved to another entry. Ids have no slash.
func (a At) bound() []byte {
	return []byte(string(a.Campaign) + "/" + string(a.Prize) + "/" + strconv.FormatInt(a.Entry, 10))
}

// Seal seals a code for its entry, with a random nonce.
func (b *Box) Seal(at At, code string) []byte {
	return b.aead.Seal(nil, nil, []byte(code), at.bound())
}

// ErrDamaged means that a sealed code cannot be opened: it is damaged, of another entry, or was sealed with another secret.
var ErrDamaged = errors.New("a sealed code is damaged, is another entry's, or was sealed with another secret")

// Open returns the code that Seal sealed for an entry.
func (b *Box) Open(at At, sealed []byte) (string, error) {
	code, err := b.aead.Open(nil, nil, sealed, at.bound())
	if err != nil {
		return "", ErrDamaged
	}
	return string(code), nil
}

// MACSize is the length of a MAC in bytes.
const MACSize = sha256.Size

// MAC returns the HMAC-SHA-256 of a code. It is the same wherever the code is, so it finds codes that are there twice.
func (b *Box) MAC(code string) []byte {
	m := hmac.New(sha256.New, b.mac)
	m.Write([]byte(code))
	return m.Sum(nil)
}

// A Digest is that of a list: SHA-256 over the digest of the entries before and the next MAC. The digest of no entry is zero.
type Digest [sha256.Size]byte

// Add adds the next entry's MAC.
func (d *Digest) Add(mac []byte) { *d = sha256.Sum256(append(d[:], mac...)) }
