package api

import (
	"net/http"

	"github.com/firstcome/firstcome"
)

// A code names what a problem is, for programs: what it says in words may change, and its code does
// not. A refused claim's is its outcome.
type code string

// The codes.
const (
	malformedRequest code = "malformed_request"
	malformedBody    code = "malformed_body"
	malformedField   code = "malformed_field"

	credentialsMissing code = "credentials_missing"
	credentialsInvalid code = "credentials_invalid"
	tokenExpired       code = "token_expired"

	roleForbidden code = "role_forbidden"
	crossSite     code = "cross_site"
	notLoopback   code = "not_loopback"

	notFoundCode     code = "not_found"
	methodNotAllowed code = "method_not_allowed"

	campaignExists code = "campaign_exists"
	idAtGate       code = "id_taken_at_gate"
	belowInForce   code = "below_in_force"
	campaignClosed code = "campaign_closed"
	alreadyVoided  code = "already_voided"
	letterSettled  code = "letter_settled"
	letterRefused  code = "letter_refused"

	stale            code = "stale_version"
	bodyTooLarge     code = "body_too_large"
	unsupportedMedia code = "unsupported_media_type"
	notAllowedCode   code = "not_allowed"
	rateLimited      code = "rate_limited"

	fault            code = "internal_fault"
	unknown          code = "unknown"
	busy             code = "busy"
	notRecorded      code = "not_recorded"
	unrecorded       code = "refused_by_ledger"
	changePending    code = "change_pending"
	changeUnfinished code = "change_unfinished"
	wrongNode        code = "wrong_node"
)

// codes are all of them by status, those of outcomes left out.
var codes = [...]struct {
	status int
	codes  []code
}{
	{http.StatusBadRequest, []code{malformedRequest, malformedBody, malformedField}},
	{http.StatusUnauthorized, []code{credentialsMissing, credentialsInvalid, tokenExpired}},
	{http.StatusForbidden, []code{roleForbidden, crossSite, notLoopback}},
	{http.StatusNotFound, []code{notFoundCode}},
	{http.StatusMethodNotAllowed, []code{methodNotAllowed}},
	{http.StatusConflict, []code{campaignExists, idAtGate, belowInForce, campaignClosed, alreadyVoided, letterSettled, letterRefused}},
	{http.StatusPreconditionFailed, []code{stale}},
	{http.StatusRequestEntityTooLarge, []code{bodyTooLarge}},
	{http.StatusUnsupportedMediaType, []code{unsupportedMedia}},
	{http.StatusUnprocessableEntity, []code{notAllowedCode}},
	{http.StatusTooManyRequests, []code{rateLimited}},
	{http.StatusInternalServerError, []code{fault}},
	{http.StatusServiceUnavailable, []code{unknown, busy, notRecorded, unrecorded, changePending, changeUnfinished, wrongNode}},
}

// status returns the status of a code's answers.
func (c code) status() int {
	for _, of := range codes {
		for _, known := range of.codes {
			if known == c {
				return of.status
			}
		}
	}
	for o, reply := range replies {
		if reply.detail != "" && firstcome.Outcome(o).String() == string(c) {
			return reply.status
		}
	}
	panic("a code without a status: " + string(c))
}

// Codes returns every code that a problem may have, with its status.
func Codes() map[string]int {
	all := map[string]int{}
	for _, of := range codes {
		for _, c := range of.codes {
			all[string(c)] = of.status
		}
	}
	for o, reply := range replies {
		if reply.detail != "" {
			all[firstcome.Outcome(o).String()] = reply.status
		}
	}
	return all
}
