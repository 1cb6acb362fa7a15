package campaign

import (
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/stage"
)

// A noted is statements that are written down instead of run.
type noted struct {
	sqldb.Statements
	queries []string
}

func (n *noted) Exec(query string, _ ...any) (int64, error) {
	n.queries = append(n.queries, query)
	return 1, nil
}

// TestALineIsWrittenOnlyIfItMoved: the claims of a campaign without a pace write no column of a line.
func TestALineIsWrittenOnlyIfItMoved(t *testing.T) {
	for name, d := range map[string]*sqldb.Dialect{"sqlite": &sqldb.SQLite, "mysql": &sqldb.MySQL, "postgres": &sqldb.PostgreSQL} {
		for _, moved := range []bool{false, true} {
			known, seen := new(News).NewCache().(*rowCache), &noted{}
			s := &Row{InForce: 1, Issued: 1, LastNumber: 1, Line: firstcome.Line{Generation: 1}}
			known.changed[s] = inRow{lastNumber: 0, line: s.Line}
			if moved {
				s.Line.LastTicket, s.Line.Waiting = 1, 1
			}
			stage.Must(t, known.Flush(&sqldb.Tx{Statements: seen, Dialect: d}))
			if writes := strings.Contains(strings.Join(seen.queries, ";"), "last_ticket = ?"); writes != moved {
				t.Errorf("%s, whose line moved: %v, writes %v", name, moved, seen.queries)
			}
		}
	}
}
