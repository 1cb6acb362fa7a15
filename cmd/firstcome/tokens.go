package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/firstcome/firstcome/internal/auth"
)

// hasTokens reports whether users' tokens are configured.
func (c *tokenFlags) hasTokens(t terminal) bool {
	return c.JWTSecretFile != "" || c.JWTPublicKey != "" || t.variable(jwtSecretVariable) != ""
}

// jwt returns the verifier of users' tokens, or nil if none are configured.
func (c *tokenFlags) jwt(t terminal) (*auth.JWT, error) {
	if !c.hasTokens(t) {
		return nil, c.refuseOrphans()
	}
	text := []byte(t.variable(jwtSecretVariable))
	config := auth.JWTConfig{
		Algorithms: c.JWTAlgorithms,
		UserClaim:  c.JWTUserClaim, Issuer: c.JWTIssuer, Audience: c.JWTAudience,
	}
	var errs []error
	if c.JWTSecretFile != "" {
		if len(text) > 0 {
			errs = append(errs, errors.New("FIRSTCOME_JWT_SECRET and --jwt-secret-file are both set: which secret is meant? Unset one"))
		}
		var err error
		text, err = os.ReadFile(c.JWTSecretFile)
		errs = append(errs, err)
	}
	var err error
	config.Secret, err = auth.ParseSecret(text)
	errs = append(errs, err)
	if c.JWTPublicKey != "" {
		text, err := readPublicKeys(c.JWTPublicKey)
		errs = append(errs, err)
		config.PublicKey = text
		if file, err := os.Stat(c.JWTPublicKey); err == nil && file.Mode().IsRegular() { // a pipe is read once
			config.Again = func() ([]byte, error) { return readPublicKeys(c.JWTPublicKey) }
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return auth.NewJWT(config)
}

// maxPublicKeys limits the size in bytes of the file with the tokens' public keys, which is read every second. A set of 32 keys with their certificates
// has a tenth of it.
const maxPublicKeys = 1 << 20

func readPublicKeys(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPublicKeys+1))
	if err == nil && len(text) > maxPublicKeys {
		err = fmt.Errorf("%s has more than %d bytes: is it the tokens' public keys?", file, maxPublicKeys)
	}
	return text, err
}

// refuseOrphans refuses settings of tokens if no tokens are configured: an
// operator who requires an issuer believes that tokens are checked.
func (c *tokenFlags) refuseOrphans() error {
	var errs []error
	for flag, set := range map[string]bool{
		"--jwt-algorithms": len(c.JWTAlgorithms) > 0,
		"--jwt-issuer":     c.JWTIssuer != "",
		"--jwt-audience":   c.JWTAudience != "",
	} {
		if set {
			errs = append(errs, fmt.Errorf("%s: without a key no token is valid: name a key with --jwt-public-key, --jwt-secret-file or FIRSTCOME_JWT_SECRET", flag))
		}
	}
	return errors.Join(errs...)
}
