package docs_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// sampleCode matches the campaign, the number and the code of a coupon in an example.
var sampleCode = regexp.MustCompile(`(?s)"campaign_id": "([a-z0-9-]+)",\s*"number": (\d+),.{0,300}?"code": "([^"]*)"`)

// TestCodesInTheDocumentsAreThoseOfTheirNumbers with the secret of the tests.
func TestCodesInTheDocumentsAreThoseOfTheirNumbers(t *testing.T) {
	for _, file := range []string{"README.md", "README.ko.md", "docs/api.md", "docs/events.md"} {
		all := sampleCode.FindAllStringSubmatch(read(t, file), -1)
		if len(all) == 0 {
			t.Errorf("%s has no code", file)
		}
		for _, found := range all {
			number, err := strconv.ParseInt(found[2], 10, 64)
			stage.Must(t, err)
			if want := stage.Secret().Code(firstcome.CampaignID(found[1]), number); found[3] != want {
				t.Errorf("%s: number %d of %s has the code %s, and should have %s", file, number, found[1], found[3], want)
			}
		}
	}
}
