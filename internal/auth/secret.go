package auth

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// Ways to write a secret that is no text.
const (
	inBase64 = "base64:"
	inHex    = "hex:"
)

// ParseSecret returns the secret of tokens that a file or a variable holds: the bytes behind base64: or hex:, otherwise the
// bytes as they are. One line end after a text is an editor's and does not count; bytes that are no text have none.
func ParseSecret(text []byte) ([]byte, error) {
	if utf8.Valid(text) {
		text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	}
	for _, form := range []string{inBase64, inHex} {
		if digits, found := strings.CutPrefix(string(text), form); found {
			secret, err := decode(form, strings.TrimSpace(digits))
			if err != nil {
				return nil, fmt.Errorf("the token secret begins with %s, and cannot be read so", form) // err would quote it
			}
			return secret, nil
		}
	}
	return text, nil
}

// decode reads digits of base64, in each of its alphabets, or of hexadecimal.
func decode(form, digits string) ([]byte, error) {
	if form == inHex {
		return hex.DecodeString(digits)
	}
	digits = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(digits, "="))
	return base64.RawStdEncoding.DecodeString(digits)
}

// misread returns base64: or hex: if a token is signed with what the secret's text means so. Otherwise it returns "". An
// operator who copies a secret from another service often copies it encoded, and each good token is then refused.
func (j *JWT) misread(token string) string {
	secret := j.now.Load().secret
	for _, form := range []string{inHex, inBase64} {
		other, err := decode(form, string(secret))
		if err != nil || len(other) == 0 || len(token) > maxToken {
			continue
		}
		methods := jwt.WithValidMethods([]string{"HS256", "HS384", "HS512"})
		_, err = jwt.NewParser(methods, jwt.WithoutClaimsValidation()).Parse(token, func(*jwt.Token) (any, error) { return other, nil })
		if err == nil {
			return form
		}
	}
	return ""
}
