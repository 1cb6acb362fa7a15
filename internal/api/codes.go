package api

import (
	"net/http"

	"github.com/firstcome/firstcome"
)

// A code names what a problem is, for programs: the words may change, the code does not. A refused
// claim's code is its outcome.
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

	campaignExists     code = "campaign_exists"
	idUsed             code = "id_used"
	belowInForce       code = "below_in_force"
	campaignClosed     code = "campaign_closed"
	alreadyVoided      code = "already_voided"
	deadLetterResolved code = "dead_letter_resolved"
	deadLetterRefused  code = "dead_letter_refused"
	alreadyServed      code = "already_served"
	noGate             code = "no_gate"
	nothingToReconcile code = "nothing_to_reconcile"

	stale            code = "stale_version"
	bodyTooLarge     code = "body_too_large"
	unsupportedMedia code = "unsupported_media_type"
	notAllowedCode   code = "not_allowed"
	rateLimited      code = "rate_limited"

	fault            code = "internal_fault"
	unknown          code = "unknown"
	busy             code = code(firstcome.Busy)
	auditRunning     code = "audit_running"
	gateUnavailable  code = code(firstcome.GateUnavailable)
	gateFull         code = code(firstcome.GateFull)
	lineFull         code = code(firstcome.LineFull)
	stopping         code = code(firstcome.Stopping)
	notRecorded      code = "not_recorded"
	unrecorded       code = "refused_by_ledger"
	changePending    code = "change_pending"
	changeUnfinished code = "change_unfinished"
	wrongNode        code = "wrong_node"
	ledgerRolledBack code = "ledger_rolled_back"
	staleEpoch       code = "stale_epoch"
	lineLost         code = "line_lost"
	lineUnavailable  code = "line_unavailable"
)

// statuses has the status of every code.
var statuses = statusesOf(map[int][]code{
	http.StatusBadRequest:            {malformedRequest, malformedBody, malformedField},
	http.StatusUnauthorized:          {credentialsMissing, credentialsInvalid, tokenExpired},
	http.StatusForbidden:             {roleForbidden, crossSite, notLoopback},
	http.StatusNotFound:              {notFoundCode},
	http.StatusMethodNotAllowed:      {methodNotAllowed},
	http.StatusConflict:              {campaignExists, idUsed, belowInForce, campaignClosed, alreadyVoided, deadLetterResolved, deadLetterRefused, alreadyServed, noGate, nothingToReconcile},
	http.StatusPreconditionFailed:    {stale},
	http.StatusRequestEntityTooLarge: {bodyTooLarge},
	http.StatusUnsupportedMediaType:  {unsupportedMedia},
	http.StatusUnprocessableEntity:   {notAllowedCode},
	http.StatusTooManyRequests:       {rateLimited},
	http.StatusInternalServerError:   {fault},
	http.StatusServiceUnavailable:    {unknown, busy, auditRunning, gateUnavailable, gateFull, lineFull, stopping, notRecorded, unrecorded, changePending, changeUnfinished, wrongNode, ledgerRolledBack, staleEpoch, lineLost, lineUnavailable},
})

// statusesOf adds the refusals' codes, which are their outcomes.
func statusesOf(codes map[int][]code) map[string]int {
	all := map[string]int{}
	for status, of := range codes {
		for _, c := range of {
			all[string(c)] = status
		}
	}
	for o, reply := range replies {
		if reply.detail != "" {
			all[firstcome.Outcome(o).String()] = reply.status
		}
	}
	return all
}
