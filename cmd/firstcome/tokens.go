package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/trust"
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
		text, err = trust.ReadFile(c.JWTSecretFile)
		errs = append(errs, err)
	}
	var err error
	config.Secret, err = auth.ParseSecret(text)
	errs = append(errs, err)
	if c.JWTPublicKey != "" {
		text, err := trust.ReadFile(c.JWTPublicKey)
		errs = append(errs, err)
		config.PublicKey = text
		if file, err := os.Stat(c.JWTPublicKey); err == nil && file.Mode().IsRegular() { // a pipe is read once
			config.Again = trust.Again(c.JWTPublicKey)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return auth.NewJWT(config)
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
