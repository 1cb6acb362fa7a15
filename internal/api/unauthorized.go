package api

import (
	"errors"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
)

// challenge is what a 401 without credentials says in WWW-Authenticate (RFC 6750).
const challenge = `Bearer realm="firstcome"`

// unauthorized returns the 401 that says why credentials are refused.
func unauthorized(err error) *client.Problem {
	var refused *auth.Refusal
	if !errors.As(err, &refused) || refused.Why == auth.Missing {
		p := newProblem(credentialsMissing, "credentials are missing: send Authorization: Bearer with an API key or a user's token")
		p.Challenge = challenge
		return p
	}
	code, why := credentialsInvalid, refused.Why.Error()
	if refused.Why == auth.Expired {
		code = tokenExpired
	}
	p := newProblem(code, "the credentials are not good: "+why)
	p.Challenge = challenge + `, error="invalid_token", error_description="` + why + `"`
	return p
}
