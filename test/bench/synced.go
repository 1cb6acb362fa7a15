package main

import (
	"context"
	"errors"
	"os"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
)

// A synced gate issues to everybody and remembers nobody: of each batch it writes a page and
// syncs it, as any database has to at least.
type synced struct {
	gate.Decider // for nothing but claims: nobody is refused, so nobody asks for holders
	file         *os.File
	page         [4096]byte
	at           int64
}

// syncedBytes is the length of the file, which is written again and again.
const syncedBytes = 16 << 20

func newSynced(name string) (*synced, error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	_, err = file.Write(make([]byte, syncedBytes))
	return &synced{file: file}, errors.Join(err, file.Sync())
}

// Claim is gate.Decider's; an Issuer has one call under way for the one campaign.
func (s *synced) Claim(_ context.Context, _ firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	if _, err := s.file.WriteAt(s.page[:], s.at); err != nil {
		return nil, err
	}
	s.at = (s.at + int64(len(s.page))) % syncedBytes
	decisions := make([]firstcome.Decision, len(users))
	for n := range decisions {
		decisions[n].Outcome = firstcome.Issued
	}
	return decisions, syncData(s.file)
}

// serveSynced is bare behind an Issuer of such a gate.
func serveSynced(ctx context.Context, address, name string) error {
	gate, err := newSynced(name)
	if err != nil {
		return err
	}
	defer gate.file.Close()
	issuer := issue.NewIssuer(gate, issue.Options{})
	return serveBare(ctx, address, func(ctx context.Context, body []byte) error {
		_, err := issuer.Claim(ctx, "c", firstcome.UserID(body))
		return err
	})
}
