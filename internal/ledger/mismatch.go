package ledger

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Identity returns the random name that distinguishes the ledger from all others. It is created once, and copies
// of the ledger share it. It is empty only if no node has opened the ledger yet.
func (l *Ledger) Identity() string { return l.db.Identity }

// GateName returns the name of the gate that decides this node's campaigns, as their rows hold it.
func (l *Ledger) GateName() string { return l.store.Gate }

// A RemoteGate describes the remote gate that decides a node's campaigns.
type RemoteGate struct {
	Gate     string // redis:INSTANCE, or empty if that Redis has no name. A Redis without a name decides no campaign
	Topic    string // the Kafka topic that carries its coupons to the ledger, or empty if there is none
	Abandons bool   // an operator has confirmed that all coupons of another topic are recorded
}

// Owns reports whether a UID belongs to a campaign of this ledger or of its copies, with this node's secret.
func (l *Ledger) Owns(uid string) bool {
	return strings.HasPrefix(uid, l.db.Identity+".") && strings.HasSuffix(uid, "."+l.store.Fingerprint)
}

// Whose returns the UID of a campaign, whichever gate decides it, or firstcome.ErrNoCampaign.
func (rc *Recorder) Whose(ctx context.Context, id firstcome.CampaignID) (string, error) {
	var createdAt time.Time
	var secret string
	err := rc.db.Conclude.QueryRowContext(ctx, `SELECT created_at, secret FROM campaigns WHERE id = ?`, string(id)).Scan(sqldb.Time(&createdAt), &secret)
	if errors.Is(err, sql.ErrNoRows) {
		return "", firstcome.ErrNoCampaign
	}
	return rc.store.CampaignUID(createdAt, secret), sqldb.Wrap(err, "read whose campaign %s is", id)
}

// UseGate sets the remote gate that decides this node's campaigns. Call it before Run. A gate needs the ledger's
// identity to open, so the ledger is opened first. firstcome.ErrGateMismatch means that another topic may hold
// coupons that are not recorded yet.
func (l *Ledger) UseGate(ctx context.Context, b RemoteGate) error {
	l.store.UseGate(b.Gate, b.Topic, b.Abandons)
	was, err := l.JournalOf(ctx, b.Gate)
	if err == nil {
		err = l.store.CheckNewTopic(was)
	}
	return err
}

// An OtherGate is a remote gate that campaigns name and that is not this node's gate.
type OtherGate struct {
	Name      string
	Campaigns int // unretired campaigns that name the gate
}

// OtherGates returns the gates, in the order of their names, of all unretired campaigns that neither the
// ledger nor this node's gate decides.
func (l *Ledger) OtherGates(ctx context.Context) (all []OtherGate, err error) {
	rows, err := l.db.Conclude.QueryContext(ctx, `SELECT gate, count(*) FROM campaigns
		WHERE gate <> ? AND gate <> ? AND retired_at IS NULL GROUP BY gate ORDER BY gate`, campaign.OwnGate, l.store.Gate)
	all, err = sqldb.AllRows(rows, err, func(take sqldb.Scan) (g OtherGate, err error) {
		err = take(&g.Name, &g.Campaigns)
		return g, err
	})
	return all, sqldb.Wrap(err, "read which gates campaigns name")
}

// Mismatched returns how many campaigns a node with this secret does not decide (ErrGateMismatch). others have
// another secret, or the other kind of gate: the ledger if the node has a remote gate, and a remote gate if the
// node has none. earlier have codes that an earlier firstcome made with this secret.
func (l *Ledger) Mismatched(ctx context.Context, secret firstcome.Secret) (others, earlier int, err error) {
	kind := `gate <> ?`
	if l.store.Remote() {
		kind = `gate = ?`
	}
	err = l.db.Conclude.QueryRowContext(ctx, `SELECT
		coalesce(sum(CASE WHEN secret <> ? AND (secret <> ? OR `+kind+`) THEN 1 ELSE 0 END), 0),
		coalesce(sum(CASE WHEN secret = ? THEN 1 ELSE 0 END), 0) FROM campaigns`,
		secret.EarlierFingerprint(), secret.Fingerprint(), campaign.OwnGate, secret.EarlierFingerprint()).Scan(&others, &earlier)
	return others, earlier, sqldb.Wrap(err, "compare the campaigns' secrets")
}

// Foreign returns how many campaigns are open at the time at or open later. others is how many of them this node
// does not decide, because they have another gate or code secret.
func (l *Ledger) Foreign(ctx context.Context, at time.Time) (open, others int, err error) {
	err = l.db.Conclude.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(CASE WHEN gate <> ? OR secret <> ? THEN 1 ELSE 0 END), 0) FROM campaigns
		WHERE NOT closed AND (closes_at IS NULL OR closes_at > ?)`, l.store.Gate, l.store.Fingerprint, at.UnixMicro()).Scan(&open, &others)
	return open, others, sqldb.Wrap(err, "count the campaigns of other nodes")
}

// Decides returns nil if this node decides a campaign, and otherwise firstcome.ErrGateMismatch with the reason. The
// error is also gate.ErrGone if the campaign names another Redis, because this node's Redis may be that Redis after
// it was emptied.
func (rd *Reads) Decides(c *Status) error { return rd.store.Decides(c.Gate, c.Secret) }
