package console_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/test/stage"
)

// A counted body counts the bytes that were read of it.
type counted struct {
	io.Reader
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

// TestALargeBodyIsNotRead sends a mebibyte to pages that anybody reaches, and to one behind the login.
func TestALargeBodyIsNotRead(t *testing.T) {
	h := openHouse(t, withKeys)
	pages := console.New(h.configWithAuth()).Handler()
	var parts bytes.Buffer
	form := multipart.NewWriter(&parts)
	field, err := form.CreateFormField("key")
	stage.Must(t, err)
	_, err = field.Write(make([]byte, 1<<20))
	stage.Must(t, err)
	stage.Must(t, form.Close())
	plain := "key=" + strings.Repeat("a", 1<<20)
	for _, c := range []struct {
		method, path, media, body string
		want                      int
	}{
		{"POST", "/console/login", form.FormDataContentType(), parts.String(), http.StatusUnsupportedMediaType},
		{"GET", "/console/login", form.FormDataContentType(), parts.String(), http.StatusOK},
		{"POST", "/console/login", "application/x-www-form-urlencoded", plain, http.StatusRequestEntityTooLarge},
		{"GET", "/console/login", "application/x-www-form-urlencoded", plain, http.StatusOK},
		{"POST", "/console/login", "application/x-www-form-urlencoded", "key=%zz", http.StatusUnsupportedMediaType},
		{"POST", "/console/keys", form.FormDataContentType(), parts.String(), http.StatusSeeOther},
	} {
		body := &counted{Reader: strings.NewReader(c.body)}
		r := httptest.NewRequest(c.method, c.path, body)
		r.Header.Set("Content-Type", c.media)
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		if w.Code != c.want || body.read > 64<<10+1 {
			t.Errorf("%s %s of %s: %d behind %d bytes, want %d", c.method, c.path, c.media, w.Code, body.read, c.want)
		}
	}
}

// TestTheLongestFormIsTaken has the largest benefit. A form escapes each of its bytes by three.
func TestTheLongestFormIsTaken(t *testing.T) {
	h := openHouse(t)
	benefit := `"` + strings.Repeat("혜", (firstcome.MaxBenefit-2)/3) + `"`
	form := url.Values{"id": {"spring"}, "name": {"추석"}, "benefit": {benefit}, "answer": {"recorded"}, "step": {"create"}}
	if got := h.browser().post("/console/campaigns", form); got.path != "/console/campaigns/spring" {
		t.Errorf("got %d: %.200s", got.status, got.text())
	}
}
