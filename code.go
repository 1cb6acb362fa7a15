package firstcome

import (
	"crypto/aes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"hash"
	"strings"
	"sync"
	"unicode"
)

// A Secret makes coupon codes and reads them back. All nodes of a deployment have the same secret. Its methods may be called from many goroutines.
type Secret struct {
	macs    *sync.Pool // of hash.Hash
	ciphers *sync.Pool // of *codeCipher
}

// MinSecret is the length of the shortest secret, in bytes: the length of the hash that it keys. RFC 2104 advises against less.
const MinSecret = 32

// NewSecret returns the secret with the given key of at least MinSecret bytes.
func NewSecret(key []byte) (Secret, error) {
	if len(key) < MinSecret {
		return Secret{}, errors.New("the code secret has at least 32 bytes: make one with openssl rand -hex 32")
	}
	key = append([]byte(nil), key...)
	s := Secret{macs: &sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
	aes256, err := aes.NewCipher(s.Key("coupon codes"))
	if err != nil {
		return Secret{}, err
	}
	firsts := firstBlocks(aes256)
	s.ciphers = &sync.Pool{New: func() any { return &codeCipher{aes: aes256, firsts: firsts} }}
	return s, nil
}

// mac returns the HMAC-SHA-256 of a text.
func (s Secret) mac(text string) []byte {
	m := s.macs.Get().(hash.Hash)
	defer s.macs.Put(m)
	m.Reset()
	m.Write([]byte(text))
	return m.Sum(nil)
}

// Code returns the coupon code of a campaign's number: its encryption, in 16 characters of Crockford's base 32. It cannot be guessed, is the same on
// every node, and is known as soon as the number is. See codeCipher.
func (s Secret) Code(id CampaignID, number int64) string {
	c := s.ciphers.Get().(*codeCipher)
	defer s.ciphers.Put(c)
	return c.encrypt(id, uint64(number))
}

// NumberOf returns the number that a code of a campaign has, or 0 if it is no code of the campaign. One in 134 million (2²⁷) other texts of 16
// characters has a number, too, so only a coupon that is stored with the code proves that the code is genuine.
func (s Secret) NumberOf(id CampaignID, code string) int64 {
	c := s.ciphers.Get().(*codeCipher)
	defer s.ciphers.Put(c)
	return c.decrypt(id, code)
}

// Fingerprint identifies a secret without revealing it: 80 bits of the HMAC of a fixed text, in hexadecimal digits.
func (s Secret) Fingerprint() string {
	return hex.EncodeToString(s.mac("firstcome secret fingerprint, codes by FF1")[:10])
}

// EarlierFingerprint returns the fingerprint that the secret had before codes were encrypted numbers. A campaign with it has other codes, so no node
// decides it, and no code of it is read.
func (s Secret) EarlierFingerprint() string {
	return hex.EncodeToString(s.mac("firstcome secret fingerprint")[:10])
}

// Key returns a key of 32 bytes for a purpose, the same on every node: the HMAC-SHA-256 of a text that no fingerprint is made of.
func (s Secret) Key(purpose string) []byte { return s.mac("firstcome key\x00" + purpose) }

// crockford is Douglas Crockford's base 32: no I, L, O or U.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// ParseCode returns the canonical form of a coupon code that a person typed or pasted: perhaps in lower case or full width, with O for 0, with I or
// L for 1. Dashes, spaces, quotes, dots, commas, underscores and invisible characters do not count.
func ParseCode(text string) (string, error) {
	code := strings.Map(codeRune, text)
	if _, err := crockford.DecodeString(code); err != nil || len(code) != codeLength {
		return "", errors.New("a coupon code has 16 letters and digits, without U")
	}
	return code, nil
}

const codeLength = 16

// codeRune returns the character of a code for one that was typed, or a negative number for one that does not count. Others stay, and are refused.
func codeRune(r rune) rune {
	if r >= '！' && r <= '～' {
		r -= '！' - '!' // full width
	}
	switch r = unicode.ToUpper(r); {
	case r == 'O':
		return '0'
	case r == 'I', r == 'L':
		return '1'
	case unicode.In(r, unicode.Pd, unicode.Pc, unicode.Pi, unicode.Pf, unicode.Z, unicode.Cf), unicode.IsSpace(r), strings.ContainsRune(besideCode, r):
		return -1
	}
	return r
}

// besideCode has the dashes, quotes, dots, commas and invisible characters that are in no class of their kind.
const besideCode = "−⁃ーｰ" + "'\"`´′″‚„" + ".·•․…。｡・･,、､" + "͏ᅟᅠㅤﾠ︎️"
