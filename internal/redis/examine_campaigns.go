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
	// Settled returns how far the ledger has it: see flow.Settled.Through. It is asked after Redis,
	// because a campaign goes on meanwhile.
	Settled func(context.Context) (int64, error)
}

// named is how many campaigns a finding names.
const named = 5

// ExamineCampaigns says whether those of a ledger's campaigns that this Redis decides are the
// ledger's there, and whether the ledger has what Redis was told that it has. An error is Redis's,
// or the ledger's.
func ExamineCampaigns(ctx context.Context, options Options, ledger string, at []Placed) (doctor.Findings, error) {
	client, err := connect(options)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	e := &exam{ctx: ctx, gate: &Gate{client: client, options: options}}
	own, foreign, ahead, err := e.tell(at)
	if err != nil {
		return nil, err
	}
	const what = "the gate's campaigns"
	if len(foreign)+len(ahead) == 0 {
		e.Add(doctor.OK, what, "", "%d of the ledger %s, and none of its ids is another ledger's", own, ledger)
	}
	if len(ahead) > 0 {
		e.Add(doctor.Fail, what, "bring the newer ledger back, or do as operate.md says of an older backup",
			"of %d campaigns Redis knows more as recorded than the ledger %s has, so the ledger is older than it was: %s",
			len(ahead), ledger, strings.Join(ahead[:min(len(ahead), named)], ", "))
	}
	if len(foreign) > 0 {
		e.Add(doctor.Fail, what, "give each ledger a Redis or a database of Redis of its own, and campaigns that both have another id",
			"Redis has %d campaigns of another ledger, or of a copy of this one, under ids of the ledger %s, which decides none of them: %s",
			len(foreign), ledger, strings.Join(foreign[:min(len(foreign), named)], ", "))
	}
	return e.Findings, nil
}

// tell counts the campaigns that are the ledger's, and returns those that are another's, and those
// of which the ledger has less than Redis was told.
func (e *exam) tell(at []Placed) (own int, foreign, ahead []string, err error) {
	ctx, cancel := context.WithTimeout(e.ctx, callTimeout)
	defer cancel()
	client := e.gate.client
	instance, err := client.Do(ctx, client.B().Get().Key(instanceKey).Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		return 0, nil, nil, classify(err)
	}
	for _, c := range at {
		if c.Gate != "redis:"+instance {
			continue
		}
		values, err := client.Do(ctx, client.B().Hmget().Key(campaignKey(c.Campaign)).Field("version", "marker", "settled").Build()).ToArray()
		if err != nil {
			return 0, nil, nil, classify(err)
		}
		switch marker, _ := values[1].ToString(); {
		case values[0].IsNil(): // it is being made, or lost: the audit tells
		case marker == c.Marker:
			own++
			less, err := c.less(ctx, values[2])
			if err != nil {
				return 0, nil, nil, err
			}
			ahead = append(ahead, less...)
		default:
			foreign = append(foreign, fmt.Sprintf("%s (its marker is %q)", c.Campaign, marker))
		}
	}
	return own, foreign, ahead, nil
}

// less returns that the ledger has less of a campaign than Redis was told, if it has.
func (c *Placed) less(ctx context.Context, told rueidis.RedisMessage) ([]string, error) {
	through, err := whole(told)
	if err != nil {
		return nil, err
	}
	settled, err := c.Settled(ctx)
	if err != nil || settled >= through {
		return nil, err
	}
	return []string{fmt.Sprintf("%s (numbers up to %d, and the ledger has them up to %d)", c.Campaign, through, settled)}, nil
}
