package console

import "slices"

// An ending is how claims end: an outcome, or the cause of having none. Pages, plots and scripts take its words from here, and its colour from
// uplot.Outcomes.
type ending struct {
	kind    string // as in figures.Kind
	words   sentence
	refused bool // pages count it among the refused claims
}

// outcomeEndings are the outcomes, in the order in which plots stack them.
var outcomeEndings = []ending{
	{kind: "issued", words: sentence{"발급", "issued"}},
	{kind: "waiting", words: sentence{"대기", "waiting"}},
	{kind: "already_issued", words: sentence{"이미 받음", "already issued"}},
	{kind: "sold_out", words: sentence{"소진", "sold out"}, refused: true},
	{kind: "not_open", words: sentence{"오픈 전", "not open yet"}, refused: true},
	{kind: "paused", words: sentence{"일시중지", "paused"}, refused: true},
	{kind: "closed", words: sentence{"종료", "closed"}, refused: true},
}

// otherEndings are those without an outcome. Of these only claims that ended as "unknown" may have been decided.
var otherEndings = []ending{
	{kind: "shed", words: sentence{"과부하로 거절", "shed"}},
	{kind: "gate_unavailable", words: sentence{"게이트 응답 없음", "gate unavailable"}},
	{kind: "gate_full", words: sentence{"게이트 용량 초과", "gate full"}},
	{kind: "line_full", words: sentence{"대기열 정원 초과", "line full"}},
	{kind: "stopping", words: sentence{"노드 종료 중", "node stopping"}},
	{kind: "mismatch", words: sentence{"다른 노드 담당", "wrong node"}},
	{kind: "unknown", words: sentence{"미확인", "unknown"}},
}

var (
	withoutOutcome  = kindsIn(otherEndings)
	outcomesInPlots = append(kindsIn(outcomeEndings), withoutOutcome...)
	// inVain has the kinds of refused claims.
	inVain = kindsIn(slices.DeleteFunc(slices.Clone(outcomeEndings), func(e ending) bool { return !e.refused }))
)

func kindsIn(endings []ending) (kinds []string) {
	for _, e := range endings {
		kinds = append(kinds, e.kind)
	}
	return kinds
}

// outcome returns the words for how a claim ended, or those of unknown if the kind does not exist.
func (l language) outcome(kind string) string {
	all := slices.Concat(outcomeEndings, otherEndings)
	at := slices.IndexFunc(all, func(e ending) bool { return e.kind == kind })
	if at < 0 {
		at = len(all) - 1
	}
	return l.words(all[at].words)
}

// state returns the words for a campaign's state: open, the outcome that a newcomer's claim would get, or empty if unknown.
func (l language) state(state string) string {
	switch state {
	case "":
		return l.say("알 수 없음", "unknown")
	case "open":
		return l.say("진행 중", "open")
	}
	return l.outcome(state)
}
