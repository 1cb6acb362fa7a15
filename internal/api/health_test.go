package api_test

import (
	"strings"
	"testing"
)

func TestTheRootSaysWhatThisIs(t *testing.T) {
	r := open(t).call("GET", "/", "").want(t, 200, "")
	if !strings.Contains(string(r.body), "firstcome") || !strings.Contains(string(r.body), "/openapi.yaml") {
		t.Errorf("it says %s", r.body)
	}
}
