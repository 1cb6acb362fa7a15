package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/redis/rueidis"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/firstcome/firstcome/test/services"
)

// TestScriptsOnRedis runs the scripts whose gate is Redis: $REDIS names an empty one.
func TestScriptsOnRedis(t *testing.T) {
	files, err := filepath.Glob("testdata/redis/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			url := services.Redis.Database(t)
			params := scripts("")
			params.Files = []string{file}
			setup := params.Setup
			params.Setup = func(e *testscript.Env) error {
				e.Setenv("REDIS", url)
				return setup(e)
			}
			params.Cmds["redis"] = behindTheGate
			testscript.Run(t, params)
		})
	}
}

// behindTheGate COMMAND… changes what Redis holds behind firstcome's back.
func behindTheGate(ts *testscript.TestScript, _ bool, args []string) {
	option, err := rueidis.ParseURL(ts.Getenv("REDIS"))
	ts.Check(err)
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	ts.Check(err)
	defer client.Close()
	ts.Check(client.Do(context.Background(), client.B().Arbitrary(args...).Build()).Error())
}
