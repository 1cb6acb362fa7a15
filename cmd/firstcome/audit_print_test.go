package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/stage"
)

func TestThePageOfTheTablesHasTheAuditsQueries(t *testing.T) {
	page, err := os.ReadFile("../../docs/tables.md")
	stage.Must(t, err)
	var printed bytes.Buffer
	stage.Must(t, (&auditCmd{}).printSQL(terminal{out: &printed}))
	if !strings.Contains(string(page), "```sql\n"+strings.TrimSpace(printed.String())+"\n```\n") {
		t.Error("the last section of docs/tables.md has other queries than firstcome audit --print-sql")
	}
	printed.Reset()
	stage.Must(t, (&auditCmd{Campaign: "spring"}).printSQL(terminal{out: &printed}))
	if sql := printed.String(); strings.Contains(sql, ":campaign") || !strings.Contains(sql, "WHERE id = 'spring' AND in_force > quantity;") {
		t.Errorf("with an id it prints %.200s", sql)
	}
	if err := (&auditCmd{Campaign: "a'b"}).printSQL(terminal{out: &printed}); err == nil {
		t.Error("what is no id is printed into the queries")
	}
}
