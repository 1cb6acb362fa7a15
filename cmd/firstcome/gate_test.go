package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/firstcome/firstcome/test/services"
)

// TestScriptsOnRedis runs the scripts whose gate is Redis: $REDIS names an empty one.
func TestScriptsOnRedis(t *testing.T) {
	url := services.Redis.Database(t)
	params := scripts("testdata/redis")
	setup := params.Setup
	params.Setup = func(e *testscript.Env) error {
		e.Setenv("REDIS", url)
		return setup(e)
	}
	testscript.Run(t, params)
}
