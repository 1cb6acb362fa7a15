//go:build !check

package docs_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/stage"
)

func TestEveryFlagOfServeHasItsDefaultInTheTable(t *testing.T) {
	dir := t.TempDir()
	build(t, dir)
	c := exec.Command(filepath.Join(dir, "bin", "firstcome"), "serve", "--help")
	c.Env = []string{}
	help, err := c.Output()
	stage.Must(t, err)
	documented := map[string]string{}
	for _, row := range table(t, read(t, "docs/limits.md"), "flag") {
		documented[row["flag"]] = row["default"]
	}
	if diff := cmp.Diff(defaults(string(help)), documented); diff != "" {
		t.Errorf("docs/limits.md has other defaults than serve (-serve +limits.md):\n%s", diff)
	}
}
