package auth

import (
	"errors"

	"github.com/golang-jwt/jwt/v5"
)

// A Refusal tells the sender of credentials why they are not good: enough to correct an honest mistake, and nothing about which keys exist. It is an
// ErrUnauthorized.
type Refusal struct{ Why Why }

// Why is a reason of a Refusal.
type Why int

// The reasons. Expired and Early are used only for a token with a good signature.
const (
	Missing      Why = iota // there are no credentials, or their scheme is not Bearer
	Many                    // there is more than one Authorization header
	UnknownKey              // no such API key, or it was revoked; the caller is not told which
	NoTokens                // it is not an API key, and tokens are not configured
	Expired                 // the token has expired
	Early                   // the token is not valid yet
	BadSignature            // or the token's algorithm is not allowed
	BadToken                // not a token, or a required claim is missing
)

func (r *Refusal) Error() string { return ErrUnauthorized.Error() }

// Is makes errors.Is report ErrUnauthorized.
func (r *Refusal) Is(target error) bool { return target == ErrUnauthorized }

// Error returns the text for the sender of the credentials.
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

// refusal returns the Refusal for an error of check.
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
