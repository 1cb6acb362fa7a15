package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

const (
	// unmarked is the marker where the ledger says none.
	unmarked = "-"
	// maxMarkers bounds how many are remembered, at some 100 bytes each.
	maxMarkers = 10_000
)

// Markers remembers what the ledger calls its campaigns.
type markers struct {
	mu sync.Mutex // guards of
	of map[firstcome.CampaignID]string
}

func (m *markers) get(id firstcome.CampaignID) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	marker, ok := m.of[id]
	return marker, ok
}

func (m *markers) put(id firstcome.CampaignID, marker string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil || len(m.of) >= maxMarkers {
		m.of = map[firstcome.CampaignID]string{}
	}
	m.of[id] = marker
}

func (m *markers) forget(id firstcome.CampaignID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, id)
}

// ledger returns the name of the ledger.
func (g *Gate) ledger() string {
	if g.options.Ledger == nil {
		return unmarked
	}
	return g.options.Ledger()
}

// marker returns what the ledger calls a campaign. It asks the ledger once.
func (g *Gate) marker(ctx context.Context, id firstcome.CampaignID) (string, error) {
	if g.options.Marker == nil {
		return unmarked, nil
	}
	if marker, ok := g.markers.get(id); ok {
		return marker, nil
	}
	marker, err := g.options.Marker(ctx, id)
	if err != nil {
		return "", fmt.Errorf("ask the ledger whose campaign it is: %w", err)
	}
	g.markers.put(id, marker)
	return marker, nil
}

// Taken returns firstcome.ErrGateMismatch if the gate has a campaign of an id that the ledger
// does not have: it is another ledger's. Any other error says that this cannot be told.
func (g *Gate) Taken(ctx context.Context, id firstcome.CampaignID) error {
	if _, err := g.marker(ctx, id); !errors.Is(err, firstcome.ErrNoCampaign) {
		return err
	}
	values, err := g.client.Do(ctx, g.client.B().Hmget().Key(campaignKey(id)).Field("version", "marker").Build()).ToArray()
	if err != nil {
		return classify(err)
	}
	if values[0].IsNil() {
		return nil
	}
	marker, _ := values[1].ToString()
	return g.foreign(ctx, id, marker)
}

// marked returns the marker of the campaign that a revision is of.
func (g *Gate) marked(r flow.Revision) string {
	if r.Marker != "" {
		return r.Marker
	}
	marker, _ := g.known(r.Campaign)
	return marker
}

// known returns the marker of a campaign, if it was asked for.
func (g *Gate) known(id firstcome.CampaignID) (string, bool) {
	if g.options.Marker == nil {
		return unmarked, true
	}
	return g.markers.get(id)
}

// ledgerOf returns the name of the ledger that a marker begins with.
func ledgerOf(marker string) string {
	name, _, _ := strings.Cut(marker, ".")
	return name
}

// foreign is the error of a campaign that has another marker than the ledger's. The ledger is
// asked again at the next call, because it may have been replaced under this node. One that is
// over for long here the gate has forgotten, whoever has it there now.
func (g *Gate) foreign(ctx context.Context, id firstcome.CampaignID, marker string) error {
	g.markers.forget(id)
	if err := g.missing(ctx, id); errors.Is(err, flow.ErrRetired) {
		return err
	}
	if marker == "" {
		return fmt.Errorf("%w: its keys in Redis do not say of which ledger it is, because a firstcome older than this one made them: make it anew under another id", firstcome.ErrGateMismatch)
	}
	return fmt.Errorf("%w: the campaign of this id in Redis is of the ledger %s, with the marker %s, and this node's is the ledger %s, or a later copy of it: give each ledger a Redis or a database of Redis of its own, and campaigns that both have another id",
		firstcome.ErrGateMismatch, ledgerOf(marker), marker, g.ledger())
}
