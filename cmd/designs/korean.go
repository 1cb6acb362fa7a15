package main

import (
	"io"
	"regexp"
	"strings"
)

// writeKoreanMarkdown writes the table of writeMarkdown in Korean.
func writeKoreanMarkdown(w io.Writer, rep *report, picked []contestant) error {
	var table strings.Builder
	if err := writeMarkdown(&table, rep, picked); err != nil {
		return err
	}
	_, err := io.WriteString(w, inKorean(table.String()))
	return err
}

// inKorean translates a table of writeMarkdown. The names of contestants, of fault points and of runs stay as they are.
func inKorean(table string) string {
	for _, words := range [][2]string{
		{`^\| design \|.*`, `| 설계 | 수량 정확 | 순서 | 발급 안내 후 미저장 | 초당 발급 | 응답 p95 | 최악의 장애 이후 |`},
		{`\| yes \|`, `| 예 |`},
		{`\| kept \|`, `| 지켜짐 |`},
		{`\| exact \|`, `| 정확 |`},
		{`not finished: ([\d,]+) of ([\d,]+) stored`, `미완료: ${2}건 중 ${1}건 저장`},
		{`([\d,]+) oversold`, `초과 발급 ${1}장`},
		{`([\d,]+) promised too much`, `초과 안내 ${1}명`},
		{`([\d,]+) with two`, `두 장 받음 ${1}명`},
		{`([\d,]+) told and not stored`, `발급 안내 후 미저장 ${1}명`},
		{`([\d,]+) stored and not told`, `저장 후 미안내 ${1}명`},
		{`([\d,]+) told nothing`, `무응답 ${1}명`},
		{`([\d,]+) refused while coupons were left`, `남았는데 거절 ${1}명`},
		{`([\d,]+) pairs(?: out of order)?`, `순서가 뒤바뀐 쌍 ${1}개`},
		{`reported by its own audit`, `자체 검증에서 모두 보고`},
		{`its own audit names (\d+) numbers as lost, (\d+) of them told`, `자체 검증이 유실로 보고한 번호 ${1}개(안내된 번호 ${2}개)`},
		{`\((\d+) to the database\)`, `(데이터베이스 연결 ${1}개)`},
		{`\(killed at ([\w:-]+)\)`, `(${1}에서 강제 종료)`},
		{`\(stopped at ([\w:-]+)\)`, `(${1}에서 5초 정지)`},
		{`\(Redis restarts\)`, `(Redis 재시작)`},
		{`\(a reply of Redis is lost\)`, `(Redis 응답 유실)`},
		{`\(the database is away\)`, `(데이터베이스 중단)`},
		{`\(clocks differ\)`, `(시계 차이)`},
		{`(\p{Hangul}|\d) \(`, `${1}(`},
	} {
		table = regexp.MustCompile(words[0]).ReplaceAllString(table, words[1])
	}
	return table
}
