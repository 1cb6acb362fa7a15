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
	claimScript string
	//go:embed lua/apply.lua
	applyScript string
	//go:embed lua/settle.lua
	settleScript string
	//go:embed lua/freeze.lua
	freezeScript string
	//go:embed lua/room.lua
	roomScript string
	//go:embed lua/empty.lua
	emptyScript string
	//go:embed lua/carry.lua
	carryScript string
	//go:embed lua/switch.lua
	switchScript string
	//go:embed lua/standing.lua
	standingScript string
	//go:embed lua/verify.lua
	verifyScript string
	//go:embed lua/stopped.lua
	stoppedScript string
	//go:embed lua/forget.lua
	forgetScript string
	//go:embed lua/has.lua
	hasScript string
	//go:embed lua/created.lua
	createdScript string
	//go:embed lua/place.lua
	placeScript string
	//go:embed lua/seat.lua
	seatScript string
	//go:embed lua/look.lua
	lookScript string
	//go:embed lua/rights.lua
	rightsScript string
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
