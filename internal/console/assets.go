package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// assets are files that never change under their path: it has a hash of what is in them.
type assets struct {
	byPath map[string]asset  // by the name in the path
	paths  map[string]string // by the file's own name
}

type asset struct {
	kind string
	body []byte
}

func readAssets() assets {
	a := assets{map[string]asset{}, map[string]string{}}
	files, err := fs.Glob(assetFiles, "assets/*")
	if err != nil {
		panic(err) // the pattern is good
	}
	for _, file := range files {
		body, err := assetFiles.ReadFile(file)
		if err != nil {
			panic(err) // it is embedded
		}
		name, hash := path.Base(file), sha256.Sum256(body)
		stem, kind, _ := strings.Cut(name, ".")
		hashed := stem + "." + hex.EncodeToString(hash[:6]) + "." + kind
		a.byPath[hashed] = asset{mime.TypeByExtension(path.Ext(name)), body}
		a.paths[name] = Root + "/assets/" + hashed
	}
	return a
}

// path returns where a file is served.
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
	_, _ = w.Write(a.body)
}
