package ledger_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// tablesPage returns docs/tables.md.
func tablesPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/tables.md")
	stage.Must(t, err)
	return string(text)
}

// rowsOf calls each with the cells of every row of the page's tables whose first heading is the given one, and with the
// heading of the section.
func rowsOf(page, heading string, each func(section string, cells []string)) {
	section, table := "", ""
	for line := range strings.SplitSeq(page, "\n") {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			section = name
		}
		inner, ok := strings.CutPrefix(line, "| ")
		if !ok && !strings.HasPrefix(line, "|--") {
			table = ""
			continue
		}
		cells := strings.Split(strings.ReplaceAll(strings.TrimSuffix(inner, " |"), "`", ""), " | ")
		switch {
		case table == "":
			table = cells[0]
		case ok && table == heading:
			each(section, cells)
		}
	}
}

// place returns where the page has what it says of a database: the place in lists like SQLite / MySQL / PostgreSQL, and
// the name in the first lines of queries.
func place(name string) (n int, database string) {
	switch kind, _, _ := strings.Cut(name, ":"); {
	case !sqldb.OnServer(name):
		return 0, "SQLite"
	case kind == "postgres":
		return 2, "PostgreSQL"
	}
	return 1, "MariaDB"
}

// toolsTable is the migration tool's.
const toolsTable = "goose_db_version"

// columnsOf lists the columns of a database: table, column, type, and whether it may be null.
var columnsOf = []string{
	`SELECT m.name, c.name, c.type, c."notnull" = 0 FROM sqlite_schema m JOIN pragma_table_xinfo(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`,
	`SELECT table_name, column_name, CASE WHEN data_type IN ('varbinary', 'varchar') THEN column_type
		WHEN column_type = 'tinyint(1)' THEN 'boolean' ELSE data_type END, is_nullable = 'YES'
		FROM information_schema.columns WHERE table_schema = database()`,
	`SELECT table_name, column_name, data_type, is_nullable = 'YES' FROM information_schema.columns WHERE table_schema = current_schema()`,
}

// TestThePageOfTheTablesHasTheColumnsOfEachDatabase holds docs/tables.md to what the migrations made: neither has a
// column, a type or a null that the other lacks.
func TestThePageOfTheTablesHasTheColumnsOfEachDatabase(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		migrated(t, name)
		n, _ := place(name)
		there, told := map[string]string{}, map[string]string{}
		rows, err := services.Beside(t, name).Query(columnsOf[n])
		stage.Must(t, err)
		defer rows.Close()
		for rows.Next() {
			var table, column, kind string
			var null bool
			stage.Must(t, rows.Scan(&table, &column, &kind, &null))
			if table != toolsTable {
				there[table+"."+column] = fmt.Sprintf("%s, may be null: %v", strings.ToUpper(kind), null)
			}
		}
		stage.Must(t, rows.Err())
		page, short := tablesPage(t), map[string]string{}
		rowsOf(page, "type", func(_ string, cells []string) { short[cells[0]] = cells[1] })
		rowsOf(page, "column", func(table string, cells []string) {
			column := table + "." + cells[0]
			if types := strings.Split(inFull(cells[1], short), " / "); told[column] != "" || len(types) != 3 || len(cells) != 5 {
				t.Errorf("%s has a second line, or not the cells of one: %q", column, cells)
			} else if types[n] != "-" {
				told[column] = fmt.Sprintf("%s, may be null: %v", types[n], cells[3] != "no")
			}
		})
		stage.Same(t, "the columns of the migrations, and those of docs/tables.md", there, told)
	})
}

// inFull returns the types that a type's short name means: bytes(64) is bytes(N) with 64 for N.
func inFull(kind string, short map[string]string) string {
	name, size, _ := strings.Cut(strings.TrimSuffix(kind, ")"), "(")
	switch {
	case short[kind] != "":
		return short[kind]
	case size != "" && short[name+"(N)"] != "":
		return strings.ReplaceAll(short[name+"(N)"], "N)", size+")")
	}
	return kind
}

// TestThePageOfTheTablesListsThemAndSaysWhatItsUnitsMean holds the page to itself.
func TestThePageOfTheTablesListsThemAndSaysWhatItsUnitsMean(t *testing.T) {
	text := tablesPage(t)
	var listed, sections []string
	units := map[string]bool{"number of the letter": true, "number of the line": true, "version of the schema": true, "always 1": true}
	rowsOf(text, "table", func(_ string, cells []string) { listed = append(listed, cells[0]) })
	rowsOf(text, "unit", func(_ string, cells []string) { units[cells[0]] = true })
	rowsOf(text, "column", func(table string, cells []string) {
		if !slices.Contains(sections, table) {
			sections = append(sections, table)
		}
		if unit := cells[2]; !units[unit] || isInstant(cells[0]) != (unit == "instant") {
			t.Errorf("%s.%s has the unit %q", table, cells[0], unit)
		}
	})
	stage.Same(t, "the tables that are listed, and those that have a section", listed, sections)
}

// isInstant tells whether a column has the name of an instant.
func isInstant(column string) bool {
	return column == "at" || strings.HasSuffix(column, "_at") || strings.HasSuffix(column, "_until")
}

// query is a query of the page with what stands below it.
var query = regexp.MustCompile("(?ms)^```sql\n(?:-- ([^\n]*)\n)?(.*?)^```\n```text\n(.*?)^```$")

func TestTheQueriesOfThePageOfTheTablesAnswerWhatItSays(t *testing.T) {
	text, _, _ := strings.Cut(tablesPage(t), "\n## The audit's queries\n") // the audit's own tests run these
	all := query.FindAllStringSubmatch(text, -1)
	if len(all) == 0 || len(all) != strings.Count(text, "```sql") {
		t.Fatalf("%d of the page's %d queries have an answer", len(all), strings.Count(text, "```sql"))
	}
	onEach(t, func(t *testing.T, name string) {
		fill(t, name)
		_, database := place(name)
		db, ran := services.Beside(t, name), 0
		for _, q := range all {
			if q[1] == "" || slices.Contains(strings.Split(q[1], ", "), database) {
				ran++
				stage.Same(t, q[2], q[3], ask(t, db, q[2]))
			}
		}
		if ran < 5 {
			t.Errorf("%d queries are for %s", ran, database)
		}
	})
}

// fill makes the ledger that the page asks: two campaigns, of which winter has prizes, a void, and a dead letter.
func fill(t *testing.T, name string) {
	t.Helper()
	var clock atomic.Int64
	at := func(text string) {
		instant, err := time.Parse(time.DateTime, "2026-11-20 "+text)
		stage.Must(t, err)
		clock.Store(instant.UnixMicro())
	}
	now := func() time.Time { return time.UnixMicro(clock.Load()) }
	done := func(err error) {
		t.Helper()
		stage.Must(t, err)
	}
	at("09:50:00")
	l := start(t, name, now)
	done(l.Deployment.AddKey(t.Context(), "local", firstcome.Key{ID: "4be1f0c2a97d", Name: "desk", Role: firstcome.Operator, CreatedAt: now()}))
	for id, terms := range map[firstcome.CampaignID]firstcome.Terms{
		"autumn": {Quantity: 5, Benefit: []byte(`{"percent":20}`)},
		"winter": {Quantity: firstcome.Unlimited, Prizes: []firstcome.Prize{{ID: "drink", Name: "A drink", Quantity: 1}, {ID: "shipping", Name: "Free shipping"}}},
	} {
		terms.Name, terms.Answer, terms.OpensAt = string(id), firstcome.Recorded, now().Add(10*time.Minute)
		err := l.Campaigns.Create(t.Context(), "key:4be1f0c2a97d", id, terms)
		done(err)
	}
	at("10:00:00.25")
	claim(t, l.Gate, "autumn", "user-1", "user-2", "user-3")
	claim(t, l.Gate, "winter", "user-1", "user-9", "user-10")
	at("10:01:02")
	claim(t, l.Gate, "autumn", "user-4")
	at("10:05:30")
	_, err := l.Campaigns.Void(t.Context(), "key:4be1f0c2a97d", "autumn", 2, "order cancelled")
	done(err)
	at("10:06:00")
	claim(t, l.Gate, "autumn", "user-5", "user-6", "user-7")
	_, err = l.Recorder.Bury(context.Background(), record.Batch{Campaign: "spring", Epoch: 1, Coupons: []firstcome.Coupon{
		{Campaign: "spring", Number: 7, User: "user-8", Code: stage.Secret().Code("spring", 7), IssuedAt: now(), TermsVersion: 1},
	}}, "no such campaign")
	done(err)
}

// ask returns what a query answers: a line of the columns' names, and one for each row.
func ask(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s\n%v", query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	stage.Must(t, err)
	answer := strings.Join(names, " | ") + "\n"
	for rows.Next() {
		cells, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for n := range cells {
			into[n] = &cells[n]
		}
		stage.Must(t, rows.Scan(into...))
		texts := make([]string, len(cells))
		for n, c := range cells {
			texts[n] = "null"
			if c.Valid {
				texts[n] = c.String
			}
		}
		answer += strings.Join(texts, " | ") + "\n"
	}
	stage.Must(t, rows.Err())
	return answer
}

// TestP10ThePageOfTheTablesGivesEachCouponItsRankAndItsPrize runs the page's queries on a campaign whose gate was rebuilt: the numbers 3 to 5 have no
// rank. The terms of the last coupon are those of a reconcile, because the ledger has forgotten its version.
func TestP10ThePageOfTheTablesGivesEachCouponItsRankAndItsPrize(t *testing.T) {
	page := tablesPage(t)
	onEach(t, func(t *testing.T, name string) {
		l, _ := serve(t, name, ledger.Options{Gate: "redis:test"})
		stage.Must(t, l.Campaigns.Create(t.Context(), "test", "winter", firstcome.Terms{
			Name: "winter", Quantity: 5, Answer: firstcome.Recorded, Prizes: []firstcome.Prize{{ID: "drink", Name: "A drink", Quantity: 3}, {ID: "shipping", Name: "Free shipping"}},
		}))
		stage.Must(t, l.Campaigns.Applied(t.Context(), firstcome.Change{Campaign: "winter", Version: 1}, false))
		keep := func(epoch, version int64, numbers ...int64) {
			b := record.Batch{Campaign: "winter", Epoch: epoch}
			for _, n := range numbers {
				c := stage.Coupon("winter", n)
				c.TermsVersion = version
				b.Coupons = append(b.Coupons, c)
			}
			stage.Must(t, stage.Err(l.Recorder.Record(t.Context(), b)))
		}
		keep(1, 1, 1, 2)
		r, err := l.Epochs.BeginRebuild(t.Context(), "test", "winter", 0)
		stage.Must(t, err)
		mark, err := l.Epochs.Refills(t.Context(), "winter", func(firstcome.Coupon) error { return nil })
		stage.Must(t, err)
		stage.Must(t, stage.Err(l.Epochs.FinishRebuild(t.Context(), r, recovery.Loaded{Mark: mark}, recovery.Frozen{})))
		keep(2, 3, 6, 7)
		db := services.Beside(t, name)
		execute(t, db, `INSERT INTO changes (campaign_id, version, kind, payload, changed_at, skipped) SELECT campaign_id, 9, 'reconcile', payload, changed_at, skipped FROM changes WHERE version = 3`,
			`UPDATE campaigns SET version = 9`, `UPDATE coupons SET terms_version = 8 WHERE number = 7`)

		var ranks, prizes string
		stage.Must(t, l.Reads.Coupons(t.Context(), "winter", ledger.Page{Limit: 9}, func(c firstcome.Coupon) error {
			terms, err := l.Reads.Terms(t.Context(), "winter", c.TermsVersion)
			stage.Must(t, err)
			rank := terms.Rank(c.Number)
			line := fmt.Sprintf("%d | %s | %d", c.Number, c.User, rank)
			ranks, prizes = ranks+line+"\n", prizes+line+" | "+string(terms.Prizes[terms.PrizeOf(rank)].ID)+"\n"
			return nil
		}))
		_, database := place(name)
		ran := 0
		for _, q := range query.FindAllStringSubmatch(page, -1) {
			switch {
			case !strings.Contains(q[2], "coupon_rank") || q[1] != "" && !slices.Contains(strings.Split(q[1], ", "), database):
			case strings.Contains(q[2], "AS prize"):
				ran++
				stage.Same(t, q[2], "number | user_id | coupon_rank | prize\n"+prizes, ask(t, db, q[2]))
			default:
				ran++
				stage.Same(t, q[2], "number | user_id | coupon_rank\n"+ranks, ask(t, db, q[2]))
			}
		}
		if ran != 2 || !strings.Contains(prizes, "7 | user-7 | 4 | shipping") {
			t.Errorf("%d queries ran, and by the terms:\n%s", ran, prizes)
		}
	})
}
