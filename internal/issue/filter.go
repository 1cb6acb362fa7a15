package issue

import (
	"hash/maphash"

	"github.com/firstcome/firstcome"
)

// A filter reports that a user certainly holds no coupon, or that they may hold one. It is a Bloom filter (Bloom 1970) with 16 bits a holder and 4
// probes: (1 − e^(−4/16))⁴ ≈ 0.24 % of the other users are taken for holders.
type filter struct {
	seed maphash.Seed
	bits []uint64
}

const (
	bitsPerHolder = 16
	probes        = 4
	// minWords is the least size of a filter. In a smaller filter two hashes often have the same first probe and the same step: with one word, one
	// pair in a thousand.
	minWords = 64
)

// newFilter returns a filter of the given users' hashes under seed.
func newFilter(seed maphash.Seed, hashes []uint64) *filter {
	f := &filter{seed: seed, bits: make([]uint64, len(hashes)*bitsPerHolder/64+minWords)}
	for _, h := range hashes {
		for p := range uint64(probes) {
			word, bit := f.bit(h, p)
			f.bits[word] |= bit
		}
	}
	return f
}

// mayHave reports whether the user may hold a coupon.
func (f *filter) mayHave(user firstcome.UserID) bool {
	h := maphash.String(f.seed, string(user))
	for p := range uint64(probes) {
		if word, bit := f.bit(h, p); f.bits[word]&bit == 0 {
			return false
		}
	}
	return true
}

// bit returns the word and the bit of a hash's probe p, by double hashing with the two halves of the hash (Kirsch and Mitzenmacher 2006).
func (f *filter) bit(h, p uint64) (word, bit uint64) {
	n := (h + p*(h>>32|1)) % uint64(len(f.bits)*64)
	return n / 64, 1 << (n % 64)
}
