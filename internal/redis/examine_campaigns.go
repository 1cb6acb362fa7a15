package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
)

// A Placed campaign is one that a ledger says is decided by a gate.
type Placed struct {
	Campaign firstcome.CampaignID
	Gate     string // its name
	Marker   string // see firstcome.Change
	Made     bool   // the gate had it
	Closed   bool   // it issues nothing any more
	// Drained returns how far the ledger has it: see flow.Drained.Through. It is asked after Redis,
	// because a campaign goes on meanwhile.
	Drained func(context.Context) (int64, error)
}

// named is how many campaigns a finding names.
const named = 5

// A census is what Redis has of a ledger's campaigns: each is a text that names the campaign, in one of these.
type census struct {
	own       []string // as the ledger has them
	ahead     []string // of which the ledger has less than Redis was told
	lost      []string // that Redis had
	elsewhere []string // of another gate
	past      []string // of another gate, and closed
}

// ExamineCampaigns says whether this Redis has those of a ledger's campaigns that a gate beside the ledger decides, as
// the ledger's, and whether the ledger has what Redis was told that it has. It reads only.
func ExamineCampaigns(ctx context.Context, options Options, ledger string, at []Placed) doctor.Findings {
	e := &exam{ctx: ctx}
	const what = "the gate's campaigns"
	gate, err := Inspect(ctx, options)
	if err != nil {
		return nil // Examine says it
	}
	defer gate.Close()
	e.gate = gate
	c, err := e.count(at)
	if err != nil {
		e.Add(doctor.Fail, what, "what the message says", "they cannot be read: %v", err)
		return e.Findings
	}
	if len(c.own) == len(at) {
		e.Add(doctor.OK, what, "", "%d of the ledger %s", len(c.own), ledger)
	}
	for _, f := range c.findings(gate.Name(), ledger) {
		if len(f.ids) > 0 {
			e.Add(f.grade, what, f.fix, f.found+": %s", len(f.ids), strings.Join(f.ids[:min(len(f.ids), named)], ", "))
		}
	}
	return e.Findings
}

// A wrong is what is found of some campaigns; found takes how many they are.
type wrong struct {
	grade      doctor.Grade
	ids        []string
	found, fix string
}

func (c *census) findings(gate, ledger string) []wrong {
	const runbook = "if its data is gone, see docs/runbooks/FirstcomeGateLost.md"
	this, bring := "this Redis (which is "+gate+")", "name their gate with --gate, or bring that Redis back with its data; "+runbook
	past := wrong{doctor.Warn, c.past, "%d closed campaigns were decided by another gate than " + this, "nothing, if they are in the ledger: firstcome audit says so where --gate names theirs"}
	if gate == "" {
		this = "this Redis (which has no name: it was emptied, or never was a gate)"
		bring += "; if this Redis is meant to be new, start serve once with --new-gate"
		past = wrong{doctor.Fail, c.past, "%d closed campaigns were decided by another gate than " + this, bring} // they keep it from getting a name
	}
	return []wrong{
		{doctor.Fail, c.elsewhere, "%d campaigns are decided by another gate than " + this, bring},
		past,
		{doctor.Fail, c.lost, "Redis has lost %d campaigns", "bring its data back; " + runbook},
		{
			doctor.Fail, c.ahead, "of %d campaigns Redis knows more as recorded than the ledger " + ledger + " has, so the ledger is older than it was",
			"bring the newer ledger back, or do as operate.md says of an older backup",
		},
	}
}

// count looks at each campaign.
func (e *exam) count(at []Placed) (*census, error) {
	all := &census{}
	for _, c := range at {
		ctx, cancel := context.WithTimeout(e.ctx, callTimeout)
		err := e.gate.countOne(ctx, all, c)
		cancel()
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (g *Gate) countOne(ctx context.Context, all *census, c Placed) error {
	switch {
	case c.Gate != g.Name() && c.Closed:
		all.past = append(all.past, fmt.Sprintf("%s (%s)", c.Campaign, c.Gate))
		return nil
	case c.Gate != g.Name():
		all.elsewhere = append(all.elsewhere, fmt.Sprintf("%s (%s)", c.Campaign, c.Gate))
		return nil
	}
	k := keysOf(c.Campaign, c.Marker)
	values, err := g.client.Do(ctx, g.client.B().Hmget().Key(k.campaign).Field("version", "drained_through", "in_force", "last_number").Build()).ToArray()
	if err = classify(err); err != nil && ofOne(err) {
		all.lost = append(all.lost, fmt.Sprintf("%s (its key is somebody else's: %v)", c.Campaign, err))
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case values[0].IsNil() && c.Made:
		all.lost = append(all.lost, fmt.Sprintf("%s (there is no key %s)", c.Campaign, k.campaign))
	case values[0].IsNil(): // it is being made
		all.own = append(all.own, string(c.Campaign))
	default:
		return g.countOwn(ctx, all, c, k, values)
	}
	return nil
}

// countOwn is countOne of the ledger's own campaign, of which the hash has these values.
func (g *Gate) countOwn(ctx context.Context, all *census, c Placed, k *keys, values []rueidis.RedisMessage) error {
	var of parts
	for n, into := range []*int64{&of.version, &of.drained, &of.inForce, &of.lastNumber} {
		var err error
		if *into, err = whole(values[n]); err != nil {
			all.lost = append(all.lost, fmt.Sprintf("%s (its hash cannot be read: %v)", c.Campaign, err))
			return nil
		}
	}
	gone, err := g.partGone(ctx, k, of)
	if err != nil {
		return err
	}
	if gone {
		all.lost = append(all.lost, fmt.Sprintf("%s (a part of it is gone)", c.Campaign))
		return nil
	}
	less, err := c.less(ctx, of.drained)
	if err != nil {
		return err
	}
	all.ahead = append(all.ahead, less...)
	if len(less) == 0 {
		all.own = append(all.own, string(c.Campaign))
	}
	return nil
}

// less returns that the ledger has less of a campaign than Redis was told, if it has.
func (c *Placed) less(ctx context.Context, through int64) ([]string, error) {
	drained, err := c.Drained(ctx)
	if err != nil || drained >= through {
		return nil, err
	}
	return []string{fmt.Sprintf("%s (numbers up to %d, and the ledger has them up to %d)", c.Campaign, through, drained)}, nil
}
