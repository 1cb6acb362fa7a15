package api

import (
	"net/http"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/wire"
)

// readLedger answers GET /v1/campaigns/{id}/ledger.
func (s *Server) readLedger(w http.ResponseWriter, r *http.Request, _ auth.Caller, id firstcome.CampaignID) error {
	found, err := s.Ledger.Campaign(r.Context(), id)
	if err != nil {
		return err
	}
	lost, err := s.Ledger.Lost(r.Context(), found.ID)
	if err != nil {
		return err
	}
	counted, _ := s.counted(r.Context(), found) // what went wrong with the gate is told beside
	state := client.LedgerState{
		CampaignID: string(found.ID), Gate: found.Gate, GateState: counted.gate, Epoch: found.Epoch, Version: found.Version, Applied: found.Applied,
		InForce: found.InForce, Recorded: found.Recorded, LastNumber: found.LastNumber, Position: found.Position,
		DrainedThrough: found.Drained, Lost: []client.Range{}, RetiredAt: wire.Time(found.RetiredAt),
	}
	if !found.Remote() {
		state.DrainedThrough = found.LastNumber // what the ledger decides is recorded
	}
	for _, numbers := range lost {
		state.Lost = append(state.Lost, client.Range(numbers))
	}
	return writeJSON(w, http.StatusOK, state)
}
