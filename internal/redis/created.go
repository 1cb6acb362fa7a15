package redis

import (
	"context"
	"strings"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// createdKey is a hash of a ledger's campaigns that were made here: from the id and the secret's fingerprint to the marker. An entry is made
// before its campaign's keys, and stays for good, also when those go. The ledger may forget a campaign, where a backup of it is restored. One
// of the same id and the same secret would have the codes of that one's coupons: see docs/adr/0038.
func (g *Gate) createdKey() string { return "firstcome:created:" + g.ledger() }

// createdField returns the field of a campaign. An id has no dot.
func (g *Gate) createdField(id firstcome.CampaignID) string {
	return string(id) + "." + g.options.Secret.Fingerprint()
}

// note notes that a campaign is made here. gate.ErrForgotten says that the ledger had made another one under its id.
func (g *Gate) note(ctx context.Context, k *keys) error {
	noted, err := rueidis.NewLuaScript(createdScript).Exec(ctx, g.client, []string{g.createdKey()}, []string{g.createdField(k.id), k.marker}).ToString()
	switch {
	case err != nil:
		return classify(err)
	case noted != k.marker:
		return gate.ErrForgotten
	}
	return nil
}

// Created reports whether this gate's ledger ever created a campaign of an id here, with this secret. Whether it still has that, the ledger knows.
func (g *Gate) Created(ctx context.Context, id firstcome.CampaignID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := g.client.Do(ctx, g.client.B().Hget().Key(g.createdKey()).Field(g.createdField(id)).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	return err == nil, wrap(classify(err), "look whether %s was made", id)
}

// EachCreated calls each with the ids of all campaigns that this gate's ledger ever made here, in no order, perhaps twice, until it returns an error.
func (g *Gate) EachCreated(ctx context.Context, each func(firstcome.CampaignID) error) error {
	err := g.eachField(ctx, g.createdKey(), func(field, _ string) error {
		id, _, _ := strings.Cut(field, ".")
		return each(firstcome.CampaignID(id))
	})
	return wrap(err, "read which campaigns were made")
}
