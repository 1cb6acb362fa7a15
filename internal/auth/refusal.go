package auth

import (
	"errors"

	"github.com/golang-jwt/jwt/v5"
)

// A Refusal says why credentials are not good, to whoever sent them: enough to mend what an honest caller
// may have wrong, and nothing of what keys there are. It is an ErrUnauthorized.
type Refusal struct{ Why Why }

// Why is a reason of a Refusal.
type Why int

// The reasons. A token is told expired, or early, only once its signature was found good.
const (
	Missing      Why = iota // there are no credentials, or of another scheme than Bearer
	Many                    // there is more than one Authorization header
	UnknownKey              // no such API key, or it was revoked: which is not said
	NoTokens                // it is no API key, and tokens are not configured
	Expired                 // the token was good
	Early                   // the token will be good
	BadSignature            // or the token has an algorithm that is not allowed
	BadToken                // not a token, or without what it must have
)

func (r *Refusal) Error() string { return ErrUnauthorized.Error() }

// Is tells that a Refusal is an ErrUnauthorized.
func (r *Refusal) Is(target error) bool { return target == ErrUnauthorized }

// Error is for whoever sent the credentials.
func (w Why) Error() string { return reasons[w] }

var reasons = [...]string{
	Missing:      "there is no Authorization header with Bearer",
	Many:         "there is more than one Authorization header",
	UnknownKey:   "the API key is not known, or was revoked",
	NoTokens:     "it is not an API key, and this server takes no tokens",
	Expired:      "the token has expired",
	Early:        "the token is not good yet",
	BadSignature: "the token's signature is not good, or its algorithm is not allowed",
	BadToken:     "the token is not one that this server takes: it needs exp, its user, and where configured iss and aud",
}

// refusal returns what a caller is told of an error of check.
func refusal(err error) *Refusal {
	why := BadToken
	switch {
	case errors.As(err, &why):
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		why = BadSignature
	case errors.Is(err, jwt.ErrTokenExpired):
		why = Expired
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		why = Early
	}
	return &Refusal{why}
}
