package redis

import (
	_ "embed"
	"math"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
)

var (
	//go:embed lua/prelude.lua
	prelude string
	//go:embed lua/line.lua
	lines string
	//go:embed lua/claim.lua
	claimLua string
	//go:embed lua/apply.lua
	applyLua string
	//go:embed lua/settle.lua
	settleLua string
	//go:embed lua/freeze.lua
	freezeLua string
	//go:embed lua/room.lua
	roomLua string
	//go:embed lua/empty.lua
	emptyLua string
	//go:embed lua/carry.lua
	carryLua string
	//go:embed lua/switch.lua
	switchLua string
	//go:embed lua/standing.lua
	standingLua string
	//go:embed lua/verify.lua
	verifyLua string
	//go:embed lua/stopped.lua
	stoppedLua string
	//go:embed lua/forget.lua
	forgetLua string
	//go:embed lua/has.lua
	hasLua string
	//go:embed lua/created.lua
	createdLua string
	//go:embed lua/place.lua
	placeLua string
	//go:embed lua/seat.lua
	seatLua string
	//go:embed lua/look.lua
	lookLua string
	//go:embed lua/rights.lua
	rightsLua string
)

var (
	claimScript    = aboutLine(claimLua)
	applyScript    = aboutLine(applyLua)
	settleScript   = aboutCampaign(settleLua)
	freezeScript   = aboutCampaign(freezeLua)
	roomScript     = aboutCampaign(roomLua)
	emptyScript    = aboutCampaign(emptyLua)
	carryScript    = aboutLine(carryLua)
	switchScript   = aboutCampaign(switchLua)
	standingScript = aboutLine(standingLua)
	verifyScript   = aboutCampaign(verifyLua)
	stoppedScript  = aboutCampaign(stoppedLua)
	forgetScript   = aboutCampaign(forgetLua)
	hasScript      = aboutCampaign(hasLua)
	createdScript  = rueidis.NewLuaScript(createdLua)
	placeScript    = aboutLine(placeLua)
	seatScript     = aboutCampaign(seatLua)
	lookScript     = aboutCampaign(lookLua)
	rightsScript   = rueidis.NewLuaScript(rightsLua)
)

// aboutCampaign returns a script about a campaign: it begins with the prelude.
func aboutCampaign(script string) *rueidis.Lua { return rueidis.NewLuaScript(prelude + script) }

// aboutLine returns a script about a campaign that knows waiting lines.
func aboutLine(script string) *rueidis.Lua { return rueidis.NewLuaScript(prelude + lines + script) }

// unlimited stands for firstcome.Unlimited in Redis: the largest number that
// Lua counts to without rounding.
const unlimited = 1<<53 - 1

// quantityArg returns a quantity as the scripts take it.
func quantityArg(quantity int64) string {
	if quantity == firstcome.Unlimited {
		quantity = unlimited
	}
	return strconv.FormatInt(quantity, 10)
}

// micros returns an instant as the scripts take it: microseconds since 1970, or
// nothing for the zero time.
func micros(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMicro(), 10)
}

// instant returns what micros was made of; 0 is no instant.
func instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// backlogArg returns the limit of undrained numbers as the claim script takes it.
func backlogArg(limit int64) string {
	switch {
	case limit < 0 || limit == math.MaxInt64:
		return ""
	case limit == 0:
		limit = defaultBacklog
	}
	return strconv.FormatInt(limit, 10)
}

func whole10(n int64) string { return strconv.FormatInt(n, 10) }
