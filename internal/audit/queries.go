package audit

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
)

//go:embed queries/*.sql
var files embed.FS

// A Query is a check by an SQL query on the ledger's tables: each row of its result is a breach.
type Query struct {
	Breaks string // the promise that a row breaks, as in Breach
	Name   string // unique
	About  string // what is true if there is no row
	// SQL has :campaign in place of the campaign's id. Columns named at, or with names ending in _at, are microseconds since 1970.
	SQL string

	of   string // the promise of its file, which is not checked without it
	says string // the text of a breach, with names of columns in braces
}

// Queries returns the checks of a campaign, in the order of the promises.
func Queries() []Query { return Of("") }

// Of returns the checks of a campaign for a promise: P1, P3, P4, P5, P7, P9 or P10; "" means all.
func Of(promise string) (all []Query) {
	for _, p := range []string{"P1", "P3", "P4", "P5", "P7", "P9", "P10"} {
		if promise == "" || promise == p {
			all = append(all, queriesOf(p, strings.ToLower(p))...)
		}
	}
	return all
}

// OfNone returns the checks of rows that belong to no campaign.
func OfNone() []Query { return queriesOf("keys", "keys") }

// queriesOf parses a file of queries. A query breaks the given promise, unless its comment "breaks:" names another.
func queriesOf(promise, file string) (all []Query) {
	text, err := files.ReadFile("queries/" + file + ".sql")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, part := range strings.Split(string(text), "-- name: ")[1:] {
		q := Query{Breaks: promise, of: promise}
		name, rest, _ := strings.Cut(part, "\n")
		q.Name = name
		for line := range strings.Lines(rest) {
			comment, is := strings.CutPrefix(line, "-- ")
			comment = strings.TrimSpace(comment)
			breaks, isBreaks := strings.CutPrefix(comment, "breaks: ")
			says, isSays := strings.CutPrefix(comment, "says: ")
			switch {
			case !is:
				q.SQL += line
			case isBreaks:
				q.Breaks = breaks
			case isSays:
				q.says = says
			default:
				q.About = strings.TrimSpace(q.About + " " + comment)
			}
		}
		q.SQL = strings.TrimSuffix(strings.TrimSpace(q.SQL), ";")
		all = append(all, q)
	}
	return all
}

// run adds a breach for each row.
func (q *Query) run(ctx context.Context, source Source, id firstcome.CampaignID, b *Breaches) error {
	args := make([]any, strings.Count(q.SQL, ":campaign"))
	for n := range args {
		args[n] = string(id)
	}
	return source.Each(ctx, strings.ReplaceAll(q.SQL, ":campaign", "?"), args, func(columns, values []string) {
		b.addBy(q.Name, q.Breaks, "%s", q.text(columns, values))
	})
}

// text returns the text of a row's breach.
func (q *Query) text(columns, values []string) string {
	pairs := make([]string, 0, 2*len(columns))
	for n, column := range columns {
		pairs = append(pairs, "{"+column+"}", shown(column, values[n]))
	}
	return strings.NewReplacer(pairs...).Replace(q.says)
}

// shown returns the value of a column for people. An empty value is NULL.
func shown(column, value string) string {
	switch {
	case column == "at" || strings.HasSuffix(column, "_at"):
		micros, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return text(time.Time{})
		}
		return text(time.UnixMicro(micros))
	case value == "" && strings.HasSuffix(column, "quantity"):
		return "unlimited"
	case value == "":
		return "none"
	}
	quoted := strconv.Quote(value)
	return quoted[1 : len(quoted)-1]
}

// text returns a time in firstcome's format.
func text(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}

func quantityText(n int64) string {
	if n == firstcome.Unlimited {
		return "unlimited"
	}
	return fmt.Sprint(n)
}
