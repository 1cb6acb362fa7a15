package redis

import (
	"strconv"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A memory has what this node was told of each campaign: by the gate in its answers, and by the ledger when it was last read.
type memory struct {
	ledger func(firstcome.CampaignID) gate.Revision // see Options.Noted; may be nil
	mu     sync.Mutex                               // guards each step from Get to Add
	of     *lru.Cache[string, gate.Witness]         // what the gate told, by tag: see keys
}

func newMemory(ledger func(firstcome.CampaignID) gate.Revision) *memory {
	of, err := lru.New[string, gate.Witness](maxKeys)
	if err != nil {
		panic(err) // of a size below 1 only
	}
	return &memory{ledger: ledger, of: of}
}

// noted returns a campaign as last read from the ledger, or the zero value.
func (m *memory) noted(k *keys) gate.Revision {
	if m.ledger == nil {
		return gate.Revision{}
	}
	return m.ledger(k.id)
}

// witness returns the least that the gate must know of a campaign.
func (m *memory) witness(k *keys) gate.Witness {
	least, _ := m.of.Get(k.tag)
	noted := m.noted(k)
	least.Add(gate.Witness{Epoch: noted.Epoch, Version: noted.Applied, Number: noted.Drained})
	return least
}

// add adds what an answer of the gate says. Answers may come in any order.
func (m *memory) add(k *keys, told gate.Witness) {
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
func (m *memory) behind(k *keys, a *answer) error {
	if epoch, ledger := a.whole("epoch"), m.noted(k).Epoch; epoch < ledger {
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
