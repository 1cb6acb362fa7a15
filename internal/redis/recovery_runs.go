package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
)

var errLoading = fmt.Errorf("%w: the server still reads its file", firstcome.ErrGateUnavailable)

// Runs returns the runs of the servers of the gate that answer, in the order of their names. It is an error if none does. A server that
// still reads its file does not answer.
func (rec *Recovery) Runs(ctx context.Context) ([]recovery.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var runs []recovery.Run
	var failed error
	for _, node := range rec.conn.client.Nodes() {
		text, err := node.Do(ctx, node.B().Info().Build()).ToString()
		if err != nil {
			failed = classify(err)
			continue
		}
		info := parseInfo(text)
		if info["loading"] == "1" { // until it has read its file it says that it keeps none
			failed = errLoading
			continue
		}
		if info["role"] != "master" && info["redis_mode"] == "cluster" {
			continue
		}
		durable := keepsAll(info)
		if durable {
			if durable, err = syncsFirst(ctx, node); err != nil { // a server that ends now is not one that does not sync
				failed = err
				continue
			}
		}
		runs = append(runs, recovery.Run{ID: runOf(info), Durable: durable})
	}
	if len(runs) == 0 {
		return nil, failed
	}
	slices.SortFunc(runs, func(a, b recovery.Run) int { return strings.Compare(a.ID, b.ID) })
	return runs, nil
}

// runOf returns the run of a server by its INFO, as lua/prelude.lua names it.
func runOf(info map[string]string) string {
	if info["role"] != "master" {
		return "replica"
	}
	return info["master_replid"]
}

// syncsFirst reports whether a server syncs its file before it answers, also while it rewrites that file. It is false if the gate's user may not
// read the settings.
func syncsFirst(ctx context.Context, node rueidis.Client) (bool, error) {
	set, err := settings(ctx, node)
	var e *Error
	if errors.As(classify(err), &e) && (e.Code == "NOPERM" || e.Code == plain) {
		return false, nil
	}
	return set["appendfsync"] == "always" && set[notWhileRewriting] == "no", classify(err)
}

// notWhileRewriting is the setting by which a server does not sync while a child process writes to the disk.
const notWhileRewriting = "no-appendfsync-on-rewrite"

// settings returns those of a server that say when it syncs its append-only file.
func settings(ctx context.Context, node rueidis.Client) (map[string]string, error) {
	return node.Do(ctx, node.B().ConfigGet().Parameter("*appendfsync*").Build()).AsStrMap()
}

// keepsAll reports whether a server has its whole state after a restart, if it syncs often enough: it appends to a file, was never a replica,
// and has no replica. A replica that was connected within the last hour has left a backlog.
func keepsAll(info map[string]string) bool {
	return info["role"] == "master" && info["aof_enabled"] == "1" && info["connected_slaves"] == "0" && info["repl_backlog_active"] == "0" &&
		strings.Trim(info["master_replid2"], "0") == ""
}

// Named reports whether Redis still has this gate's name. A Redis that was emptied has no name.
func (rec *Recovery) Named(ctx context.Context) (bool, error) {
	name, err := rec.conn.text(ctx, instanceKey)
	return name != "" && name == rec.conn.instance, err
}

// Rename gives Redis the name of this gate again, if it has none, because somebody emptied it. Another name is an error. A gate without a
// name has none to give.
func (rec *Recovery) Rename(ctx context.Context) error {
	if rec.conn.instance == "" {
		return nil
	}
	name, err := rec.conn.once(ctx, instanceKey, rec.conn.instance)
	if err == nil && name != rec.conn.instance {
		err = fmt.Errorf("%w: Redis has the name %s, and this node's gate is %s: restart the node", firstcome.ErrGateMismatch, name, rec.conn.instance)
	}
	if err == nil {
		err = rec.conn.openLayout(ctx)
	}
	return wrap(err, "give Redis its name again")
}

// createdKey is a hash of a ledger's campaigns that were made here: from the id and the secret's fingerprint to the UID. An entry is made
// before its campaign's keys, and stays for good, also when those go. The ledger may forget a campaign, where a backup of it is restored. One
// of the same id and the same secret would have the codes of that one's coupons: see docs/adr/0038.
func (c *conn) createdKey() string { return "firstcome:created:" + c.ledger() }

// createdField returns the field of a campaign. An id has no dot.
func (c *conn) createdField(id firstcome.CampaignID) string {
	return string(id) + "." + c.options.Secret.Fingerprint()
}

// note notes that a campaign is made here. gate.ErrLedgerForgot says that the ledger had made another one under its id.
func (c *conn) note(ctx context.Context, k *keys) error {
	noted, err := createdScript.Exec(ctx, c.client, []string{c.createdKey()}, []string{c.createdField(k.id), k.campaignUID}).ToString()
	switch {
	case err != nil:
		return classify(err)
	case noted != k.campaignUID:
		return gate.ErrLedgerForgot
	}
	return nil
}

// Created reports whether this gate's ledger ever created a campaign of an id here, with this secret. Whether it still has that, the ledger knows.
func (rec *Recovery) Created(ctx context.Context, id firstcome.CampaignID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := rec.conn.client.Do(ctx, rec.conn.client.B().Hget().Key(rec.conn.createdKey()).Field(rec.conn.createdField(id)).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	return err == nil, wrap(classify(err), "look whether %s was made", id)
}
