package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
)

// claims serves claims and their outcomes.
type claims struct{ *core }

// claim answers POST /v1/campaigns/{id}/claims. It is the hot path: during a drop, most requests come here.
func (s *claims) claim(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	b := s.buffer()
	defer s.release(b)
	if err := b.read(w, r, maxBody); err != nil {
		return err
	}
	started := time.Now() // after the whole body arrived, so that a slow client is not counted as a slow claim
	user, err := claimant(b.bytes, c)
	if err != nil {
		return err
	}
	if c.User == "" {
		if err := limit(s.UserLimit, string(user)); err != nil {
			return err
		}
	}
	if err := s.existing.meet(r.Context(), c, id); err != nil {
		s.Observer.Undecided(r.Context(), id, err)
		return err
	}
	d, err := s.Claims.Claim(r.Context(), id, user)
	if err != nil {
		s.Observer.Undecided(r.Context(), id, err)
		return err
	}
	t, err := s.Terms.get(r.Context(), id, termsVersion(&d))
	if err != nil {
		s.Observer.Undecided(r.Context(), id, err)
		return err
	}
	if d.Outcome.HasCoupon() {
		if err := s.revealTo(r.Context(), c, &d.Coupon, t); err != nil {
			return err
		}
	}
	s.Observer.Claimed(id, d.Outcome, time.Since(started))
	b.answer(w, &d, t)
	return nil
}

// termsVersion returns the version whose terms the answer to a decision contains.
func termsVersion(d *firstcome.Decision) int64 {
	if d.Outcome.HasCoupon() {
		return d.Coupon.TermsVersion
	}
	return d.TermsVersion
}

// answer writes the answer to a decided claim.
func (b *buffer) answer(w http.ResponseWriter, d *firstcome.Decision, t *terms) {
	switch {
	case d.Outcome == firstcome.Waiting:
		b.bytes = appendPlace(b.bytes[:0], d.Place)
		writeBody(w, d.Outcome.Status(), b.bytes)
		return
	case !d.Outcome.HasCoupon():
		b.refuse(w, d, t)
		return
	}
	b.bytes = appendAnswer(b.bytes[:0], d.Outcome, &d.Coupon, t)
	writeBody(w, d.Outcome.Status(), b.bytes)
}

// refuse writes the answer to a refused claim.
func (b *buffer) refuse(w http.ResponseWriter, d *firstcome.Decision, t *terms) {
	h := w.Header()
	h["Content-Type"] = typeProblem
	if wait := retryAfter(*d, t.OpensAt); wait > 0 {
		h["Retry-After"] = seconds(wait)
	}
	w.WriteHeader(d.Outcome.Status())
	b.bytes = appendSince(append(b.bytes[:0], t.refusals[d.Outcome]...), d)
	_, _ = w.Write(b.bytes)
}

// read answers GET /v1/campaigns/{id}/claims/{user_id}.
func (s *claims) read(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	user, err := s.userOf(r, c, id)
	if err != nil {
		return err
	}
	q := parseQuery(r)
	at := q.place()
	if q.err() != nil {
		return q.err()
	}
	place, answer, err := s.claimOf(r.Context(), c, id, user)
	if isNone(err) && at != (firstcome.Ticket{}) {
		over := notFound() // its outcome is how the place ended
		if over.Outcome, err = s.became(r.Context(), id, user, at); err != nil {
			return err
		}
		return over
	}
	if err != nil {
		return err
	}
	if answer == nil {
		answer = appendPlace(nil, place)
	}
	writeBody(w, http.StatusOK, answer)
	return nil
}

// userOf returns the user in the path. It returns an error if the caller may not ask about the user or the campaign
// does not exist.
func (s *claims) userOf(r *http.Request, c auth.Caller, id firstcome.CampaignID) (firstcome.UserID, error) {
	user, err := userID(r, c)
	if err != nil {
		return "", err
	}
	return user, s.existing.meet(r.Context(), c, id)
}

// claimOf returns a user's place in line, or the answer with their coupon. It returns firstcome.ErrNoCoupon or
// firstcome.ErrNoTicket if the user has neither.
func (s *claims) claimOf(ctx context.Context, c auth.Caller, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, []byte, error) {
	coupon, err := s.Claims.CouponOf(ctx, id, user)
	if errors.Is(err, firstcome.ErrNoCoupon) {
		var place firstcome.Place
		if place, coupon, err = s.Places.Place(ctx, id, user); err == nil && coupon.Number == 0 {
			return place, nil, nil
		}
		if err == nil && !coupon.Recorded { // the user was served after CouponOf
			coupon, err = s.Claims.CouponOf(ctx, id, user)
		}
	}
	if err != nil {
		return firstcome.Place{}, nil, err
	}
	t, err := s.Terms.get(ctx, id, coupon.TermsVersion)
	if err == nil {
		err = s.revealTo(ctx, c, &coupon, t)
	}
	if err != nil {
		return firstcome.Place{}, nil, err
	}
	return firstcome.Place{}, appendAnswer(nil, firstcome.AlreadyIssued, &coupon, t), nil
}

// leave answers DELETE /v1/campaigns/{id}/claims/{user_id}.
func (s *claims) leave(w http.ResponseWriter, r *http.Request, c auth.Caller, id firstcome.CampaignID) error {
	user, err := s.userOf(r, c, id)
	if err != nil {
		return err
	}
	if err := s.readNothing(w, r); err != nil {
		return err
	}
	switch _, err = s.Places.Leave(r.Context(), id, user); {
	case err == nil:
		writeBody(w, http.StatusOK, []byte(`{"left":true}`))
		return nil
	case !errors.Is(err, firstcome.ErrServed):
		return err
	}
	coupon, err := s.Claims.CouponOf(r.Context(), id, user)
	if err != nil {
		return err
	}
	t, err := s.Terms.get(r.Context(), id, coupon.TermsVersion)
	if err == nil {
		err = s.revealTo(r.Context(), c, &coupon, t)
	}
	if err != nil {
		return err
	}
	p := newProblem(alreadyServed, "the user was served before, and holds this coupon")
	p.Coupon = &client.Coupon{}
	if err := json.Unmarshal(appendCoupon(nil, &coupon, t), p.Coupon); err != nil {
		return err
	}
	return p
}

// userID returns the user id in the path, byte by byte. With a user's own token, every other user is not found.
func userID(r *http.Request, c auth.Caller) (firstcome.UserID, error) {
	text := r.PathValue("user_id")
	if r.Context().Value(slashUser{}) != nil {
		text = "/"
	}
	user, err := firstcome.ParseUserID(text)
	if err != nil {
		return "", malformed("the user id in the path: " + err.Error())
	}
	if c.User != "" && c.User != user {
		return "", notFound()
	}
	return user, nil
}
