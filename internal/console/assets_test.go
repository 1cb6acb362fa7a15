package console

import "testing"

// assetBudget is how many bytes all assets together may have on the wire, compressed.
const assetBudget = 250_000

func TestAllAssetsTogetherAreSmall(t *testing.T) {
	all, kinds := 0, readAssets()
	for path, a := range kinds.byPath {
		if len(a.gzip) == 0 || len(a.body) == 0 {
			t.Errorf("%s is empty", path)
		}
		all += len(a.gzip)
	}
	if len(kinds.byPath) < 5 || all > assetBudget {
		t.Errorf("%d assets are %d bytes compressed, of %d", len(kinds.byPath), all, assetBudget)
	}
	t.Logf("%d assets, %d bytes compressed", len(kinds.byPath), all)
}
