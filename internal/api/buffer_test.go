package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A slowBody is the body of a claim, followed by blanks. It comes in pieces, and then its connection ends. It notes how much more room a read offered
// than had arrived before.
type slowBody struct {
	left, came, piece, most int
}

func (b *slowBody) Read(p []byte) (int, error) {
	b.most = max(b.most, len(p)-b.came)
	n := min(len(p), b.left, b.piece)
	copy(p[:n], strings.Repeat(" ", n))
	if text := `{"user_id":"u"}`; b.came < len(text) {
		copy(p[:n], text[b.came:])
	}
	b.came, b.left = b.came+n, b.left-n
	if n == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return n, nil
}

func (*slowBody) Close() error { return nil }

// TestF29ABufferGrowsWithWhatArrivesOfABody announces the largest body and sends less, with a Content-Length and without.
func TestF29ABufferGrowsWithWhatArrivesOfABody(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":9}`)
	handler := s.server.Handler()
	for path, announced := range map[string]int64{
		"/v1/campaigns/c/claims": 64 << 10, "/v1/campaigns/c/coupons": 512 << 10, "/v1/campaigns": 64 << 10, "/v1/campaigns/c/pause": 64 << 10,
	} {
		for _, length := range []int64{announced, -1} {
			for _, comes := range []int{0, 1, 100, 10_000, 50_000} {
				body := &slowBody{left: comes, piece: 999}
				r := httptest.NewRequest("POST", path, body)
				r.Host, r.ContentLength = "localhost", length
				r.Header.Set("Content-Type", "application/json")
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, r)
				if answer.Code != http.StatusBadRequest {
					t.Errorf("%s answers %d %s", path, answer.Code, answer.Body)
				}
				const first = 4096 // one page
				if body.came != comes || body.most > first+comes {
					t.Errorf("%s: of %d bytes announced %d came of %d, and room was for %d more", path, length, body.came, comes, body.most)
				}
			}
		}
	}
}
