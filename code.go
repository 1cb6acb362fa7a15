package firstcome

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"hash"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// A Secret derives coupon codes. All nodes of a deployment have the same secret. Its methods may be called from many goroutines.
type Secret struct{ macs *sync.Pool }

// MinSecret is the length of the shortest secret, in bytes: the length of the hash that it keys. RFC 2104 advises against less.
const MinSecret = 32

// NewSecret returns the secret with the given key of at least MinSecret bytes.
func NewSecret(key []byte) (Secret, error) {
	if len(key) < MinSecret {
		return Secret{}, errors.New("the code secret has at least 32 bytes: make one with openssl rand -hex 32")
	}
	key = append([]byte(nil), key...)
	return Secret{macs: &sync.Pool{New: func() any {
		return &mac{Hash: hmac.New(sha256.New, key)}
	}}}, nil
}

// A mac is a keyed hash with buffers for its input and its sum.
type mac struct {
	hash.Hash
	input []byte
	sum   [sha256.Size]byte
}

// sum80 returns the first 80 bits of the HMAC-SHA-256 of input.
func (m *mac) sum80(input []byte) []byte {
	m.Reset()
	m.Write(input)
	return m.Sum(m.sum[:0])[:10]
}

// Code returns the coupon code of a campaign's number: the first 80 bits of
// HMAC-SHA-256(secret, campaign id ‖ 0x00 ‖ number in decimal digits) in 16
// characters of Crockford's base 32. It cannot be guessed, is the same on every
// node, and is known as soon as the number is.
func (s Secret) Code(id CampaignID, number int64) string {
	m := s.macs.Get().(*mac)
	defer s.macs.Put(m)
	m.input = append(append(m.input[:0], id...), 0)
	m.input = strconv.AppendInt(m.input, number, 10)
	return crockford.EncodeToString(m.sum80(m.input))
}

// Fingerprint identifies a secret without revealing it: 80 bits of the HMAC of a fixed text, in hexadecimal digits.
func (s Secret) Fingerprint() string {
	m := s.macs.Get().(*mac)
	defer s.macs.Put(m)
	return hex.EncodeToString(m.sum80([]byte("firstcome secret fingerprint")))
}

// Key returns a key of 32 bytes for a purpose, the same on every node: the HMAC-SHA-256 of a text that can be no input of Code or Fingerprint,
// because it has a space and a campaign's id has none.
func (s Secret) Key(purpose string) []byte {
	m := s.macs.Get().(*mac)
	defer s.macs.Put(m)
	m.Reset()
	m.Write([]byte("firstcome key\x00" + purpose))
	return m.Sum(nil)
}

// crockford is Douglas Crockford's base 32: no I, L, O or U.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// ParseCode returns the canonical form of a coupon code that a person typed or pasted: perhaps in lower case or full width, with O for 0, with I or
// L for 1. Dashes, spaces, quotes, dots, underscores and invisible characters do not count.
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

// besideCode has the dashes, quotes, dots and invisible characters that are in no class of their kind.
const besideCode = "−⁃ーｰ" + "'\"`´′″‚„" + ".·•․…。｡・･" + "͏ᅟᅠㅤﾠ︎️"

// NumberOf returns the number of a campaign, from first to last, that has a code, or 0 if none has. A code does not reveal its number, so each is
// tried: some 5 million a second.
func (s Secret) NumberOf(id CampaignID, code string, first, last int64) int64 {
	want, err := crockford.DecodeString(code)
	if err != nil {
		return 0
	}
	m := s.macs.Get().(*mac)
	defer s.macs.Put(m)
	m.input = append(append(m.input[:0], id...), 0)
	for number := first; number <= last; number++ {
		if bytes.Equal(m.sum80(strconv.AppendInt(m.input, number, 10)), want) {
			return number
		}
	}
	return 0
}
