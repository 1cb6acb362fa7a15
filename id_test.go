package firstcome_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/firstcome/firstcome"
)

func TestCampaignIDs(t *testing.T) {
	for id, good := range map[string]bool{
		"a": true, "0": true, "summer-2026": true, "a-": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "A": false, "a_b": false, "a.b": false, "é": false, "a{b}": false, "a:b": false,
		"a\x00": false, "a\r\n": false, "a b": false, "..": false, strings.Repeat("a", 64): false,
	} {
		if _, err := firstcome.ParseCampaignID(id); (err == nil) != good {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestF28UserIDsAreTakenAsTheyAreOrRefused(t *testing.T) {
	for id, good := range map[string]bool{
		"a": true, " ": true, "user1 ": true, "User1": true, "007": true, "\u00e9": true, "e\u0301": true, "\U0001f39f": true,
		"\u202eabc": true, "{x}:y": true, "=cmd": true, "...": true, strings.Repeat("a", 128): true,
		"": false, ".": false, "..": false, "a\x00b": false, "a\r\nb": false, "\x7f": false, "\u0085": false, "\xff": false,
		"\xed\xa0\x80": false, strings.Repeat("a", 129): false,
	} {
		got, err := firstcome.ParseUserID(id)
		if (err == nil) != good {
			t.Errorf("%q: %v", id, err)
		}
		if err == nil && string(got) != id {
			t.Errorf("%q became %q", id, got)
		}
	}
}

func FuzzF28UserIDsAreTakenAsTheyAreOrRefused(f *testing.F) {
	for _, seed := range []string{"a", "", "..", "\xed\xa0\x80", "e\u0301", "a\u0000", strings.Repeat("\U0001f39f", 33)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := firstcome.ParseUserID(s)
		if err != nil {
			return
		}
		if string(got) != s || len(s) == 0 || len(s) > firstcome.MaxUserID || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			t.Errorf("%q was taken as %q", s, got)
		}
	})
}
