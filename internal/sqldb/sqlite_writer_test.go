package sqldb

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// A seen is a Local that notes what the writer does. Only the writer uses it until Run has returned.
type seen struct{ events []string }

func (s *seen) note(events ...string) { s.events = append(s.events, strings.Join(events, " ")) }

func (s *seen) Flush(*Tx) error {
	s.note("flush")
	return nil
}

func (s *seen) Committed()          { s.note("committed") }
func (s *seen) Undone()             { s.note("undone") }
func (*seen) Forget()               {}
func (*seen) Remembers(string) bool { return false }
func (*seen) Drop(string)           {}
func (t *task) Key() string         { return t.name }
func (t *task) Outcome() error      { return t.outcome }

var errRefused = errors.New("refused")

// A task is a job whose name is its key. If it is called bad, its transaction is refused.
type task struct {
	name    string
	outcome error
}

// A red and a blue are jobs of two kinds.
type (
	red  struct{ task }
	blue struct{ task }
)

func (*red) Decide(t *Tx, jobs []*red) error {
	names := []string{"red"}
	for _, j := range jobs {
		names = append(names, j.name)
	}
	return decide(t, names)
}

func (*blue) Decide(t *Tx, jobs []*blue) error {
	names := []string{"blue"}
	for _, j := range jobs {
		names = append(names, j.name)
	}
	return decide(t, names)
}

func decide(t *Tx, names []string) error {
	t.Local.(*seen).note(names...)
	for _, name := range names {
		if name == "bad" {
			return errRefused
		}
	}
	return nil
}

// TestJobsOfTwoKindsShareATransaction has jobs wait in the order of all before the writer starts.
func TestJobsOfTwoKindsShareATransaction(t *testing.T) {
	for _, c := range []struct{ all, want string }{
		{"red a, blue b, red c", "red a c, blue b, flush, committed"},
		// The refused job's transaction is halved, and what the first kind had decided in it is undone.
		{"red a, blue bad, red c, blue d", "red a c, blue bad d, undone, red a, blue bad, undone, red a, flush, committed, blue bad, undone, red c, blue d, flush, committed"},
		{"red bad, blue b", "red bad, undone, red bad, undone, blue b, flush, committed"},
		// A job that is not done itself does not undo the others.
		{"red none, blue b", "red none, blue b, flush, committed"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, err := Open(context.Background(), filepath.Join(t.TempDir(), "firstcome.db"), "")
			if err != nil {
				t.Fatal(err)
			}
			did, answers := &seen{}, map[string]chan error{}
			d.Local = func() Local { return did }
			var reds Kind[*red]
			var blues Kind[*blue]
			for job := range strings.SplitSeq(c.all, ", ") {
				kind, name, _ := strings.Cut(job, " ")
				one, answer := task{name: name}, make(chan error, 1)
				if answers[name] = answer; name == "none" {
					one.outcome = errRefused
				}
				go func() {
					if kind == "red" {
						answer <- reds.Do(context.Background(), d, &red{one})
					} else {
						answer <- blues.Do(context.Background(), d, &blue{one})
					}
				}()
				synctest.Wait() // it waits for the writer
			}
			ctx, stop := context.WithCancel(context.Background())
			stop() // Run answers what waits and returns
			if err := errors.Join(d.Run(ctx), d.Close()); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, strings.Join(did.events, ", ")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.all, diff)
			}
			for name, answer := range answers {
				if err := <-answer; errors.Is(err, errRefused) != (name == "bad" || name == "none") {
					t.Errorf("%s: %s is answered %v", c.all, name, err)
				}
			}
		})
	}
}
