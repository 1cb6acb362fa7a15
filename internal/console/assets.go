package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/firstcome/firstcome/internal/uplot"
)

//go:embed assets
var assetFiles embed.FS

// assets are the static files. The path of each contains a hash of its content, so the file at a path never changes.
type assets struct {
	byPath map[string]asset  // by the name in the path
	paths  map[string]string // by the file's own name
}

type asset struct {
	kind string
	body []byte
	gzip []byte
}

func readAssets() assets {
	a := assets{map[string]asset{}, map[string]string{}}
	files, err := fs.Glob(assetFiles, "assets/*")
	if err != nil {
		panic(err) // the pattern is constant and valid
	}
	for _, file := range files {
		body, err := assetFiles.ReadFile(file)
		if err != nil {
			panic(err) // the file is embedded
		}
		if file == "assets/console.css" {
			body = append(body, uplot.Outcomes...)
		}
		a.add(path.Base(file), body)
	}
	a.add("uplot.js", []byte(uplot.Script))
	a.add("uplot.css", []byte(uplot.Style))
	return a
}

// kindsOf has the media type of each file extension. The operating system's table may lack some.
var kindsOf = map[string]string{"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}

func (a *assets) add(name string, body []byte) {
	hash := sha256.Sum256(body)
	stem, kind, _ := strings.Cut(name, ".")
	hashed := stem + "." + hex.EncodeToString(hash[:6]) + "." + kind
	var packed bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
	_, _ = zip.Write(body)                                       // writes to memory do not fail
	_ = zip.Close()
	a.byPath[hashed] = asset{kindsOf[kind], body, packed.Bytes()}
	a.paths[name] = Root + "/assets/" + hashed
}

// path returns the URL path of a file.
func (a *assets) path(name string) string {
	if at, ok := a.paths[name]; ok {
		return at
	}
	panic("the console has no asset " + name)
}

func (c *Console) serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := c.assets.byPath[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(a.gzip)
		return
	}
	_, _ = w.Write(a.body)
}
