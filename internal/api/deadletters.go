package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/firstcome/firstcome"
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
	return s.settleLetter(w, r, func(ctx context.Context, d ledger.DeadLetter) error {
		return s.replayed(ctx, c.Name, d)
	})
}

// voidDeadLetter answers POST /v1/dead-letters/{letter}/void.
func (s *Server) voidDeadLetter(w http.ResponseWriter, r *http.Request, c auth.Caller) error {
	reason, err := s.reason(w, r)
	if err != nil {
		return err
	}
	return s.settleLetter(w, r, func(ctx context.Context, d ledger.DeadLetter) error {
		if d.Number == 0 {
			return s.voidedLetter(ctx, c.Name, d, reason)
		}
		// Its stock returns, as with a void.
		return s.Issuer.Change(d.Campaign, func() error { return s.voidedLetter(ctx, c.Name, d, reason) })
	})
}

// settleLetter replays or voids the dead letter that the path names, and answers
// with it.
func (s *Server) settleLetter(w http.ResponseWriter, r *http.Request, do func(context.Context, ledger.DeadLetter) error) error {
	id, err := pathNumber(r, "letter")
	if err != nil {
		return err
	}
	letter, err := s.Ledger.DeadLetter(r.Context(), id)
	if err != nil {
		return err
	}
	if err := do(r.Context(), letter); err != nil {
		return err
	}
	if letter, err = s.Ledger.DeadLetter(r.Context(), id); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, wireLetter(letter))
}

// replayed records the coupon of a dead letter, and sees to it that the gate knows
// the number as recorded: also of a letter that was settled before, when that may
// have failed.
func (s *Server) replayed(ctx context.Context, actor string, d ledger.DeadLetter) error {
	settled, err := s.Ledger.Replay(ctx, actor, d.ID)
	if s.Remote == nil || err != nil && (d.SettledBy != ledger.Replayed || !errors.Is(err, firstcome.ErrSettledLetter)) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeWait)
	defer cancel()
	var failed error
	if err != nil {
		settled, failed = s.Ledger.Record(ctx, d.Campaign, nil)
	}
	if failed == nil {
		failed = s.Remote.Gate.Settle(ctx, d.Campaign, settled)
	}
	if failed != nil {
		return failed
	}
	return err
}

// voidedLetter voids a dead letter, at the gate too.
func (s *Server) voidedLetter(ctx context.Context, actor string, d ledger.DeadLetter, reason string) error {
	for {
		changed, err := s.Ledger.VoidLetter(ctx, actor, d.ID, reason)
		switch {
		case s.Remote == nil:
			return err
		case errors.Is(err, firstcome.ErrPending):
			if err := s.finishEarlier(ctx, d.Campaign); err != nil {
				return err
			}
		case err != nil || changed == "": // or there is no coupon in it
			return err
		default:
			return s.finish(ctx, changed, 0)
		}
	}
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
