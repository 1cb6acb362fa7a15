package api

import (
	"errors"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
)

// challenge is what a 401 without credentials says in WWW-Authenticate (RFC 6750).
const challenge = `Bearer realm="firstcome"`

// unauthorized returns the 401 that says why credentials are not good.
func unauthorized(err error) *client.Problem {
	var refused *auth.Refusal
	if !errors.As(err, &refused) || refused.Why == auth.Missing {
		p := newProblem(credentialsMissing, "credentials are missing: send Authorization: Bearer with an API key or a user's token")
		p.Challenge = challenge
		return p
	}
	code, why := credentialsInvalid, ""
	switch refused.Why {
	case auth.Many:
		why = "there is more than one Authorization header"
	case auth.UnknownKey:
		why = "the API key is not known, or was revoked"
	case auth.NoTokens:
		why = "it is not an API key, and this server takes no tokens"
	case auth.Expired:
		code, why = tokenExpired, "the token has expired"
	case auth.Early:
		why = "the token is not good yet"
	case auth.BadSignature:
		why = "the token's signature is not good, or its algorithm is not allowed"
	default:
		why = "the token is not one that this server takes: it needs exp, its user, and where configured iss and aud"
	}
	p := newProblem(code, "the credentials are not good: "+why)
	p.Challenge = challenge + `, error="invalid_token", error_description="` + why + `"`
	return p
}
