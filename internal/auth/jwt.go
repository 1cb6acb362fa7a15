package auth

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"github.com/firstcome/firstcome"
)

const (
	// leeway is how much the clocks of the shop's machines may differ.
	leeway = 60 * time.Second
	// maxToken is the length of the longest token, in bytes. With it and its other headers a request stays within the server's 16 KB.
	maxToken = 8 * 1024
	// minRSA is the least length of an RSA key, in bits (RFC 7518 §3.3).
	minRSA = 2048
)

// minSecret returns the least length of an algorithm's secret, in bytes: the length of the hash (RFC 7518 §3.2).
func minSecret(algorithm string) int {
	return map[string]int{"HS256": 32, "HS384": 48, "HS512": 64}[algorithm]
}

// JWTConfig configures which users' tokens are good.
type JWTConfig struct {
	Secret []byte // for HS256, HS384 and HS512; empty allows none of them
	// PublicKey is PEM of an RSA (RS256) or P-256 (ES256) public key or certificate, or a JWK set (RFC 7517) of several. If nil, neither algorithm is
	// allowed.
	PublicKey []byte
	// Again returns the current text of PublicKey. It is nil if the text cannot change.
	Again func() ([]byte, error)
	// Algorithms is the allow-list; empty means all for which there is a key.
	Algorithms []string
	UserClaim  string // holds the user's id; empty means sub
	Issuer     string // if set, a token must have this iss
	Audience   string // if set, a token must have this aud
}

// A JWT checks users' tokens with the latest keys. Make one with NewJWT.
type JWT struct {
	config JWTConfig               // except PublicKey, which look changes
	now    atomic.Pointer[checker] // checks tokens now
}

// A checker checks tokens with fixed keys.
type checker struct {
	text   []byte // of the public keys
	parser *jwt.Parser
	secret []byte
	public []publicKey
	set    bool // the public keys are a set, and a token may name one of them
	claim  string
}

// NewJWT returns a JWT, or all mistakes in the configuration.
func NewJWT(c JWTConfig) (*JWT, error) {
	now, err := newChecker(c)
	if err != nil {
		return nil, err
	}
	j := &JWT{config: c}
	j.now.Store(now)
	return j, nil
}

// look reads the public keys again. If they have changed, it uses the new ones and returns their ids. If they cannot be read, the last ones stay in
// use. Only one call at a time is allowed.
func (j *JWT) look() (changed []string, err error) {
	text, err := j.config.Again()
	if err != nil || bytes.Equal(text, j.now.Load().text) {
		return nil, err
	}
	c := j.config
	c.PublicKey = text
	next, err := newChecker(c)
	if err != nil {
		return nil, err
	}
	j.now.Store(next)
	for _, k := range next.public {
		changed = append(changed, k.algorithm+" "+k.id)
	}
	return changed, nil
}

func newChecker(c JWTConfig) (*checker, error) {
	public, set, err := parsePublicKeys(c.PublicKey)
	errs := []error{err}
	possible := possibleAlgorithms(c.Secret, public)
	if len(c.Secret) > 0 && len(c.Secret) < minSecret("HS256") {
		errs = append(errs, fmt.Errorf("the token secret has %d bytes and needs at least %d (RFC 7518)", len(c.Secret), minSecret("HS256")))
	}
	allowed := c.Algorithms
	if len(allowed) == 0 {
		allowed = possible
	}
	for _, a := range allowed {
		if !slices.Contains(possible, a) {
			errs = append(errs, refuseAlgorithm(a, len(c.Secret)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(allowed) == 0 {
		return nil, errors.New("tokens need a secret or a public key")
	}
	return &checker{text: c.PublicKey, parser: newParser(c, allowed), secret: c.Secret, public: public, set: set, claim: cmp.Or(c.UserClaim, "sub")}, nil
}

func newParser(c JWTConfig, allowed []string) *jwt.Parser {
	options := []jwt.ParserOption{
		jwt.WithValidMethods(allowed),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(leeway),
		jwt.WithJSONNumber(),
		jwt.WithStrictDecoding(),
	}
	if c.Issuer != "" {
		options = append(options, jwt.WithIssuer(c.Issuer))
	}
	if c.Audience != "" {
		options = append(options, jwt.WithAudience(c.Audience))
	}
	return jwt.NewParser(options...)
}

// possibleAlgorithms returns the algorithms for which there is a key.
func possibleAlgorithms(secret []byte, public []publicKey) []string {
	var possible []string
	for _, a := range []string{"HS256", "HS384", "HS512"} {
		if len(secret) >= minSecret(a) {
			possible = append(possible, a)
		}
	}
	for _, k := range public {
		if k.algorithm != "" && !slices.Contains(possible, k.algorithm) {
			possible = append(possible, k.algorithm)
		}
	}
	return possible
}

func refuseAlgorithm(a string, secret int) error {
	switch {
	case minSecret(a) > 0 && secret > 0:
		return fmt.Errorf("%s needs a secret of at least %d bytes (RFC 7518), this one has %d", a, minSecret(a), secret)
	case minSecret(a) > 0:
		return fmt.Errorf("%s needs a token secret", a)
	case a == "RS256" || a == "ES256":
		return fmt.Errorf("%s needs a public key of its kind", a)
	}
	return fmt.Errorf("there is no token algorithm %q: HS256, HS384, HS512, RS256 and ES256 may be allowed", a)
}

// parsePublicKey returns the key in a PEM block and its algorithm, or no key if text is empty.
func parsePublicKey(text []byte) (key any, algorithm string, err error) {
	if len(text) == 0 {
		return nil, "", nil
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, "", errors.New("the tokens' public key is not PEM")
	}
	switch block.Type {
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, "", fmt.Errorf("the tokens' certificate: %w", err)
		}
		key = certificate.PublicKey
	case "PUBLIC KEY":
		if key, err = x509.ParsePKIXPublicKey(block.Bytes); err != nil {
			return nil, "", fmt.Errorf("the tokens' public key: %w", err)
		}
	default:
		return nil, "", fmt.Errorf("the tokens' key is a PEM block of type PUBLIC KEY or CERTIFICATE, not %s", block.Type)
	}
	algorithm, err = algorithmOf(key)
	return key, algorithm, err
}

func algorithmOf(key any) (string, error) {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSA {
			return "", fmt.Errorf("the tokens' RSA key has %d bits and needs %d", k.N.BitLen(), minRSA)
		}
		return "RS256", nil
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return "ES256", nil
		}
	}
	return "", errors.New("the tokens' public key is neither RSA nor on the curve P-256")
}

// user returns the user of a token and when it expires, or why it is not good.
func (j *JWT) user(token string) (u firstcome.UserID, until time.Time, err error) {
	if len(token) > maxToken {
		return "", until, fmt.Errorf("the token has more than %d bytes", maxToken)
	}
	c := j.now.Load()
	claims := jwt.MapClaims{}
	parsed, err := c.parser.ParseWithClaims(token, claims, c.key)
	if err != nil {
		return "", until, err
	}
	// RFC 7515 §4.1.11: a token with a critical header that is not understood must be refused.
	if _, critical := parsed.Header["crit"]; critical {
		return "", until, errors.New("the token has critical headers")
	}
	if err := checkTimes(claims); err != nil {
		return "", until, err
	}
	expires, err := claims.GetExpirationTime()
	if err != nil {
		return "", until, err
	}
	u, err = userOf(claims[c.claim])
	return u, expires.Add(leeway), err
}

// checkTimes refuses a token with a time that is not a number of seconds near ours. The parser turns such a number into a time in the past: a token
// that is not good yet would be good.
func checkTimes(claims jwt.MapClaims) error {
	const most = 1 << 53 // seconds, some 285 million years: JSON numbers are exact so far
	for _, name := range []string{"exp", "nbf", "iat"} {
		number, ok := claims[name].(json.Number)
		if !ok {
			continue // the parser refuses an exp or nbf that is no number, and iat decides nothing
		}
		if at, err := number.Float64(); err != nil || math.Abs(at) > most {
			return fmt.Errorf("the token's %s is not a time", name)
		}
	}
	return nil
}

// key returns the configured keys of the token's algorithm, which the parser has found in the allow-list. If the keys are a set and the token names
// one, key returns only that one.
func (c *checker) key(t *jwt.Token) (any, error) {
	if _, secret := t.Method.(*jwt.SigningMethodHMAC); secret {
		return c.secret, nil
	}
	id, named := t.Header["kid"]
	var fit jwt.VerificationKeySet
	for _, k := range c.public {
		if k.algorithm == t.Method.Alg() && (!c.set || !named || id == k.id) {
			fit.Keys = append(fit.Keys, k.key)
		}
	}
	if len(fit.Keys) == 0 {
		return nil, fmt.Errorf("%w: there is no such key", jwt.ErrTokenSignatureInvalid)
	}
	return fit, nil
}

// userOf returns the user that a claim names: a string, or an integer in canonical form.
func userOf(claim any) (firstcome.UserID, error) {
	switch v := claim.(type) {
	case string:
		// encoding/json replaces malformed text with this character, which would make one user of two.
		if strings.ContainsRune(v, utf8.RuneError) {
			return "", errors.New("the token's user is not well-formed")
		}
		return firstcome.ParseUserID(v)
	case json.Number:
		if isCanonicalInteger(v.String()) {
			return firstcome.ParseUserID(v.String())
		}
	}
	return "", errors.New("the token does not name its user")
}

func isCanonicalInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if s == "0" {
		return true
	}
	return digits != "" && digits[0] != '0' && strings.Trim(digits, "0123456789") == ""
}
