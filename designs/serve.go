package designs

import (
	"context"
	"encoding/json"
	"net/http"
)

// Routes are what a design answers. {user} is the one who asks.
const (
	ApplyRoute  = "/apply/{user}"  // POST
	ResultRoute = "/result/{user}" // GET
)

// Handler serves a design.
func Handler(d Design) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+ApplyRoute, answered(d.Apply))
	mux.HandleFunc("GET "+ResultRoute, answered(d.Result))
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	return mux
}

func answered(ask func(ctx context.Context, user string) (Answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := ask(r.Context(), r.PathValue("user"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}
