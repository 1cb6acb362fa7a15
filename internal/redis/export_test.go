package redis

import (
	"context"
	"strings"

	"github.com/firstcome/firstcome"
)

// Keys returns the keys of the campaign with a marker, empty for none, in the order in which the scripts take them.
func Keys(id firstcome.CampaignID, marker string) []string {
	if marker == "" {
		marker = unmarked
	}
	return keysOf(id, marker).all()
}

// Unnoticing has the gate decide claims without a look at the server's run: the reference of what that look costs.
func (g *Gate) Unnoticing() {
	const look = "  if why then return nil, {why} end\n"
	script := strings.Replace(decidePart, look, "", 1)
	blind := strings.Replace(prelude, "redis.call('INFO', 'replication')", "'role:master'", 1)
	if script == decidePart || blind == prelude {
		panic("the claim script looks otherwise at the server's run")
	}
	g.claim = newScript("claim", blind+linePart+statePart+script+claimLua)
}

// Trust has the gate decide claims of a campaign again after its server restarted or the campaign moved to another one. Only a rebuild
// may do so elsewhere: it stands for one where a test has no ledger.
func (r *Redis) Trust(ctx context.Context, id firstcome.CampaignID) error {
	k, err := r.conn.keysOf(ctx, id)
	if err != nil {
		return err
	}
	_, err = r.conn.run(ctx, newScript("trust", prelude+`redis.call('HSET', campaign_key, 'run', this_run()) return {'trusted'}`), k)
	return err
}
