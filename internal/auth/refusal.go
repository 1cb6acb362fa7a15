package auth

import (
	"errors"

	"github.com/golang-jwt/jwt/v5"
)

// A Refusal says why credentials are not good, to who sent them: enough to mend what an honest caller
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

// errors of check that are not the tokens' own.
var (
	errMissing    = errors.New("there is no Authorization header with Bearer")
	errMany       = errors.New("there is more than one Authorization header")
	errUnknownKey = errors.New("there is no such API key, or it was revoked")
	errNoTokens   = errors.New("it is not an API key, and tokens are not configured")
)

// refusal returns what a caller is told of an error of check.
func refusal(err error) *Refusal {
	for _, r := range []struct {
		err error
		why Why
	}{
		{errMissing, Missing},
		{errMany, Many},
		{errUnknownKey, UnknownKey},
		{errNoTokens, NoTokens},
		{jwt.ErrTokenSignatureInvalid, BadSignature},
		{jwt.ErrTokenExpired, Expired},
		{jwt.ErrTokenNotValidYet, Early},
	} {
		if errors.Is(err, r.err) {
			return &Refusal{r.why}
		}
	}
	return &Refusal{BadToken}
}
