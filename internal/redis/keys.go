package redis

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// The keys. All begin with firstcome:, so that one pattern of an access list
// covers them, and none ever expires. Those of a campaign have its tag as hash tag: a
// cluster keeps them in one slot, where one script can use them all. Campaign ids
// are restricted to characters that mean nothing in a key; users are never in one.
const (
	// instanceKey is a string: the random name of this Redis as a gate, made once.
	instanceKey = "firstcome:instance"

	// layoutKey is a string: the newest layout that any campaign's keys may have: see layout.
	layoutKey = "firstcome:layout"

	// group is the recorders' consumer group of each journal.
	group = "recorders"
)

// drainedChannel carries how far recorders drained campaigns. Channels keep nothing; those of a
// Redis are not apart by database, so the instance is in their names, and the ledger too. A
// newer release's messages begin with a character that no campaign id has; this one skips them.
func (c *conn) drainedChannel() string { return "firstcome:drained:" + c.instance + ":" + c.ledger() }

// wakeChannel carries the ids of campaigns whose journal has something new.
func (c *conn) wakeChannel() string { return "firstcome:wake:" + c.instance + ":" + c.ledger() }

// ledger returns the name of the ledger.
func (c *conn) ledger() string {
	if c.options.Ledger == nil {
		return withoutUID
	}
	return c.options.Ledger()
}

// keys are those of one campaign of one ledger.
type keys struct {
	id firstcome.CampaignID

	// campaignUID tells the campaign from all others of its id: see firstcome.Change.
	campaignUID string

	// tag is the hash tag, the id and 12 digits of a hash of the UID. So another ledger, a later copy of this
	// one, or nodes with another code secret use other keys for the same id: see docs/adr/0025.
	tag string

	// campaign is a hash: the layout of the keys, terms as far as they decide, version, counters
	// and the gate's time. Made by change 1, until the campaign is retired.
	campaign string

	// holders is a hash from user to coupon, of the coupons in force (see appendEntry).
	// Until the campaign is retired.
	holders string

	// journal is a stream, an entry for each decided batch that issued. An entry
	// is deleted when the ledger has it; the stream goes when the campaign is retired.
	journal string

	// line is a stream, an entry for each ticket of the waiting line that has not ended: its id is GENERATION-TICKET, its
	// fields the user and when they joined. It goes when its generation ends, or the campaign is retired. Without a pace there is none.
	line string

	// tickets is a hash from user to ticket, of those in line and of those who left or were sent away (see
	// lua/line.lua). Until the campaign is retired.
	tickets string
}

// tagDigits are enough to tell apart whatever campaigns have the same id.
const tagDigits = 12

func keysOf(id firstcome.CampaignID, uid string) *keys {
	sum := sha256.Sum256([]byte(uid))
	tag := string(id) + ":" + hex.EncodeToString(sum[:tagDigits/2])
	key := func(name string) string { return "firstcome:{" + tag + "}:" + name }
	return &keys{id, uid, tag, key("campaign"), key("holders"), key("journal"), key("line"), key("tickets")}
}

// all returns the keys in the order in which the scripts take them.
func (k *keys) all() []string { return []string{k.campaign, k.holders, k.journal, k.line, k.tickets} }

const (
	// withoutUID is the UID where the ledger says none.
	withoutUID = "-"
	// maxKeys bounds of how many campaigns the keys are remembered, at some 500 bytes each.
	maxKeys = 10_000
)

// A keyring remembers the keys of campaigns. The UID of an id changes only if the
// ledger is replaced: so an id whose keys are not there is forgotten.
type keyring struct {
	*lru.Cache[firstcome.CampaignID, *keys]
}

func newKeyring() keyring {
	remembered, err := lru.New[firstcome.CampaignID, *keys](maxKeys)
	if err != nil {
		panic(err) // of a size below 1 only
	}
	return keyring{remembered}
}

// renew returns the keys of the campaign with a UID. If others are remembered, these are from now on. An empty UID
// says nothing.
func (r keyring) renew(id firstcome.CampaignID, uid string) *keys {
	before, known := r.Get(id)
	if known && (uid == "" || before.campaignUID == uid) {
		return before
	}
	k := keysOf(id, cmp.Or(uid, withoutUID))
	if known {
		r.Add(id, k)
	}
	return k
}

// keysOf returns a campaign's keys. It asks the ledger once which they are.
func (c *conn) keysOf(ctx context.Context, id firstcome.CampaignID) (*keys, error) {
	if k, ok := c.keyring.Get(id); ok {
		return k, nil
	}
	uid := withoutUID
	if c.options.CampaignUID != nil {
		var err error
		if uid, err = c.options.CampaignUID(ctx, id); err != nil {
			return nil, fmt.Errorf("ask the ledger whose campaign it is: %w", err)
		}
	}
	k := keysOf(id, uid)
	c.keyring.Add(id, k)
	return k, nil
}

// keysIn returns a campaign's keys, given the revision that the ledger has just told.
func (c *conn) keysIn(r gate.Revision) *keys {
	return c.keyring.renew(r.Campaign, r.CampaignUID)
}

// tagged returns the keys of a tag, if somebody here asked for them.
func (c *conn) tagged(tag string) *keys {
	id, _, _ := strings.Cut(tag, ":")
	if k, ok := c.keyring.Get(firstcome.CampaignID(id)); ok && k.tag == tag {
		return k
	}
	return nil
}

// missing is the error of a campaign that the gate does not have under these keys. The next call
// asks the ledger for the keys again, because it may have been replaced under this node.
func (c *conn) missing(ctx context.Context, k *keys) error {
	c.keyring.Remove(k.id)
	if c.options.OnUnknown != nil {
		if err := c.options.OnUnknown(ctx, k.id); err != nil {
			return err
		}
	}
	return firstcome.ErrNoCampaign
}

// layout is the newest layout of the gate's keys that this firstcome knows. A release whose keys earlier ones
// would misread has a higher layout; the scripts have the same number. See docs/adr/0014.
//
// Two places say which one is written. layoutKey is raised first, and keeps older programs
// from starting and from making campaigns. The field layout of a campaign's hash is raised by the
// script that first writes that campaign's keys so. Every script and every reading compares it,
// so that a program which runs already stops at that very instant, campaign by campaign.
const layout = 1

// knows reports whether this firstcome knows a layout. Keys without a layout have the first.
func knows(of string) bool {
	n, err := strconv.Atoi(of)
	return of == "" || err == nil && n <= layout
}

// A newerError means that keys have a layout that this firstcome does not know.
type newerError struct{ layout string }

func (e newerError) Error() string {
	return fmt.Sprintf("a newer firstcome writes the gate's keys in this Redis, in the layout %q, and this one knows none above %d: run the newer firstcome on this node too", e.layout, layout)
}

// newer is the error of a campaign whose keys have a layout that this firstcome does not know.
func newer(of string) error {
	return fmt.Errorf("%w: %w", firstcome.ErrGateMismatch, newerError{of})
}

// openLayout refuses a Redis with a layout that this firstcome does not know. It sets
// this layout in one that has none yet.
func (c *conn) openLayout(ctx context.Context) error {
	of, err := c.once(ctx, layoutKey, strconv.Itoa(layout))
	if err == nil && !knows(of) {
		err = newerError{of}
	}
	return err
}

// checkLayout returns firstcome.ErrGateMismatch if campaigns of this Redis may have a layout
// that this firstcome does not know.
func (c *conn) checkLayout(ctx context.Context) error {
	of, err := c.text(ctx, layoutKey)
	if err == nil && !knows(of) {
		err = newer(of)
	}
	return err
}

// A remembered has what this node was told of each campaign: by the gate in its answers, and by the ledger when it was last read.
type remembered struct {
	ledger func(firstcome.CampaignID) gate.Revision // see Options.Noted; may be nil
	mu     sync.Mutex                               // guards each step from Get to Add
	of     *lru.Cache[string, gate.Witness]         // what the gate told, by tag: see keys
}

func newMemory(ledger func(firstcome.CampaignID) gate.Revision) *remembered {
	of, err := lru.New[string, gate.Witness](maxKeys)
	if err != nil {
		panic(err) // of a size below 1 only
	}
	return &remembered{ledger: ledger, of: of}
}

// noted returns a campaign as last read from the ledger, or the zero value.
func (m *remembered) noted(k *keys) gate.Revision {
	if m.ledger == nil {
		return gate.Revision{}
	}
	return m.ledger(k.id)
}

// witness returns the least that the gate must know of a campaign.
func (m *remembered) witness(k *keys) gate.Witness {
	least, _ := m.of.Get(k.tag)
	noted := m.noted(k)
	least.Add(gate.Witness{Epoch: noted.Epoch, Version: noted.Applied, Number: noted.Drained})
	return least
}

// add adds what an answer of the gate says. Answers may come in any order.
func (m *remembered) add(k *keys, told gate.Witness) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, _ := m.of.Get(k.tag)
	now := before
	if now.Add(told); now != before {
		m.of.Add(k.tag, now)
	}
}

// behind returns the error of a gate that is in an earlier epoch than its witness. The error is errUnverified if this node has not read yet from the
// ledger that the gate's epoch has ended.
func (m *remembered) behind(k *keys, a *answer) error {
	if epoch, ledger := a.integer("epoch"), m.noted(k).Epoch; epoch < ledger {
		return &gate.StaleEpochError{Campaign: k.id, Gate: epoch, Ledger: ledger}
	}
	return errUnverified
}

// witnessArg returns a witness as the scripts take it: see older in lua/line.lua.
func witnessArg(w gate.Witness) string {
	var text []byte
	for _, n := range []int64{w.Epoch, w.Version, w.Number, w.Ticket.Generation, w.Ticket.Number} {
		text = append(strconv.AppendInt(text, n, 10), ' ')
	}
	return string(text[:len(text)-1])
}
