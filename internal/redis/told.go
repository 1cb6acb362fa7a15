package redis

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// A told is how far the gate went in an epoch of a campaign, as it told this node.
type told struct {
	epoch, number int64
}

// args returns it as the scripts take it.
func (t told) args() []string { return []string{whole10(t.epoch), whole10(t.number)} }

// A memory keeps what the gate told this node of each campaign. A Redis that has less in the same epoch is an older state of itself, and
// nothing else may know it: it agrees with itself, and with a ledger to which what is missing had not come yet.
type memory struct {
	mu sync.Mutex               // guards each step from Get to Add
	of *lru.Cache[string, told] // by tag: see keys
}

func newMemory() *memory {
	of, err := lru.New[string, told](maxKeys)
	if err != nil {
		panic(err) // of a size below 1 only
	}
	return &memory{of: of}
}

// told returns what the gate told of a campaign; zero: nothing.
func (m *memory) told(k *keys) told {
	t, _ := m.of.Get(k.tag)
	return t
}

// hears notes how far the gate went by an answer. Answers may come in any order.
func (m *memory) hears(k *keys, now told) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, _ := m.of.Get(k.tag)
	if now.epoch > before.epoch || now.epoch == before.epoch && now.number > before.number {
		m.of.Add(k.tag, now)
	}
}
