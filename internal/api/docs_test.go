package api_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/stage"
)

// An example is a command in docs/api.md and the answer below it.
var example = regexp.MustCompile("(?s)```sh\n(.*?)```\n```(json|csv)\n(.*?)```")

// changing has the keys whose values differ from run to run.
var changing = map[string]bool{
	"opened_at": true, "sold_out_at": true, "closed_at": true, "source": true, "payload": true, "resolved_at": true, "code": true, "created_at": true, "server_time": true, "next_joined_at": true, "issued_at": true, "expires_at": true, "at": true, "reason": true,
}

func TestEveryExampleOfTheDocsAnswersAsShown(t *testing.T) {
	for _, tool := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("the examples need %s: %v", tool, err)
		}
	}
	text, err := os.ReadFile("../../docs/api.md")
	stage.Must(t, err)
	if examples, commands := len(example.FindAllString(string(text), -1)), strings.Count(string(text), "```sh"); examples != commands || commands == 0 {
		t.Fatalf("%d of %d commands have an answer behind them", examples, commands)
	}
	s, dead := open(t), openDead(t).shop
	for section := range strings.SplitSeq(string(text), "\n## ") {
		of := s
		if strings.HasPrefix(section, "Dead letters\n") { // only campaigns of another gate have dead letters
			of = dead
		}
		of.answersAsShown(t, example.FindAllStringSubmatch(section, -1))
	}
}

// answersAsShown runs the examples and compares their answers.
func (s *shop) answersAsShown(t *testing.T, examples [][]string) {
	t.Helper()
	for _, e := range examples {
		command, kind, want := e[1], e[2], e[3]
		run := exec.Command("sh", "-c", strings.ReplaceAll(command, "http://127.0.0.1:8080", s.url))
		got, err := run.Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		if diff := cmp.Diff(shown(t, kind, []byte(want)), shown(t, kind, got)); diff != "" {
			t.Errorf("%s answers otherwise than shown (-) with (+):\n%s", command, diff)
		}
	}
}

// shown returns the part of an answer that an example promises: JSON without changing values, or the headings and the number of rows of a table.
func shown(t *testing.T, kind string, text []byte) any {
	t.Helper()
	if kind == "csv" {
		names, rows, _ := strings.Cut(string(text), "\n")
		return []any{strings.Trim(names, "\ufeff\r"), strings.Count(rows, "\n")}
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return withoutChanging(value)
}

func withoutChanging(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if _, isText := inner.(string); isText && changing[key] || key == "poll_after" {
				inner = "…"
			}
			v[key] = withoutChanging(inner)
		}
	case []any:
		for n, inner := range v {
			v[n] = withoutChanging(inner)
		}
	}
	return value
}
