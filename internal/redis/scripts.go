package redis

import (
	_ "embed"
	"errors"
	"fmt"
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
	linePart string
	//go:embed lua/state.lua
	statePart string
	//go:embed lua/decide.lua
	decidePart string
	//go:embed lua/claim.lua
	claimLua string
	//go:embed lua/issue.lua
	issueLua string
	//go:embed lua/serve.lua
	serveLua string
	//go:embed lua/leave.lua
	leaveLua string
	//go:embed lua/apply.lua
	applyLua string
	//go:embed lua/create.lua
	createLua string
	//go:embed lua/settle.lua
	settleLua string
	//go:embed lua/has.lua
	hasLua string
	//go:embed lua/journal_state.lua
	journalStateLua string
	//go:embed lua/place.lua
	placeLua string
	//go:embed lua/forget.lua
	forgetLua string
	//go:embed lua/freeze.lua
	freezeLua string
	//go:embed lua/room.lua
	roomLua string
	//go:embed lua/empty.lua
	emptyLua string
	//go:embed lua/carry.lua
	carryLua string
	//go:embed lua/seat.lua
	seatLua string
	//go:embed lua/replace.lua
	replaceLua string
	//go:embed lua/gate_state.lua
	gateStateLua string
	//go:embed lua/inspect.lua
	inspectLua string
	//go:embed lua/verify.lua
	verifyLua string
	//go:embed lua/created.lua
	createdLua string
	//go:embed lua/rights.lua
	rightsLua string
)

var (
	claimScript        = newScript("claim", prelude+linePart+statePart+decidePart+claimLua)
	issueScript        = newScript("issue", prelude+linePart+statePart+decidePart+issueLua)
	serveScript        = newScript("serve", prelude+linePart+statePart+decidePart+serveLua)
	leaveScript        = newScript("leave", prelude+linePart+statePart+decidePart+leaveLua)
	applyScript        = newScript("apply", prelude+linePart+statePart+applyLua)
	createScript       = newScript("create", prelude+linePart+createLua)
	settleScript       = newScript("settle", prelude+settleLua)
	hasScript          = newScript("has", prelude+hasLua)
	journalStateScript = newScript("journal_state", prelude+journalStateLua)
	placeScript        = newScript("place", prelude+linePart+placeLua)
	forgetScript       = newScript("forget", prelude+forgetLua)
	freezeScript       = newScript("freeze", prelude+freezeLua)
	roomScript         = newScript("room", prelude+roomLua)
	emptyScript        = newScript("empty", prelude+emptyLua)
	carryScript        = newScript("carry", prelude+linePart+carryLua)
	seatScript         = newScript("seat", prelude+seatLua)
	replaceScript      = newScript("replace", prelude+replaceLua)
	gateStateScript    = newScript("gate_state", prelude+gateStateLua)
	inspectScript      = newScript("inspect", prelude+linePart+inspectLua)
	verifyScript       = newScript("verify", prelude+verifyLua)
	createdScript      = rueidis.NewLuaScript(createdLua)
	rightsScript       = rueidis.NewLuaScript(rightsLua)
)

// A script is a script about a campaign.
type script struct {
	name string
	*rueidis.Lua
}

func newScript(name, text string) *script { return &script{name, rueidis.NewLuaScript(text)} }

// An answer is what a script returned: a word, then names and values in turn. The first value that is missing or cannot be read makes err, and
// then all values are zero.
type answer struct {
	script string
	word   string
	parts  []rueidis.RedisMessage
	next   int // the part at which the next name is looked for first: values are mostly read in their order
	err    error
}

// value returns the value of a name.
func (a *answer) value(name string) (m rueidis.RedisMessage) {
	if a.err != nil {
		return m
	}
	for range len(a.parts) / 2 {
		if a.next+1 >= len(a.parts) {
			a.next = 0
		}
		at := a.next
		a.next += 2
		if found, _ := a.parts[at].ToString(); found == name {
			return a.parts[at+1]
		}
	}
	a.fail(name, errors.New("it is missing"))
	return m
}

func (a *answer) fail(name string, err error) {
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("the %s script's answer %q cannot be read: %s: %w", a.script, a.word, name, err)
	}
}

// text returns a value that is a text.
func (a *answer) text(name string) (text string) {
	m := a.value(name)
	if a.err == nil {
		var err error
		text, err = m.ToString()
		a.fail(name, err)
	}
	return text
}

// integer returns a value that is a whole number, or 0 if the value is empty.
func (a *answer) integer(name string) (n int64) {
	m := a.value(name)
	if a.err == nil {
		var err error
		n, err = parseInt(m)
		a.fail(name, err)
	}
	return n
}

// is reports whether a value is 1.
func (a *answer) is(name string) bool { return a.integer(name) == 1 }

// instant returns a value that is a time, or the zero time if the value is empty.
func (a *answer) instant(name string) time.Time { return instant(a.integer(name)) }

// texts returns a value that is a list of texts.
func (a *answer) texts(name string) (texts []string) {
	m := a.value(name)
	if a.err == nil {
		var err error
		texts, err = m.AsStrSlice()
		a.fail(name, err)
	}
	return texts
}

// integers returns a value that is a list of whole numbers.
func (a *answer) integers(name string) (numbers []int64) {
	m := a.value(name)
	if a.err == nil {
		var err error
		numbers, err = m.AsIntSlice()
		a.fail(name, err)
	}
	return numbers
}

// unexpected returns the error for a word that the script's contract does not have.
func (a *answer) unexpected() error {
	return fmt.Errorf("the %s script answered %q", a.script, a.word)
}

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

// quarantineArg is firstcome.QuarantineFor as the scripts take it.
var quarantineArg = strconv.FormatInt(firstcome.QuarantineFor.Microseconds(), 10)

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

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }
