package firstcome_test

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
)

func newSecret(t testing.TB, key string) firstcome.Secret {
	t.Helper()
	s, err := firstcome.NewSecret([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const key = "0123456789abcdef0123456789abcdef"

// TestACodeIsFF1OfTheNumber encrypts numbers of random campaigns with the general algorithm, too. Some ids are longer than a campaign's may be.
func TestACodeIsFF1OfTheNumber(t *testing.T) {
	s, random := newSecret(t, key), seed.Rand(t)
	block, err := aes.NewCipher(s.Key("coupon codes"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		id := make([]byte, random.IntN(firstcome.MaxCampaignID+20))
		for n := range id {
			id[n] = "abcxyz0189-"[random.IntN(10+min(n, 1))]
		}
		number := random.Int64N(1 << (1 + random.IntN(53)))
		plain := make([]uint16, 80)
		for n := range 64 {
			plain[79-n] = uint16(uint64(number) >> n & 1)
		}
		bits := ff1(block, 2, id, plain)
		want := ""
		for n := 0; n < 80; n += 5 {
			want += string("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[bits[n]<<4|bits[n+1]<<3|bits[n+2]<<2|bits[n+3]<<1|bits[n+4]])
		}
		got := s.Code(firstcome.CampaignID(id), number)
		if got != want {
			t.Fatalf("%s, number %d: got %s, want %s", id, number, got, want)
		}
		if back := s.NumberOf(firstcome.CampaignID(id), got); back != number {
			t.Fatalf("%s: %s is number %d instead of %d", id, got, back, number)
		}
	}
}

// TestTheGeneralFF1IsThatOfNIST has the samples of https://csrc.nist.gov/CSRC/media/Projects/Cryptographic-Standards-and-Guidelines/documents/examples/FF1samples.pdf.
func TestTheGeneralFF1IsThatOfNIST(t *testing.T) {
	const key = "2b7e151628aed2a6abf7158809cf4f3cef4359d8d580aa4f7f036d6f04fc6a94"
	for _, sample := range []struct {
		bits                int
		radix               int64
		tweak, plain, coded string
	}{
		{128, 10, "", "0123456789", "2433477484"},
		{128, 10, "39383736353433323130", "0123456789", "6124200773"},
		{128, 36, "3737373770717273373737", "0123456789abcdefghi", "a9tv40mll9kdu509eum"},
		{192, 10, "", "0123456789", "2830668132"},
		{192, 10, "39383736353433323130", "0123456789", "2496655549"},
		{192, 36, "3737373770717273373737", "0123456789abcdefghi", "xbj3kv35jrawxv32ysr"},
		{256, 10, "", "0123456789", "6657667009"},
		{256, 10, "39383736353433323130", "0123456789", "1001623463"},
		{256, 36, "3737373770717273373737", "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"},
	} {
		const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
		all, err := hex.DecodeString(key)
		tweak, err2 := hex.DecodeString(sample.tweak)
		block, err3 := aes.NewCipher(all[:sample.bits/8])
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		var plain []uint16
		for _, c := range sample.plain {
			plain = append(plain, uint16(strings.IndexRune(digits, c)))
		}
		coded := ""
		for _, d := range ff1(block, sample.radix, tweak, plain) {
			coded += digits[d : d+1]
		}
		if coded != sample.coded {
			t.Errorf("AES-%d, radix %d, tweak %q: %s instead of %s", sample.bits, sample.radix, sample.tweak, coded, sample.coded)
		}
	}
}

// ff1 is FF1.Encrypt of NIST SP 800-38G (algorithm 7) for any radix and length, step by step.
func ff1(block cipher.Block, radix int64, tweak []byte, plain []uint16) []uint16 {
	n, t := len(plain), len(tweak)
	u := n / 2
	v := n - u
	a, b := plain[:u], plain[u:]
	r := big.NewInt(radix)
	power := func(m int) *big.Int { return new(big.Int).Exp(r, big.NewInt(int64(m)), nil) }
	num := func(digits []uint16) *big.Int {
		x := new(big.Int)
		for _, d := range digits {
			x.Add(x.Mul(x, r), big.NewInt(int64(d)))
		}
		return x
	}
	str := func(x *big.Int, m int) []uint16 {
		digits := make([]uint16, m)
		for n := range digits {
			digit := new(big.Int)
			x.DivMod(x, r, digit)
			digits[m-1-n] = uint16(digit.Int64())
		}
		return digits
	}
	wide := (new(big.Int).Sub(power(v), big.NewInt(1)).BitLen() + 7) / 8 // b of the standard
	d := 4*((wide+3)/4) + 4
	p := []byte{1, 2, 1, byte(radix >> 16), byte(radix >> 8), byte(radix), 10, byte(u), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), byte(t >> 24), byte(t >> 16), byte(t >> 8), byte(t)}
	for i := range 10 {
		q := append([]byte{}, tweak...)
		q = append(q, make([]byte, ((-t-wide-1)%16+16)%16)...)
		q = append(q, byte(i))
		q = append(q, num(b).FillBytes(make([]byte, wide))...)
		mac := make([]byte, 16)
		for text := append(append([]byte{}, p...), q...); len(text) > 0; text = text[16:] {
			for n := range mac {
				mac[n] ^= text[n]
			}
			block.Encrypt(mac, mac)
		}
		s := append([]byte{}, mac...)
		for j := 1; len(s) < d; j++ {
			one := new(big.Int).Xor(new(big.Int).SetBytes(mac), big.NewInt(int64(j))).FillBytes(make([]byte, 16))
			block.Encrypt(one, one)
			s = append(s, one...)
		}
		y := new(big.Int).SetBytes(s[:d])
		m := v
		if i%2 == 0 {
			m = u
		}
		c := y.Add(y, num(a))
		a, b = b, str(c.Mod(c, power(m)), m)
	}
	return append(append([]uint16{}, a...), b...)
}

func TestCodesDifferByCampaignNumberAndSecret(t *testing.T) {
	a, b := newSecret(t, key), newSecret(t, key+"x")
	seen := map[string]bool{}
	for _, code := range []string{a.Code("c", 1), a.Code("c", 11), a.Code("c1", 1), b.Code("c", 1)} {
		if seen[code] || len(code) != 16 || strings.ContainsAny(code, "ILOU") {
			t.Errorf("the code %q comes twice or is malformed", code)
		}
		seen[code] = true
	}
	if a.Fingerprint() == b.Fingerprint() || a.Fingerprint() == a.EarlierFingerprint() || a.EarlierFingerprint() == b.EarlierFingerprint() {
		t.Error("two fingerprints are the same")
	}
}

// TestCodeMayBeCalledFromManyGoroutines that make codes of different campaigns, for long enough that they run side by side.
func TestCodeMayBeCalledFromManyGoroutines(t *testing.T) {
	s := newSecret(t, key)
	var all sync.WaitGroup
	for n := range 8 {
		id := firstcome.CampaignID(strconv.Itoa(n))
		want := s.Code(id, 7)
		all.Go(func() {
			for range 50_000 {
				if got := s.Code(id, 7); got != want || s.NumberOf(id, want) != 7 {
					t.Errorf("got %s, want %s, and number %d of it", got, want, s.NumberOf(id, want))
					return
				}
			}
		})
	}
	all.Wait()
}

func TestASecretIsLong(t *testing.T) {
	if _, err := firstcome.NewSecret([]byte(key)[:31]); err == nil {
		t.Error("31 bytes were taken")
	}
}

// byChance is more of 100,000 codes than have a number by chance. One in 2²⁷ has: more than three in so many never come up.
const byChance = 3

func TestACodeOfEachOfManyCampaignsIsFound(t *testing.T) {
	s, random, others := newSecret(t, key), seed.Rand(t), 0
	for n := range 1000 {
		id, number := firstcome.CampaignID(strconv.Itoa(n)), 1+random.Int64N(firstcome.MaxQuantity)
		code := s.Code(id, number)
		if got := s.NumberOf(id, code); got != number {
			t.Fatalf("%s of %s is number %d instead of %d", code, id, got, number)
		}
		for other := range 100 {
			if other != n && s.NumberOf(firstcome.CampaignID(strconv.Itoa(other)), code) != 0 {
				others++
			}
		}
	}
	if others > byChance {
		t.Errorf("%d codes are those of other campaigns, too", others)
	}
}

func TestRandomCodesHaveNoNumber(t *testing.T) {
	s, random, found := newSecret(t, key), seed.Rand(t), 0
	for range 100_000 {
		code := make([]byte, 16)
		for n := range code {
			code[n] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[random.IntN(32)]
		}
		if s.NumberOf("summer", string(code)) != 0 {
			found++
		}
	}
	if found > byChance {
		t.Errorf("%d of them have one", found)
	}
}

func TestWhatIsNoCodeHasNoNumber(t *testing.T) {
	s := newSecret(t, key)
	code := s.Code("summer", 4711)
	for _, text := range []string{"", code[1:], code + "0", "U" + code[1:], strings.ToLower(code), strings.Repeat("\n", 16), "한국한국한1"} {
		if got := s.NumberOf("summer", text); got != 0 {
			t.Errorf("%q is number %d", text, got)
		}
	}
}

func TestACodeAllocatesItsStringOnly(t *testing.T) {
	s := newSecret(t, key)
	if got := testing.AllocsPerRun(1000, func() { sink = s.Code("summer-2026", 4711) }); got > 1 {
		t.Errorf("it allocates %v times", got)
	}
	code := s.Code("summer-2026", 4711)
	if got := testing.AllocsPerRun(1000, func() { _ = s.NumberOf("summer-2026", code) }); got > 0 {
		t.Errorf("reading it back allocates %v times", got)
	}
}

var sink string

func TestACodeIsReadAsPeopleTypeIt(t *testing.T) {
	const code = "7ZK2M0Q9X4T1B8RC"
	for _, text := range []string{
		code, strings.ToLower(code), "7ZK2-MOQ9 X4TI-B8RC", "7zk2m0q9x4tlb8rc",
		"７ＺＫ２－Ｍ０Ｑ９　ｘ４ｔ１＿Ｂ８ＲＣ", "7ZK2–M0Q9—X4T1−B8RC", "7ZK2‐M0Q9‑X4T1\u00adB8RC", "7ZK2ーM0Q9·X4T1・B8RC",
		"\ufeff7ZK2M0Q9\u200bX4T1B8RC\u200d\u2060\ufe0f", "“7ZK2M0Q9X4T1B8RC”.", "'7ZK2M0Q9X4T1B8RC'", "„7ZK2M0Q9X4T1B8RC“", "«7ZK2_M0Q9_X4T1_B8RC»",
		"\t7ZK2.M0Q9.X4T1.B8RC\r\n", "`7ZK2\u00a0M0Q9\u202fX4T1\u3164B8RC`…", code + ",", code + "，", code + "、",
	} {
		if got, err := firstcome.ParseCode(text); got != code || err != nil {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", code[1:], code + "7", "UZK2M0Q9X4T1B8RC", "한국한국한1", "7ZK2M0Q9X4T1B8R\x00", code + "\x00", code + "é", "𝟕ZK2M0Q9X4T1B8RC", "(" + code + ")", code + "\xff", "-"} {
		if got, err := firstcome.ParseCode(text); err == nil {
			t.Errorf("%q is %q", text, got)
		}
	}
}

func BenchmarkCode(b *testing.B) {
	s := newSecret(b, key)
	b.ReportAllocs()
	for b.Loop() {
		sink = s.Code("summer-2026", 1_234_567)
	}
}

func BenchmarkNumberOf(b *testing.B) {
	s := newSecret(b, key)
	code := s.Code("summer-2026", 1_234_567)
	for b.Loop() {
		s.NumberOf("summer-2026", code)
	}
}
