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

// The prefixes of an encoded secret.
const (
	inBase64 = "base64:"
	inHex    = "hex:"
)

// ParseSecret returns the tokens' secret from the content of a file or a variable: the decoded bytes after base64: or hex:, otherwise the bytes as
// they are. One line end after a text is ignored, because editors add it; bytes that are not text keep theirs.
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

// decode decodes base64, in either alphabet, or hexadecimal digits.
func decode(form, digits string) ([]byte, error) {
	if form == inHex {
		return hex.DecodeString(digits)
	}
	digits = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(digits, "="))
	return base64.RawStdEncoding.DecodeString(digits)
}

// misread returns base64: or hex: if a token is signed with the bytes that the secret's text encodes, and "" otherwise. Operators who copy a secret
// from another service often copy it encoded, and then each good token is refused.
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
