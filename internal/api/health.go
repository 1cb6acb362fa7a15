package api

import (
	_ "embed"
	"net/http"

	"github.com/firstcome/firstcome/internal/auth"
)

const about = `This is firstcome: it gives a limited number of coupons to the people who ask first.

/openapi.yaml describes its HTTP API, which is below /v1. /livez and /readyz say how this node is.
`

// about answers GET / with a short description for people.
func (s *Server) about(w http.ResponseWriter, _ *http.Request, _ auth.Caller) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write([]byte(about))
	return err
}

// livez answers GET /livez. It checks only that the process responds.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request, _ auth.Caller) error {
	writeBody(w, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

// readyz answers GET /readyz.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request, _ auth.Caller) error {
	s.Health.Ready(w, r, s.mayLook)
	return nil
}

// mayLook reports whether a /readyz request may query the ledger, which needs an API key. Otherwise strangers could
// overload the ledger. Without a key, the answer has only what a probe needs.
func (s *Server) mayLook(r *http.Request) bool {
	_, err := (&guard{core: s.core, route: route{who: auth.SeesAll | auth.Support | auth.Viewer | auth.Service | auth.Shop}}).admit(r)
	return err == nil
}

//go:embed openapi.yaml
var openAPI []byte

// openAPI answers GET /openapi.yaml.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request, _ auth.Caller) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI)
	return nil
}
