package api

import (
	"net/http"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/wire"
)

// listDeadLetters answers GET /v1/dead-letters.
func (s *Server) listDeadLetters(w http.ResponseWriter, r *http.Request, _ auth.Caller) error {
	q := parseQuery(r)
	most := q.limit()
	page := ledger.Letters{
		Campaign: parsed(q, "campaign", firstcome.ParseCampaignID), After: q.number("after"), Limit: most + 1, Resolved: q.included("resolved"),
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

// replayDeadLetter answers POST /v1/dead-letters/{letter}/replay.
func (s *Server) replayDeadLetter(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
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

// voidDeadLetter answers POST /v1/dead-letters/{letter}/void.
func (s *Server) voidDeadLetter(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
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

// wireLetter returns a dead letter as the wire has it.
func wireLetter(d ledger.DeadLetter) client.DeadLetter {
	return client.DeadLetter{
		ID: d.ID, CampaignID: optional(string(d.Campaign)), Number: optional(d.Number), UserID: optional(string(d.User)),
		Source: d.Source, Payload: d.Payload, Cause: d.Cause, CreatedAt: client.Time{Time: d.CreatedAt},
		ResolvedAt: wire.Time(d.ResolvedAt), ResolvedBy: optional(string(d.ResolvedBy)),
	}
}
