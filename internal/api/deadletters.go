package api

import (
	"net/http"
	"strconv"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/ledger"
)

// listDeadLetters answers GET /v1/dead-letters.
func (s *Server) listDeadLetters(w http.ResponseWriter, r *http.Request, _ auth.Caller) error {
	q := parseQuery(r)
	most := q.limit()
	page := ledger.Letters{
		Campaign: q.campaign("campaign"), After: q.number("after"), Limit: most + 1, Settled: q.included("settled"),
	}
	if q.err() != nil {
		return q.err()
	}
	found, err := s.Ledger.DeadLetters(r.Context(), page)
	if err != nil {
		return err
	}
	list := client.List[client.DeadLetter]{Items: []client.DeadLetter{}}
	if len(found) > most {
		found = found[:most]
		next := strconv.FormatInt(found[most-1].ID, 10)
		list.Next = &next
	}
	for _, letter := range found {
		list.Items = append(list.Items, wireLetter(letter))
	}
	return writeJSON(w, http.StatusOK, list)
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
	letter := client.DeadLetter{
		ID: d.ID, Source: d.Source, Payload: d.Payload, Cause: d.Cause,
		CreatedAt: client.Time{Time: d.CreatedAt}, SettledAt: wireTime(d.SettledAt),
	}
	if campaign := string(d.Campaign); campaign != "" {
		letter.CampaignID = &campaign
	}
	if d.Number != 0 {
		letter.Number = &d.Number
	}
	if user := string(d.User); user != "" {
		letter.UserID = &user
	}
	if by := string(d.SettledBy); by != "" {
		letter.SettledBy = &by
	}
	return letter
}
