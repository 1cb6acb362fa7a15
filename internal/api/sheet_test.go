package api_test

import (
	"encoding/csv"
	"mime"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/test/stage"
)

// table reads a campaign as CSV, with cells split at a character.
func (s *shop) table(comma rune, query string, header ...string) [][]string {
	s.t.Helper()
	r := s.call("GET", "/v1/campaigns/c/coupons"+query, "", header...).want(s.t, 200, "")
	reader := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(r.body), "\ufeff")))
	reader.Comma, reader.FieldsPerRecord = comma, -1
	reader.LazyQuotes = comma != ',' // as spreadsheets read the files of others
	rows, err := reader.ReadAll()
	stage.Must(s.t, err)
	return rows
}

func TestF63CellsThatASpreadsheetWouldRunAreHarmless(t *testing.T) {
	s := open(t)
	s.create(`{"id":"c","name":"n","quantity":null,"coupon":{"benefit":-5}}`)
	want := map[string]string{
		`=cmd|' /C calc'!A0`: `'=cmd|' /C calc'!A0`, "+1": "'+1", "-1": "'-1", "@x": "'@x", "＝1": "'＝1", "＠x": "'＠x", `a,"b"`: `a,"b"`, "plain": "plain", "한국": "한국",
		"a;=1": "a;'=1", "a; =1": "a; '=1", `a;"=1`: `a;"'=1`, ";;@x": ";;'@x", " =1": " '=1", "a;b": "a;b", "a=1;b-2": "a=1;b-2", `"=1`: `"=1`, "'=1": "'=1",
	}
	var users []string
	for user := range want {
		users = append(users, user)
		s.claim("c", user).want(t, 201, "issued")
	}
	s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"=1\n=2;=3"}`).want(t, 200, "")
	exact := s.table(',', "?voided=include", "Accept", "text/csv") // for programs
	rows := s.table(',', "?voided=include&excel=1")
	if len(rows) != len(users)+1 || len(exact) != len(rows) || rows[0][2] != "user_id" || rows[1][10] != "'=1\n'=2;'=3" || exact[1][10] != "=1\n=2;=3" {
		t.Fatalf("the tables are %q and %q", rows, exact)
	}
	for n, user := range users {
		if row := exact[n+1]; row[2] != user || row[5] != "-5" {
			t.Errorf("the user %q is the row %q", user, row)
		}
		if row := rows[n+1]; row[2] != `="`+strings.ReplaceAll(want[user], `"`, `""`)+`"` || row[5] != "'-5" {
			t.Errorf("the user %q is the row %q for Excel", user, row)
		}
	}
	for _, comma := range []rune{';', '\t'} {
		for _, row := range s.table(comma, "?voided=include&excel=1") {
			for _, cell := range row {
				if cell = strings.TrimLeft(cell, ` "`); cell != "" && strings.ContainsAny(cell[:1], "=+-@") {
					t.Errorf("split at %q there is the cell %q", comma, cell)
				}
			}
		}
	}
}

// TestExcelIsGivenWhatItOpensAsItIsMeant checks the bytes, because no Excel runs here.
func TestExcelIsGivenWhatItOpensAsItIsMeant(t *testing.T) {
	s := open(t)
	s.clock.Store(time.Date(2026, 12, 24, 1, 0, 3, 214_000_000, time.UTC).UnixNano())
	s.create(`{"id":"c","name":"가을 세일: 1/2 \"특가\"","quantity":null,"coupon":{"benefit":{"원":5000},"valid_for":"24h"}}`)
	users := []string{"00123", "12345678901234567890", "한국;1", "=1", `a"b`}
	for _, user := range users {
		s.claim("c", user).want(t, 201, "issued")
	}
	s.call("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"반품, \"단순 변심\""}`).want(t, 200, "")
	r := s.call("GET", "/v1/campaigns/c/coupons?excel=1&tz=Asia/Seoul&voided=include", "").want(t, 200, "")
	text := string(r.body)
	if !strings.HasPrefix(text, "\ufeffnumber,campaign_id,") || strings.Count(text, "\r\n") != 6 || strings.Count(text, "\n") != 6 {
		t.Errorf("it begins %q and has %d lines", text[:20], strings.Count(text, "\r\n"))
	}
	if got := r.header.Get("Content-Type"); got != "text/csv; charset=utf-8" {
		t.Errorf("it is %s", got)
	}
	kind, names, err := mime.ParseMediaType(r.header.Get("Content-Disposition"))
	if err != nil || kind != "attachment" || names["filename"] != "가을 세일_ 1_2 _특가_ (c).csv" {
		t.Errorf("it is %s with %v, %v", kind, names, err)
	}
	if plain := `attachment; filename="c.csv"; filename*=UTF-8''%EA%B0%80`; !strings.HasPrefix(r.header.Get("Content-Disposition"), plain) {
		t.Errorf("the name is %s", r.header.Get("Content-Disposition"))
	}
	rows := s.table(',', "?excel=1&tz=Asia/Seoul&voided=include")
	if diff := cmp.Diff([]string{
		"number", "campaign_id", "user_id", "code", "state", "benefit",
		"issued_at (Asia/Seoul)", "expires_at (Asia/Seoul)", "recorded", "voided_at (Asia/Seoul)", "void_reason", "generation", "ticket", "direct", "rank", "prize_id", "prize_name",
	}, rows[0]); diff != "" {
		t.Error(diff)
	}
	code := s.call("GET", "/v1/campaigns/c/coupons?number=1&voided=include", "").items()[0]["code"].(string)
	if diff := cmp.Diff([]string{
		"1", `="c"`, `="00123"`, `="` + code + `"`, "voided", `{"원":5000}`,
		"2026-12-24 10:00:03", "2026-12-25 10:00:03", "true", "2026-12-24 10:00:03", `반품, "단순 변심"`, "", "", "false", "1", "", "",
	}, rows[1]); diff != "" {
		t.Error(diff)
	}
	for n, want := range []string{`="00123"`, `="12345678901234567890"`, `="한국;1"`, `="'=1"`, `="a""b"`} {
		if got := rows[n+1][2]; got != want {
			t.Errorf("the user %s is %s", users[n], got)
		}
	}
}

func TestCSVHasTheInstantsOfAZone(t *testing.T) {
	s := open(t)
	s.clock.Store(time.Date(2026, 12, 24, 1, 0, 3, 214_000_000, time.UTC).UnixNano())
	s.create(`{"id":"c","name":"n","quantity":null}`)
	s.claim("c", "u").want(t, 201, "issued")
	for query, want := range map[string]string{
		"":                         "2026-12-24T01:00:03.214000Z",
		"?tz=UTC":                  "2026-12-24T01:00:03.214000Z",
		"?tz=Asia/Seoul":           "2026-12-24T10:00:03.214000+09:00",
		"?excel=1":                 "2026-12-24 01:00:03",
		"?excel=1&tz=Asia%2FTokyo": "2026-12-24 10:00:03",
	} {
		rows := s.table(',', query, "Accept", "text/csv")
		if rows[1][6] != want || rows[1][7] != "" || rows[1][9] != "" {
			t.Errorf("%s has %q, want %s", query, rows[1], want)
		}
	}
	for query, accept := range map[string]string{
		"tz=": "text/csv", "tz=Local": "text/csv", "tz=Nowhere/At": "text/csv", "tz=" + url.QueryEscape("../../etc/passwd"): "text/csv", "tz=%00": "text/csv",
		"excel=0": "text/csv", "excel=": "text/csv", "excel=true": "text/csv", "excel=1&user_id=u": "*/*",
		"tz=UTC": "application/json", "excel=1": "application/x-ndjson",
	} {
		s.call("GET", "/v1/campaigns/c/coupons?"+query, "", "Accept", accept).want(t, 422, "")
	}
}
