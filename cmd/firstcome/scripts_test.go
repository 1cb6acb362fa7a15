//go:build !check && (!race || soak)

package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts(t, "testdata/script"))
}
