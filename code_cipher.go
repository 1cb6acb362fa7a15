package firstcome

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
)

// A codeCipher encrypts numbers as coupon codes, and decrypts them. It is FF1 of NIST SP 800-38G with AES-256, radix 2 and 80 bits; the tweak is the
// campaign's id. The plain text is the number in its last 53 bits, behind 27 zeros. The names of this file are those of the standard.
//
// With 80 bits the two halves A and B have 40 bits each, so that a round is one block of AES and an addition modulo 2⁴⁰.
type codeCipher struct {
	aes    cipher.Block
	firsts *[MaxCampaignID + 1][aes.BlockSize]byte // see firstBlocks
	state  [aes.BlockSize]byte                     // of the CBC-MAC before the last block of a round's input
	block  [aes.BlockSize]byte
	text   [codeLength]byte
}

const (
	rounds     = 10
	halfBits   = 40
	half       = 1<<halfBits - 1
	numberBits = 53
)

// firstBlocks returns the encryption of the first block of a round's input, by the length of a campaign's id. It depends on nothing else.
func firstBlocks(c cipher.Block) *[MaxCampaignID + 1][aes.BlockSize]byte {
	var firsts [MaxCampaignID + 1][aes.BlockSize]byte
	for length := range firsts {
		firsts[length] = firstBlock(length)
		c.Encrypt(firsts[length][:], firsts[length][:])
	}
	return &firsts
}

// firstBlock returns the block P of the standard, for a tweak of a length.
func firstBlock(length int) [aes.BlockSize]byte {
	return [aes.BlockSize]byte{1, 2, 1, 0, 0, 2, rounds, halfBits, 0, 0, 0, 2 * halfBits, 0, 0, byte(length >> 8), byte(length)}
}

// begin sets the state that all rounds of a tweak begin with. The last block of a round's input ends with the round and with one half, in six bytes;
// the tweak stands before it, and zeros between. No campaign has a longer id than MaxCampaignID, but a damaged ledger or journal may.
func (c *codeCipher) begin(tweak CampaignID) {
	if len(tweak) < len(c.firsts) {
		c.state = c.firsts[len(tweak)]
	} else {
		c.state = firstBlock(len(tweak))
		c.aes.Encrypt(c.state[:], c.state[:])
	}
	at := 0
	for n := range len(tweak) {
		if at == aes.BlockSize {
			c.aes.Encrypt(c.state[:], c.state[:])
			at = 0
		}
		c.state[at] ^= tweak[n]
		at++
	}
	if at > aes.BlockSize-6 {
		c.aes.Encrypt(c.state[:], c.state[:])
	}
}

// round returns the number that round i adds to a half, given the other half.
func (c *codeCipher) round(i uint64, other uint64) uint64 {
	c.block = c.state
	last := c.block[8:]
	binary.BigEndian.PutUint64(last, binary.BigEndian.Uint64(last)^i<<halfBits^other)
	c.aes.Encrypt(c.block[:], c.block[:])
	return binary.BigEndian.Uint64(c.block[4:]) & half // the last 40 of the first 96 bits
}

// encrypt returns the code of a number.
func (c *codeCipher) encrypt(id CampaignID, number uint64) string {
	c.begin(id)
	a, b := number>>halfBits, number&half
	for i := range uint64(rounds) {
		a, b = b, (a+c.round(i, b))&half
	}
	var bits [10]byte
	binary.BigEndian.PutUint64(bits[2:], a<<halfBits|b)
	binary.BigEndian.PutUint16(bits[:], uint16(a>>(64-halfBits)))
	crockford.Encode(c.text[:], bits[:])
	return string(c.text[:])
}

// decrypt returns the number of a code, or 0 if the code is not one of the campaign.
func (c *codeCipher) decrypt(id CampaignID, code string) int64 {
	var bits [10]byte
	if len(code) != codeLength {
		return 0
	}
	copy(c.text[:], code)
	if n, err := crockford.Decode(bits[:], c.text[:]); err != nil || n != len(bits) {
		return 0
	}
	c.begin(id)
	low := binary.BigEndian.Uint64(bits[2:])
	a, b := uint64(binary.BigEndian.Uint16(bits[:]))<<(64-halfBits)|low>>halfBits, low&half
	for i := range uint64(rounds) {
		a, b = (b-c.round(rounds-1-i, a))&half, a
	}
	if a>>(numberBits-halfBits) != 0 {
		return 0
	}
	return int64(a<<halfBits | b)
}
