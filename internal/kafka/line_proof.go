package kafka

import (
	"context"
	"crypto/subtle"
	"fmt"
	"strconv"
	"strings"

	"github.com/firstcome/firstcome"
)

// proofOf returns the proof of a ticket: its generation, its number and a text that nobody can guess.
func (l *Line) proofOf(id firstcome.CampaignID, user firstcome.UserID, t firstcome.Ticket) string {
	return fmt.Sprintf("%d.%d.%s", t.Generation, t.Number, l.options.Secret.Ticket(id, user, t))
}

// ticketOf returns the ticket that a proof is of, or firstcome.ErrProof.
func (l *Line) ticketOf(id firstcome.CampaignID, user firstcome.UserID, proof string) (t firstcome.Ticket, err error) {
	parts := strings.Split(proof, ".")
	if len(parts) != 3 {
		return t, firstcome.ErrProof
	}
	var bad [2]error
	t.Generation, bad[0] = strconv.ParseInt(parts[0], 10, 64)
	t.Number, bad[1] = strconv.ParseInt(parts[1], 10, 64)
	if bad != [2]error{} || subtle.ConstantTimeCompare([]byte(proof), []byte(l.proofOf(id, user, t))) == 0 {
		return t, firstcome.ErrProof
	}
	return t, nil
}

// PlaceBy returns where a user stands in line by the proof of a ticket: see PlaceOf. firstcome.ErrProof says that it is none.
func (l *Line) PlaceBy(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, proof string) (place firstcome.Place, coupon firstcome.Coupon, err error) {
	ticket, err := l.ticketOf(id, user, proof)
	if err == nil {
		place, coupon, err = l.PlaceOf(ctx, id, user, ticket)
		place.Proof = proof
	}
	return place, coupon, err
}

// LeaveBy takes a user out of the line by the proof of a ticket: see LeaveOf. firstcome.ErrProof says that it is none.
func (l *Line) LeaveBy(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, proof string) error {
	ticket, err := l.ticketOf(id, user, proof)
	if err == nil {
		err = l.LeaveOf(ctx, id, user, ticket)
	}
	return err
}
