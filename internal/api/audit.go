package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/auth"
)

// An Audited is the result of auditing a campaign in the ledger and, if another gate decides, in that gate.
type Audited struct {
	audit.Report
	Gate *audit.GateReport `json:"gate"` // nil if the ledger decides or the campaign is retired
}

// ErrAuditRunning means that the node is already auditing a campaign. It audits one at a time.
var ErrAuditRunning = errors.New("this node is already auditing a campaign, and audits one at a time")

// auditBeats is how many spaces an audit sends per Options.PartTime.
const auditBeats = 3

// audit answers GET /v1/campaigns/{id}/audit. The audit may take minutes, so audit regularly sends a space, which JSON
// allows before a value. Clients and proxies see that the node is alive. If the audit fails after the first space, audit
// cuts the connection.
func (s *campaigns) audit(w http.ResponseWriter, r *http.Request, _ auth.Caller, id firstcome.CampaignID) error {
	if err := s.known(r, id); errors.Is(err, firstcome.ErrNoCampaign) { // the audit reports other errors of the row
		return err
	}
	w.Header()["Content-Type"] = typeJSON
	if r.Method == http.MethodHead {
		return nil
	}
	out := &stream{ResponseWriter: w, control: http.NewResponseController(w), wait: s.PartTime}
	extend(out.control, s.PartTime)
	begun, stop := s.beat(out)
	defer stop()
	found, err := s.Audit(r.Context(), id)
	stop()
	var body []byte
	if err == nil {
		body, err = json.Marshal(found)
	}
	if err == nil {
		_, _ = out.Write(body) // a client that disconnected is not an error
	}
	if err != nil && *begun {
		s.Observer.Warn("an audit was cut", "campaign", id, "err", err)
		panic(http.ErrAbortHandler)
	}
	return err
}

// beat regularly sends a space until stop is called. Then begun holds whether it sent any.
func (s *campaigns) beat(out *stream) (begun *bool, stop func()) {
	begun = new(bool)
	over := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		next := time.NewTicker(s.PartTime / auditBeats)
		defer next.Stop()
		for {
			select {
			case <-over:
				return
			case <-next.C:
				*begun = true
				_, _ = out.Write([]byte{' '}) // if the client disconnects, the request's context ends
			}
		}
	})
	return begun, sync.OnceFunc(func() {
		close(over)
		beats.Wait()
	})
}
