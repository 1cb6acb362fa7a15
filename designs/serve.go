package designs

import (
	"context"
	"encoding/json"
	"net/http"
)

// Handler serves a design: POST /apply and GET /result, both with the user as query.
func Handler(d Design) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apply", answered(d.Apply))
	mux.HandleFunc("GET /result", answered(d.Result))
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	return mux
}

func answered(ask func(ctx context.Context, user string) (Answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := ask(r.Context(), r.URL.Query().Get("user"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}
