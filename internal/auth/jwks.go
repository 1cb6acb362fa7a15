package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// A publicKey checks tokens of an algorithm.
type publicKey struct {
	id        string // its kid in a set
	key       any    // *rsa.PublicKey or *ecdsa.PublicKey
	algorithm string
}

const (
	// maxKeys is the most keys of a set. A token without a kid is checked with each key of its algorithm.
	maxKeys = 32
	// maxRSA is the greatest length of an RSA key of a set, in bits. A longer key would cost milliseconds for each token.
	maxRSA = 8192
)

// parsePublicKeys returns the keys of a text, which is PEM of one key or a JWK set, and whether it is a set. It returns no keys for nil.
func parsePublicKeys(text []byte) (keys []publicKey, set bool, err error) {
	switch trimmed := bytes.TrimSpace(text); {
	case text == nil:
		return nil, false, nil
	case len(trimmed) == 0:
		return nil, false, errors.New("the file of the tokens' public key is empty")
	case trimmed[0] == '{':
		keys, err = parseSet(trimmed)
		return keys, true, err
	}
	key, algorithm, err := parsePublicKey(text)
	return []publicKey{{key: key, algorithm: algorithm}}, false, err
}

// A jwk has the members of a set's key that are read here (RFC 7517 §4, RFC 7518 §6).
type jwk struct {
	Type       string   `json:"kty"`
	ID         string   `json:"kid"`
	Use        string   `json:"use"`
	Operations []string `json:"key_ops"`
	Algorithm  string   `json:"alg"`
	N, E       string
	Curve      string `json:"crv"`
	X, Y       string
	D, K       string // only in a private key, and in a secret
}

// parseSet parses a JWK set. It ignores keys of a kind or use that tokens here do not have, as RFC 7517 §5 says.
func parseSet(text []byte) ([]publicKey, error) {
	var set struct{ Keys []jwk }
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("the tokens' key set is not a JWK set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the tokens' key set has %d keys, and may have %d", len(set.Keys), maxKeys)
	}
	var keys []publicKey
	for n, k := range set.Keys {
		if k.D != "" || k.K != "" {
			return nil, fmt.Errorf("key %d of the tokens' key set is not public: anyone who reads it can make tokens. Remove it, and no longer sign with it", n+1)
		}
		if !k.verifies() {
			continue
		}
		key, algorithm, err := k.public()
		if err != nil {
			return nil, fmt.Errorf("key %d of the tokens' key set, %q: %w", n+1, k.ID, err)
		}
		if k.ID != "" && slices.ContainsFunc(keys, func(other publicKey) bool { return other.id == k.ID }) {
			return nil, fmt.Errorf("the tokens' key set has two keys %q", k.ID)
		}
		keys = append(keys, publicKey{k.ID, key, algorithm})
	}
	if len(keys) == 0 {
		return nil, errors.New("the tokens' key set has no key for RS256 or ES256")
	}
	return keys, nil
}

// verifies reports whether a key's kind and use are those of tokens' signatures.
func (k *jwk) verifies() bool {
	algorithm := map[string]string{"RSA": "RS256", "EC": "ES256"}[k.Type]
	return algorithm != "" && (k.Algorithm == "" || k.Algorithm == algorithm) && (k.Type != "EC" || k.Curve == "P-256") &&
		(k.Use == "" || k.Use == "sig") && (k.Operations == nil || slices.Contains(k.Operations, "verify"))
}

// public returns the key and its algorithm.
func (k *jwk) public() (key any, algorithm string, err error) {
	if k.Type == "EC" {
		x, errX := integer("x", k.X)
		y, errY := integer("y", k.Y)
		key, err = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
		return key, "ES256", errors.Join(errX, errY, err)
	}
	n, errN := integer("n", k.N)
	e, errE := integer("e", k.E)
	if err := errors.Join(errN, errE); err != nil {
		return nil, "", err
	}
	exponent := new(big.Int).SetBytes(e)
	if exponent.BitLen() > 31 || exponent.Int64() < 3 || exponent.Bit(0) == 0 {
		return nil, "", errors.New("its exponent e is not an odd number from 3 on of at most 31 bits")
	}
	public := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(exponent.Int64())}
	if public.N.BitLen() > maxRSA {
		return nil, "", fmt.Errorf("it has %d bits, and may have %d", public.N.BitLen(), maxRSA)
	}
	algorithm, err = algorithmOf(public)
	return public, algorithm, err
}

// integer decodes a member that is an integer, as bytes.
func integer(name, text string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("its %s is not base64url without padding", name)
	}
	return b, nil
}
