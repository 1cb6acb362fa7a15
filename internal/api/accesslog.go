package api

import (
	"log/slog"
	"net/http"
	"time"
)

// An accessLog logs every request at debug level: the route rather than the
// path, which may name a user, and never a header or a body.
type accessLog struct {
	next http.Handler
	log  *slog.Logger
}

func (a *accessLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	watched := &watchedWriter{ResponseWriter: w, status: http.StatusOK}
	defer func() {
		a.log.DebugContext(r.Context(), "request", "method", r.Method, "route", r.Pattern, "status", watched.status, "took", time.Since(started))
	}()
	a.next.ServeHTTP(watched, r)
}

// A watchedWriter remembers the status.
type watchedWriter struct {
	http.ResponseWriter
	status int
}

func (w *watchedWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
