//go:build !check && (!race || soak)

package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/firstcome/firstcome/test/services"
)

// TestScriptsOnRedis runs the scripts whose gate is Redis: $REDIS names an empty one, $READER the same
// for a user who may only read.
func TestScriptsOnRedis(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/redis/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			url := services.Redis.Server(t).URL()
			reader := services.User(t, url, "~firstcome:*", "+@read", "+@connection", "+time")
			params := scripts(t, "")
			params.Files = []string{file}
			setup := params.Setup
			params.Setup = func(e *testscript.Env) error {
				e.Setenv("REDIS", url)
				e.Setenv("READER", reader)
				return setup(e)
			}
			params.Cmds["redis"], params.Cmds["written"], params.Cmds["unwritten"] = behindTheGate, written, unwritten
			testscript.Run(t, params)
		})
	}
}

// behindTheGate COMMAND… changes data in Redis without firstcome. {ID} stands for the hash tag of the campaign, which this Redis has once.
func behindTheGate(ts *testscript.TestScript, _ bool, args []string) {
	words := make([]string, len(args))
	for n, word := range args {
		words[n] = campaignTag.ReplaceAllStringFunc(word, func(id string) string { return tagOf(ts, strings.Trim(id, "{}")) })
	}
	_, err := askRedis(ts.Getenv("REDIS"), words...)
	ts.Check(err)
}

var campaignTag = regexp.MustCompile(`\{\w+\}`)

// tagOf returns the hash tag of a campaign that has keys in Redis.
func tagOf(ts *testscript.TestScript, id string) string {
	found, err := askRedis(ts.Getenv("REDIS"), "KEYS", "firstcome:{"+id+":*}:*")
	ts.Check(err)
	keys, err := found.AsStrSlice()
	ts.Check(err)
	if len(keys) == 0 {
		ts.Fatalf("the campaign %s has no key", id)
	}
	tag, _, _ := strings.Cut(strings.TrimPrefix(keys[0], "firstcome:"), ":campaign")
	return tag[:strings.Index(tag, "}")+1]
}

// written notes the number of writes to Redis, and unwritten expects no write since.
func written(ts *testscript.TestScript, _ bool, _ []string) { ts.Setenv("WRITTEN", writes(ts)) }

func unwritten(ts *testscript.TestScript, _ bool, _ []string) {
	if before, now := ts.Getenv("WRITTEN"), writes(ts); before != now {
		ts.Fatalf("Redis was written to: %s instead of %s", now, before)
	}
}

// writes returns the number of changes since the last snapshot. It tells Redis to make none by itself.
func writes(ts *testscript.TestScript) string {
	_, err := askRedis(ts.Getenv("REDIS"), "CONFIG", "SET", "save", "")
	ts.Check(err)
	info, err := askRedis(ts.Getenv("REDIS"), "INFO", "persistence")
	ts.Check(err)
	text, err := info.ToString()
	ts.Check(err)
	_, behind, found := strings.Cut(text, "rdb_changes_since_last_save:")
	count, _, ended := strings.Cut(behind, "\r\n")
	if !found || !ended {
		ts.Fatalf("Redis does not say: %s", text)
	}
	return count
}
