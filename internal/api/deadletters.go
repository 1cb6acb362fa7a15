package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/wire"
)

// deadLetters lists, replays and voids dead letters.
type deadLetters struct{ *core }

// list answers GET /v1/dead-letters.
func (s *deadLetters) list(w http.ResponseWriter, r *http.Request, _ auth.Caller) error {
	q := parseQuery(r)
	most := q.limit()
	page := ledger.Letters{
		Campaign: parsed(q, "campaign", firstcome.ParseCampaignID), Cause: parsed(q, "cause", causeCode), After: q.number("after"), Limit: most + 1, Resolved: q.included("resolved"),
	}
	if q.err() != nil {
		return q.err()
	}
	found, err := s.Ledger.DeadLetters(r.Context(), page)
	if err != nil {
		return err
	}
	found, next := pageOf(found, most, func(d ledger.DeadLetter) int64 { return d.ID })
	return writeList(w, found, next, wireLetter)
}

// causeCode parses the code of a dead letter's cause.
func causeCode(text string) (string, error) {
	if codes := ledger.CauseCodes(); !slices.Contains(codes, text) {
		return "", errors.New("must be one of " + strings.Join(codes, ", "))
	}
	return text, nil
}

// causes answers GET /v1/dead-letters/causes.
func (s *deadLetters) causes(w http.ResponseWriter, r *http.Request, _ auth.Caller) error {
	q := parseQuery(r)
	id := parsed(q, "campaign", firstcome.ParseCampaignID)
	if q.err() != nil {
		return q.err()
	}
	found, err := s.Ledger.LetterCauses(r.Context(), id)
	if err != nil {
		return err
	}
	return writeList(w, found, nil, func(c ledger.LetterCause) client.DeadLetterCause {
		return client.DeadLetterCause{CampaignID: string(c.Campaign), CauseCode: c.Code, Open: c.Open, Through: c.Through}
	})
}

// replayAll answers POST /v1/dead-letters/replay.
func (s *deadLetters) replayAll(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
	of, _, err := s.chosen(w, r)
	if err != nil {
		return err
	}
	done, err := s.Operator.ReplayLetters(r.Context(), c.Name, of)
	return writeResolved(w, done, err)
}

// voidAll answers POST /v1/dead-letters/void.
func (s *deadLetters) voidAll(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
	of, reason, err := s.chosen(w, r, "reason")
	if err != nil {
		return err
	}
	done, err := s.Operator.VoidLetters(r.Context(), c.Name, of, reason)
	return writeResolved(w, done, err)
}

// chosen reads which dead letters to resolve. more names further allowed fields: with it, a reason is required.
func (s *deadLetters) chosen(w http.ResponseWriter, r *http.Request, more ...string) (of ledger.Letters, reason string, err error) {
	o, wrong, err := s.readObject(w, r, append(more, "campaign_id", "cause_code", "through", "after")...)
	if err != nil {
		return of, "", err
	}
	for _, name := range []string{"campaign_id", "cause_code", "through"} {
		if _, ok := o[name]; !ok {
			wrong.require(name)
		}
	}
	for name, raw := range o {
		switch name {
		case "campaign_id":
			of.Campaign = parsedField(wrong, name, raw, firstcome.ParseCampaignID)
		case "cause_code":
			of.Cause = parsedField(wrong, name, raw, causeCode)
		case "through":
			of.Through = wrong.readInteger(name, raw, 1)
		case "after":
			of.After = wrong.readInteger(name, raw, 0)
		}
	}
	if len(more) > 0 {
		reason = wrong.requireReason(o)
	}
	return of, reason, wrong.err()
}

func parsedField[T ~string](wrong *mistakes, name string, raw json.RawMessage, parse func(string) (T, error)) T {
	text := wrong.readString(name, raw)
	if wrong.names(name) {
		return ""
	}
	value, err := parse(text)
	if err != nil {
		wrong.refuse(name, err.Error())
	}
	return value
}

// writeResolved answers with the result of resolving many dead letters.
func writeResolved(w http.ResponseWriter, done operate.Resolved, err error) error {
	if err != nil {
		return err
	}
	answer := client.ResolvedLetters{Done: done.Done, Refused: done.Refused, Remaining: done.Remaining}
	if answer.Refused == nil {
		answer.Refused = []int64{}
	}
	if done.Remaining > 0 {
		answer.Next = &done.After
	}
	if done.Stopped != nil {
		why := problemOf(done.Stopped).Detail
		answer.Stopped = &why
	}
	return writeJSON(w, http.StatusOK, answer)
}

// replay answers POST /v1/dead-letters/{letter}/replay.
func (s *deadLetters) replay(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
	if err := s.readNothing(w, r); err != nil {
		return err
	}
	id, err := pathNumber(r, "letter")
	if err != nil {
		return err
	}
	letter, err := s.Operator.Replay(r.Context(), c.Name, id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, wireLetter(letter))
}

// void answers POST /v1/dead-letters/{letter}/void.
func (s *deadLetters) void(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
	reason, err := s.reason(w, r)
	if err != nil {
		return err
	}
	id, err := pathNumber(r, "letter")
	if err != nil {
		return err
	}
	letter, err := s.Operator.VoidLetter(r.Context(), c.Name, id, reason)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, wireLetter(letter))
}

// wireLetter converts a dead letter to its JSON form.
func wireLetter(d ledger.DeadLetter) client.DeadLetter {
	return client.DeadLetter{
		ID: d.ID, CampaignID: optional(string(d.Campaign)), Number: optional(d.Number), UserID: optional(string(d.User)),
		Source: d.Source, Payload: d.Payload, Cause: d.Cause, CauseCode: d.CauseCode, CreatedAt: client.Time{Time: d.CreatedAt},
		ResolvedAt: wire.Time(d.ResolvedAt), ResolvedBy: optional(string(d.ResolvedBy)),
	}
}
