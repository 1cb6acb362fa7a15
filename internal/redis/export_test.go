package redis

import (
	"context"
	"strings"

	"github.com/firstcome/firstcome"
)

// Keys returns a campaign's keys in the order in which the scripts take them. campaignUID is the campaign's UID, or empty if it has none.
func Keys(id firstcome.CampaignID, uid string) []string {
	if uid == "" {
		uid = withoutUID
	}
	return keysOf(id, uid).all()
}

// Unnoticing makes the gate decide claims without checking the server's run, for the benchmark of that check.
func (g *Gate) Unnoticing() {
	const look = "  if why then return nil, {why} end\n"
	script := strings.Replace(decidePart, look, "", 1)
	blind := strings.Replace(prelude, "redis.call('INFO', 'replication')", "'role:master'", 1)
	if script == decidePart || blind == prelude {
		panic("the claim script looks otherwise at the server's run")
	}
	g.claim = newScript("claim", blind+linePart+statePart+script+claimLua)
}

// InspectorOf returns an Inspector over a gate's connection.
func InspectorOf(r *Redis) *Inspector { return &Inspector{r.conn} }

// Trust makes the gate decide claims of a campaign again after its server has restarted, or the campaign has moved to another server. In the product
// only a rebuild may do so. Tests without a ledger use it in the place of one.
func (r *Redis) Trust(ctx context.Context, id firstcome.CampaignID) error {
	k, err := r.conn.keysOf(ctx, id)
	if err != nil {
		return err
	}
	_, err = r.conn.run(ctx, newScript("trust", prelude+`redis.call('HSET', campaign_key, 'run', this_run()) return {'trusted'}`), k)
	return err
}
