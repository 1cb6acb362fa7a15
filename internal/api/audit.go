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

// An Audited is what the audit of a campaign found in the ledger, and at the gate beside it.
type Audited struct {
	audit.Report
	Gate *audit.GateReport `json:"gate"` // nil: the ledger decides, or the campaign is retired
}

// ErrAuditRunning says that a node audits a campaign already, and does one at a time.
var ErrAuditRunning = errors.New("this node audits a campaign already, and does one at a time")

// auditBeats is how many spaces an audit sends in the time of a part of an answer.
const auditBeats = 3

// audit answers GET /v1/campaigns/{id}/audit. That may take minutes, so it sends a space now and then, which JSON allows before a value:
// clients and proxies see that the node is alive. If the audit fails after that, the connection is cut.
func (s *campaigns) audit(w http.ResponseWriter, r *http.Request, _ auth.Caller, id firstcome.CampaignID) error {
	if err := s.known(r, id); errors.Is(err, firstcome.ErrNoCampaign) { // what else is wrong with its row, the audit says
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
		_, _ = out.Write(body) // a client that went away is no error
	}
	if err != nil && *begun {
		s.Observer.Warn("an audit was cut", "campaign", id, "err", err)
		panic(http.ErrAbortHandler)
	}
	return err
}

// beat sends a space now and then until stop is called. After that begun says whether it sent one.
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
				_, _ = out.Write([]byte{' '}) // of a client that went away the request's context tells
			}
		}
	})
	return begun, sync.OnceFunc(func() {
		close(over)
		beats.Wait()
	})
}
