package firstcome_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
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

// TestCodeIsTheFormula computes the first 80 bits another way: as a number in base 32.
func TestCodeIsTheFormula(t *testing.T) {
	s := newSecret(t, key)
	for _, number := range []int64{1, 2, 10, 5_000, 1 << 40} {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte("summer\x00" + strconv.FormatInt(number, 10)))
		bits := new(big.Int).SetBytes(mac.Sum(nil)[:10])
		want := ""
		for range 16 {
			digit := new(big.Int)
			bits.DivMod(bits, big.NewInt(32), digit)
			want = string("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[digit.Int64()]) + want
		}
		if got := s.Code("summer", number); got != want {
			t.Errorf("number %d: got %s, want %s", number, got, want)
		}
	}
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
	if a.Fingerprint() == b.Fingerprint() {
		t.Error("two secrets have one fingerprint")
	}
}

func TestCodeMayBeCalledFromManyGoroutines(t *testing.T) {
	s := newSecret(t, key)
	want := s.Code("c", 7)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				if got := s.Code("c", 7); got != want {
					t.Errorf("got %s, want %s", got, want)
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

func TestANumberIsFoundByItsCode(t *testing.T) {
	s := newSecret(t, key)
	code := s.Code("summer", 4711)
	for _, c := range []struct{ first, last, want int64 }{{1, 5000, 4711}, {4711, 4711, 4711}, {1, 4710, 0}, {4712, 5000, 0}} {
		if got := s.NumberOf("summer", code, c.first, c.last); got != c.want {
			t.Errorf("from %d to %d it is %d, want %d", c.first, c.last, got, c.want)
		}
	}
	if got := s.NumberOf("winter", code, 1, 5000); got != 0 {
		t.Errorf("another campaign has it as %d", got)
	}
}

func TestACodeIsReadAsPeopleTypeIt(t *testing.T) {
	const code = "7ZK2M0Q9X4T1B8RC"
	for _, text := range []string{
		code, strings.ToLower(code), "7ZK2-MOQ9 X4TI-B8RC", "7zk2m0q9x4tlb8rc",
		"７ＺＫ２－Ｍ０Ｑ９　ｘ４ｔ１＿Ｂ８ＲＣ", "7ZK2–M0Q9—X4T1−B8RC", "7ZK2‐M0Q9‑X4T1\u00adB8RC", "7ZK2ーM0Q9·X4T1・B8RC",
		"\ufeff7ZK2M0Q9\u200bX4T1B8RC\u200d\u2060\ufe0f", "“7ZK2M0Q9X4T1B8RC”.", "'7ZK2M0Q9X4T1B8RC'", "„7ZK2M0Q9X4T1B8RC“", "«7ZK2_M0Q9_X4T1_B8RC»",
		"\t7ZK2.M0Q9.X4T1.B8RC\r\n", "`7ZK2\u00a0M0Q9\u202fX4T1\u3164B8RC`…",
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

func BenchmarkNumberOf(b *testing.B) {
	s := newSecret(b, key)
	for b.Loop() {
		s.NumberOf("summer", "0000000000000000", 1_000_000, 2_000_000)
	}
}
