package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// Header values that answers share. They must not be modified.
var (
	typeJSON    = []string{"application/json"}
	typeProblem = []string{"application/problem+json"}
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
)

// newProblem returns the answer with a code, its status, and a detail for people.
func newProblem(c code, detail string) *client.Problem {
	status := statuses[string(c)]
	return &client.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: string(c), Detail: detail}
}

// malformed returns the 400 for a request that cannot be parsed.
func malformed(detail string) *client.Problem { return newProblem(malformedRequest, detail) }

// notAllowed returns the 422 for a request that was parsed but has values that are not allowed.
func notAllowed(wrong ...client.FieldError) *client.Problem {
	p := newProblem(notAllowedCode, "the request can be read but is not allowed: see errors")
	p.Errors = wrong
	return p
}

// notFound returns the 404. It does not reveal whether the resource does not exist or belongs to another user.
func notFound() *client.Problem {
	return newProblem(notFoundCode, "there is no such thing, or it is not yours")
}

// later returns an answer with Retry-After.
func later(c code, detail string, wait time.Duration) *client.Problem {
	p := newProblem(c, detail)
	p.RetryAfter = wait
	return p
}

// unavailableRetry is the shortest Retry-After of a 503.
const unavailableRetry = time.Second

// unavailable returns a 503: the outcome is unknown, or the node has no capacity.
func unavailable(c code, detail string) *client.Problem {
	return later(c, detail, unavailableRetry+jitter(2*unavailableRetry))
}

// problemOf returns the HTTP answer for an error. It is the only such mapping.
func problemOf(err error) *client.Problem {
	var p *client.Problem
	if errors.As(err, &p) {
		return p
	}
	if fields := fieldErrors(err); len(fields) > 0 {
		return notAllowed(fields...)
	}
	var full *recovery.NoRoomError
	var older *gate.LedgerRolledBackError
	var behind *gate.StaleEpochError
	switch {
	case errors.As(err, &older):
		return unavailable(ledgerRolledBack, older.Error())
	case errors.As(err, &behind):
		return unavailable(staleEpoch, behind.Error())
	case errors.Is(err, firstcome.ErrNoCampaign), errors.Is(err, firstcome.ErrNoCoupon), errors.Is(err, firstcome.ErrNoDeadLetter), errors.Is(err, firstcome.ErrNoTicket),
		errors.Is(err, firstcome.ErrNoList):
		return notFound()
	case errors.Is(err, firstcome.ErrCampaignExists):
		return newProblem(campaignExists, firstcome.ErrCampaignExists.Error())
	case errors.Is(err, gate.ErrLedgerForgot):
		return newProblem(idUsed, gate.ErrLedgerForgot.Error())
	case errors.Is(err, firstcome.ErrBelowInForce):
		return newProblem(belowInForce, err.Error())
	case errors.Is(err, firstcome.ErrCodesMissing), errors.Is(err, recovery.ErrOtherCodes):
		return newProblem(codesMissing, err.Error())
	case errors.Is(err, firstcome.ErrImportRunning):
		return newProblem(importRunning, firstcome.ErrImportRunning.Error()+", or was cut off some seconds ago: nothing was added. Ask again later")
	case isCodeTrouble(err):
		return unavailable(codeUnreadable, "the coupon was issued, but its imported code cannot be read: an operator must look at it. The node's log names the entry. Ask again: it is safe")
	case errors.Is(err, firstcome.ErrPrizesFixed):
		return newProblem(prizesFixed, firstcome.ErrPrizesFixed.Error()+". Names and benefits can still be changed")
	case errors.Is(err, firstcome.ErrClosed):
		return newProblem(campaignClosed, firstcome.ErrClosed.Error())
	case errors.Is(err, firstcome.ErrAlreadyVoided):
		return newProblem(alreadyVoided, firstcome.ErrAlreadyVoided.Error())
	case errors.Is(err, firstcome.ErrResolvedLetter):
		return newProblem(deadLetterResolved, firstcome.ErrResolvedLetter.Error())
	case errors.Is(err, operate.ErrNoRemoteGate):
		return newProblem(noGate, operate.ErrNoRemoteGate.Error())
	case errors.Is(err, recovery.ErrNothingToReconcile):
		return newProblem(nothingToReconcile, recovery.ErrNothingToReconcile.Error())
	case errors.Is(err, gate.ErrRetired):
		return newProblem(noGate, gate.ErrRetired.Error())
	case errors.Is(err, record.ErrRefused):
		return newProblem(deadLetterRefused, err.Error())
	case errors.Is(err, firstcome.ErrStale):
		return newProblem(stale, firstcome.ErrStale.Error())
	case errors.Is(err, gate.ErrUnfinished) && errors.Is(err, firstcome.ErrGateMismatch) && !errors.Is(err, firstcome.ErrPending):
		return unavailable(wrongNode, gate.ErrUnfinished.Error()+". Not by this node: "+firstcome.ErrGateMismatch.Error()+". "+mend)
	case errors.Is(err, firstcome.ErrLineLogGone):
		return unavailable(lineLost, firstcome.ErrLineLogGone.Error()+", and nothing was told: nobody loses a place. The node's log says why; firstcome gate rebuild ID --without-line-log logs the line again")
	case errors.Is(err, firstcome.ErrLineLogAway):
		return unavailable(lineUnavailable, firstcome.ErrLineLogAway.Error()+", and nothing was told: nobody loses a place. Ask again: it is safe")
	case errors.Is(err, firstcome.ErrGateMismatch):
		return unavailable(wrongNode, firstcome.ErrGateMismatch.Error()+": nothing was decided. "+mend)
	case errors.Is(err, gate.ErrUnnamed):
		return unavailable(wrongNode, gate.ErrUnnamed.Error())
	case errors.Is(err, firstcome.ErrPending): // even if finishing the pending change failed (ErrUnfinished)
		return unavailable(changePending, firstcome.ErrPending.Error()+", so nothing was changed. Ask again")
	case errors.Is(err, gate.ErrUnfinished):
		return unavailable(changeUnfinished, gate.ErrUnfinished.Error())
	case errors.Is(err, firstcome.ErrNotRecorded):
		return unavailable(notRecorded, "the number is issued but not in the ledger yet, so nothing was changed. Ask again")
	case errors.Is(err, issue.ErrNotRecordedYet):
		return unavailable(notRecorded, "the claim was decided, but its coupon was not recorded in time. Ask again: it is safe")
	case errors.Is(err, issue.ErrUnrecorded):
		return unavailable(unrecorded, "the coupon was issued, but is not in the ledger: an operator must look at it. Ask again: it is safe")
	case errors.Is(err, record.ErrRebuilding):
		return unavailable(gateUnavailable, "the gate is being rebuilt from the ledger, and nothing was decided. Ask again: it is safe")
	case errors.Is(err, gate.ErrUnverified):
		return unavailable(gateUnavailable, "the gate's server restarted, or another one took over, and its campaign is not verified yet: nothing was decided. Ask again: it is safe")
	case errors.As(err, &full):
		return unavailable(gateFull, full.Error())
	case errors.Is(err, recovery.ErrSuperseded):
		return unavailable(gateUnavailable, "another node is rebuilding this gate. Read the campaign to see when it is done")
	case errors.Is(err, errManyUnmet):
		return unavailable(busy, "too many campaign ids that this node does not know are being looked up. Ask again: it is safe")
	case errors.Is(err, ErrAuditRunning):
		return unavailable(auditRunning, ErrAuditRunning.Error()+". Ask again")
	case errors.Is(err, ledger.ErrOtherSecret):
		return newProblem(otherSecret, ledger.ErrOtherSecret.Error()+": ask a node that can read them")
	case errors.Is(err, ledger.ErrSearching):
		return unavailable(busy, "another search for a code is running, and only one runs at a time. Ask again: it is safe")
	}
	if cause := firstcome.CauseOf(err); cause != "" {
		return unavailable(code(cause), busyDetails[cause]+". Ask again: it is safe")
	}
	return unavailable(unknown, "it is not known whether this was done. Ask again: it is safe")
}

// busyDetails has the details for the causes of firstcome.ErrBusy.
var busyDetails = map[firstcome.Cause]string{
	firstcome.Busy:            "too many claims are waiting, and nothing was decided",
	firstcome.GateUnavailable: "the gate does not answer, or cannot decide this campaign at the moment: nothing was decided",
	firstcome.GateFull:        "the gate has no room: too many of its coupons are not recorded yet, or its memory is full: nothing was decided",
	firstcome.LineFull:        "the line is full, and nothing was decided",
	firstcome.Stopping:        "this node is stopping, and nothing was decided: another node answers",
}

// fieldErrors returns the field errors in an error's tree.
func fieldErrors(err error) []client.FieldError {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case nil:
		return nil
	case *firstcome.FieldError:
		return []client.FieldError{{Field: e.Field, Reason: e.Reason}}
	case interface{ Unwrap() []error }:
		var all []client.FieldError
		for _, part := range e.Unwrap() {
			all = append(all, fieldErrors(part)...)
		}
		return all
	}
	return fieldErrors(errors.Unwrap(err))
}

// mend is the advice for a campaign that this node may not decide.
const mend = "Its log says which. Give this node the campaign's gate, secret and ledger, or the newer firstcome"

// turnedAwayRetry is the Retry-After for a client that was turned away.
const turnedAwayRetry = 2 * time.Second

// turnAway answers a client when the server has too many connections.
func turnAway(w http.ResponseWriter) {
	writeProblem(w, later(busy, "there is no room for another connection. Ask again: it is safe", turnedAwayRetry))
}

// writeProblem answers with a problem.
func writeProblem(w http.ResponseWriter, p *client.Problem) {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers
	}
	h := w.Header()
	h["Content-Type"] = typeProblem
	if p.RetryAfter > 0 {
		h["Retry-After"] = seconds(p.RetryAfter)
	}
	if p.Challenge != "" {
		h.Set("WWW-Authenticate", p.Challenge)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	writeBody(w, status, body)
	return nil
}

// writeBody answers with JSON. It ignores write errors, because the client has disconnected.
func writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header()["Content-Type"] = typeJSON
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// A code identifies a problem for programs. The details may change; codes do not. The code of a refused claim is its
// outcome.
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
	noCoupon         code = "no_coupon"
	methodNotAllowed code = "method_not_allowed"

	campaignExists     code = "campaign_exists"
	idUsed             code = "id_used"
	belowInForce       code = "below_in_force"
	prizesFixed        code = "prizes_fixed"
	codesMissing       code = "codes_missing"
	importRunning      code = "import_running"
	campaignClosed     code = "campaign_closed"
	alreadyVoided      code = "already_voided"
	deadLetterResolved code = "dead_letter_resolved"
	deadLetterRefused  code = "dead_letter_refused"
	alreadyServed      code = "already_served"
	noGate             code = "no_gate"
	nothingToReconcile code = "nothing_to_reconcile"
	otherSecret        code = "other_secret"

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
	codeUnreadable   code = "code_unreadable"
	changePending    code = "change_pending"
	changeUnfinished code = "change_unfinished"
	wrongNode        code = "wrong_node"
	ledgerRolledBack code = "ledger_rolled_back"
	staleEpoch       code = "stale_epoch"
	lineLost         code = "line_lost"
	lineUnavailable  code = "line_unavailable"
)

// statuses maps every code to its status.
var statuses = statusesOf(map[int][]code{
	http.StatusBadRequest:            {malformedRequest, malformedBody, malformedField},
	http.StatusUnauthorized:          {credentialsMissing, credentialsInvalid, tokenExpired},
	http.StatusForbidden:             {roleForbidden, crossSite, notLoopback},
	http.StatusNotFound:              {notFoundCode, noCoupon},
	http.StatusMethodNotAllowed:      {methodNotAllowed},
	http.StatusConflict:              {campaignExists, idUsed, belowInForce, prizesFixed, codesMissing, importRunning, campaignClosed, alreadyVoided, deadLetterResolved, deadLetterRefused, alreadyServed, noGate, nothingToReconcile, otherSecret},
	http.StatusPreconditionFailed:    {stale},
	http.StatusRequestEntityTooLarge: {bodyTooLarge},
	http.StatusUnsupportedMediaType:  {unsupportedMedia},
	http.StatusUnprocessableEntity:   {notAllowedCode},
	http.StatusTooManyRequests:       {rateLimited},
	http.StatusInternalServerError:   {fault},
	http.StatusServiceUnavailable:    {unknown, busy, auditRunning, gateUnavailable, gateFull, lineFull, stopping, notRecorded, unrecorded, codeUnreadable, changePending, changeUnfinished, wrongNode, ledgerRolledBack, staleEpoch, lineLost, lineUnavailable},
})

// statusesOf inverts codes and adds the outcomes of refused claims.
func statusesOf(codes map[int][]code) map[string]int {
	all := map[string]int{}
	for status, of := range codes {
		for _, c := range of {
			all[string(c)] = status
		}
	}
	for _, o := range firstcome.Outcomes() {
		if o.Reason() != "" {
			all[o.String()] = o.Status()
		}
	}
	return all
}
