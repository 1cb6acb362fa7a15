//go:build linux && !check

package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/stage"
)

// spreadsheets would run these, or take them for something else.
var hostileUsers = []string{`=cmd|' /C calc'!A0`, "+82-10-1234-5678", "-1", "@x", "＝1", "00123", "12E45", "2026-11-23", `a,"b"`, "a;=1", "김민아 고객님", "👩‍👩‍👧"}

// export asks for the file of a campaign as the page's link does.
func (p *person) export(id string) *http.Response {
	return p.once(http.MethodGet, "/campaigns/"+id+"/coupons.csv", nil, nil)
}

// TestThePagesExportIsWhatExcelOpensInKorean gets the file by the page's link: it is the API's, byte by byte, and no cell of it
// begins like a formula, however a spreadsheet splits it. A Korean page gives it in Korean.
func TestThePagesExportIsWhatExcelOpensInKorean(t *testing.T) {
	t.Parallel()
	p := serve(t, launch{args: append([]string{"--tz", "Asia/Seoul"}, patient...)})
	on := newPerson(p)
	p.ask(http.MethodPost, p.url+"/v1/campaigns", `{"id":"spring","name":"추석 =쿠폰","quantity":null,"coupon":{"benefit":"=1+1"}}`)
	for _, user := range hostileUsers {
		body, err := json.Marshal(map[string]string{"user_id": user})
		stage.Must(t, err)
		if w, text := p.ask(http.MethodPost, p.url+"/v1/campaigns/spring/claims", string(body)); w.StatusCode != http.StatusCreated {
			t.Fatalf("%s claims: %s %s", user, w.Status, text)
		}
	}
	on.wants(on.post("/campaigns/spring/coupons/2/void", url.Values{"reason": {"=1\t+2\r\n-3"}}), http.StatusOK, "Voided.")
	answer := on.export("spring")
	file, err := io.ReadAll(answer.Body)
	stage.Must(t, err)
	if name, err := url.PathUnescape(answer.Header.Get("Content-Disposition")); err != nil || !strings.Contains(name, "filename*=UTF-8''추석 =쿠폰 (spring).csv") {
		t.Errorf("the file's name is %s", answer.Header.Get("Content-Disposition"))
	}
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/csv") || !bytes.HasPrefix(file, []byte("\ufeff")) {
		t.Errorf("Excel takes it for something else: %s %q", answer.Header.Get("Content-Type"), file[:20])
	}
	var same bytes.Buffer
	stage.Must(t, p.calls.ExportCoupons(t.Context(), "spring", client.Export{Voided: true, Excel: true, Zone: "Asia/Seoul"}, &same))
	if !bytes.Equal(file, same.Bytes()) {
		t.Errorf("the page's file is not the API's:\n%s\n%s", file, &same)
	}
	for _, split := range []rune{',', ';', '\t'} {
		rows := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(file, []byte("\ufeff"))))
		rows.Comma, rows.LazyQuotes, rows.FieldsPerRecord = split, true, -1
		all, err := rows.ReadAll()
		stage.Must(t, err)
		if split == ',' && len(all) != len(hostileUsers)+1 {
			t.Errorf("%d rows of %d coupons", len(all), len(hostileUsers))
		}
		for _, cell := range cells(all) {
			text, isText := strings.CutPrefix(cell, `="`) // how a text stays one
			if split != ',' {
				text, isText = strings.TrimLeft(cell, ` "`), false
			}
			if text != "" && !isText && strings.ContainsAny(text[:1], "=+-@\t\r") || isText && strings.ContainsAny(text[:1], "=+-@\t\r") {
				t.Errorf("split at %q there is the cell %q", split, cell)
			}
		}
	}
	first, err := bufio.NewReader(on.once(http.MethodGet, "/campaigns/spring/coupons.csv?lang=ko", nil, nil).Body).ReadString('\n')
	const head = "\ufeff번호,캠페인 ID,고객 ID,코드,상태,혜택,발급 시각 (Asia/Seoul),만료 시각 (Asia/Seoul),원장에 기록됨,회수 시각 (Asia/Seoul),회수 사유,대기열 회차,순번,직접 발급,순위,경품 ID,경품\r\n"
	if err != nil || first != head {
		t.Errorf("the Korean file begins with %q, want %q", first, head)
	}
	for _, korean := range []string{"김민아 고객님", "👩‍👩‍👧"} {
		if !bytes.Contains(file, []byte(korean)) {
			t.Errorf("there is no %s", korean)
		}
	}
}

func cells(rows [][]string) (all []string) {
	for _, row := range rows {
		all = append(all, row...)
	}
	return all
}

// TestThePagesExportIsStreamedAndCutWhereItFails exports 20,000 coupons, and then one more whose terms the
// ledger does not know: a client must notice that the file is incomplete. In a soak there are a million coupons.
func TestThePagesExportIsStreamedAndCutWhereItFails(t *testing.T) {
	t.Parallel()
	exportOf(t, 20_000)
}

func exportOf(t *testing.T, coupons int) {
	p := serve(t, launch{})
	p.create("spring", 2_000_000)
	p.stop()
	insert := `INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position)
		WITH RECURSIVE n (number) AS (SELECT %d UNION ALL SELECT number + 1 FROM n WHERE number < %d)
		SELECT 'spring', number, 'user-' || number, printf('%%016d', number), %d, 1, 1, number FROM n`
	alter(t, p.ledger(), fmt.Sprintf(insert, 1, coupons, 1))
	p = serve(t, launch{dir: p.dir})
	before := p.status("VmHWM")
	lines, err := count(newPerson(p).export("spring"))
	if err != nil || lines != coupons+1 {
		t.Errorf("%d lines of %d coupons came: %v", lines, coupons, err)
	}
	p.mostResident(before + 64<<20)
	p.stop()
	alter(t, p.ledger(), fmt.Sprintf(insert, coupons+1, coupons+1, 0))
	p = serve(t, launch{dir: p.dir})
	lines, err = count(newPerson(p).export("spring"))
	if !errors.Is(err, io.ErrUnexpectedEOF) || lines < coupons/2 {
		t.Errorf("an export that failed ends with %v behind %d lines", err, lines)
	}
}

func count(answer *http.Response) (lines int, err error) {
	if answer.StatusCode != http.StatusOK {
		return 0, errors.New(answer.Status)
	}
	all := bufio.NewScanner(answer.Body)
	for all.Scan() {
		lines++
	}
	return lines, all.Err()
}
