package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// An OtherSource is what a ledger holds that is of none of its campaigns, at one instant.
type OtherSource struct {
	// Keys calls each with every API key, revoked ones too.
	Keys func(ctx context.Context, each func(firstcome.Key)) error
	// Letters calls each with every dead letter of no campaign.
	Letters func(ctx context.Context, each func(Letter)) error
	// Log calls each with every line of the audit log about no campaign that there is.
	Log func(ctx context.Context, each func(Line)) error
}

// Other audits what is of no campaign: each key was made and revoked as the audit log says, and each
// dead letter resolved. An error means that it could not be read.
func Other(ctx context.Context, source OtherSource) (Breaches, error) {
	a := otherAudit{Breaches: &Breaches{}, made: map[string]Line{}, revoked: map[string]time.Time{}}
	a.log = logAudit{Breaches: a.Breaches, letters: map[int64]Line{}}
	err := source.Log(ctx, a.line)
	if err == nil {
		err = source.Keys(ctx, a.key)
	}
	if err == nil {
		err = source.Letters(ctx, a.letter)
	}
	if errors.Is(err, ErrUnreadable) {
		a.add("unreadable", "%v", err)
		err = nil
	}
	if err != nil {
		return Breaches{}, fmt.Errorf("audit what is of no campaign: %w", err)
	}
	a.end()
	return *a.Breaches, nil
}

type otherAudit struct {
	*Breaches
	log     logAudit
	made    map[string]Line // by key
	revoked map[string]time.Time
}

func (a *otherAudit) line(l Line) {
	switch l.Action {
	case "key.create":
		a.made[l.Key] = l
	case "key.revoke":
		a.revoked[l.Key] = l.At
	case letterVoided, letterReplayed:
		a.log.letters[l.Letter] = l
	}
}

func (a *otherAudit) key(k firstcome.Key) {
	made, ok := a.made[k.ID]
	switch {
	case !ok:
		a.add("keys", "no line of the audit log is about the making of the key %q", k.ID)
	case made.Name != k.Name || made.Role != k.Role || !made.At.Equal(k.CreatedAt):
		a.add("keys", "the key %q is called %q, of the role %s, made at %s; by the audit log %q, %s, %s",
			k.ID, k.Name, k.Role, text(k.CreatedAt), made.Name, made.Role, text(made.At))
	}
	if at := a.revoked[k.ID]; !at.Equal(k.RevokedAt) {
		a.add("keys", "the key %q was revoked at %s, by the audit log at %s", k.ID, text(k.RevokedAt), text(at))
	}
	delete(a.made, k.ID)
	delete(a.revoked, k.ID)
}

func (a *otherAudit) letter(l Letter) {
	if l.Wrong != "" {
		a.add("letters", "the dead letter %d contradicts itself: %s", l.ID, l.Wrong)
	}
	a.log.resolved(l)
}

func (a *otherAudit) end() {
	for _, id := range slices.Sorted(maps.Keys(a.made)) {
		a.add("keys", "by the audit log the key %q was made, and the ledger does not have it", id)
	}
	for _, id := range slices.Sorted(maps.Keys(a.revoked)) {
		a.add("keys", "by the audit log the key %q was revoked, and the ledger does not have it", id)
	}
	a.log.endLetters()
}
