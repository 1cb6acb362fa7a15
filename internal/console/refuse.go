package console

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

var (
	errRole      = errors.New("the role may not")
	errCrossSite = errors.New("another site sent it")
	errOtherHost = errors.New("another host name")
	errProxied   = errors.New("through a proxy")
	errOften     = errors.New("the address asks too often")
	errRoom      = errors.New("as much is read at once as may be")
	errMedia     = errors.New("the body is no form")
	errPanic     = errors.New("the page panicked")
)

// A refusal is a page that says why nothing is shown or done, and what to do about it.
type refusal struct {
	Status int
	Head   string
	Why    string
	Since  []recordLine // what has changed since the form was shown
	Back   string       // the page on which to see it
}

// refuse answers with a page about an error, or leads to the login.
func (v *view) refuse(err error) {
	if errors.Is(err, errNoSession) {
		if v.r.Header.Get("Accept") == "text/event-stream" { // the login page cannot be sent as a stream, so the page's script goes there
			http.Error(v.w, "Log in at "+Root+"/login.", http.StatusUnauthorized)
			return
		}
		next := Root
		if v.r.Method == http.MethodGet {
			next = v.r.URL.RequestURI()
		}
		_ = v.redirect(Root + "/login?next=" + url.QueryEscape(next))
		return
	}
	page := v.refusalOf(err)
	if page.Status == http.StatusPreconditionFailed {
		page.Since, page.Back = v.since()
	}
	if page.Status >= http.StatusInternalServerError {
		v.Log.Warn("a page of the console failed", "page", v.r.URL.Path, "err", err)
	}
	if failed := v.render(page.Status, "refusal", page.Head, page); failed != nil {
		v.Log.Error("a refusal of the console cannot be shown", "err", failed)
		http.Error(v.w, page.Head, http.StatusInternalServerError)
	}
}

// since returns what has changed about a campaign since the version in the form, the latest change first.
func (v *view) since() (lines []recordLine, back string) {
	id, err := v.campaign()
	if err != nil {
		return nil, ""
	}
	back = Root + "/campaigns/" + string(id) + "/steer"
	version, err := v.shownVersion()
	if err != nil {
		return nil, back
	}
	var shown time.Time
	err = v.Ledger.Changes(v.r.Context(), id, version-1, 1, func(c firstcome.Change, _ bool) error {
		shown = c.At
		return nil
	})
	entries, failed := v.Ledger.AuditLog(v.r.Context(), ledger.LogFilter{Campaign: id, Limit: 10})
	names, unnamed := v.keyNames(v)
	if errors.Join(err, failed, unnamed) != nil {
		return nil, back
	}
	for n := range entries {
		if entries[n].At.After(shown) {
			lines = append(lines, v.lang.lineOf(&entries[n], names))
		}
	}
	return lines, back
}

// refusalOf is the only table from errors to what people read about them.
func (v *view) refusalOf(err error) refusal {
	nothing := v.say("아무것도 변경되지 않았습니다.", "Nothing was changed.")
	var field *firstcome.FieldError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errRole):
		return refusal{Status: http.StatusForbidden, Head: v.say("이 역할로는 할 수 없습니다", "Your role may not do this"), Why: v.say("권한이 있는 담당자에게 요청하세요.", "Ask a colleague whose role may.")}
	case errors.Is(err, errCrossSite):
		return refusal{Status: http.StatusForbidden, Head: v.say("다른 사이트에서 온 요청입니다", "This came from another site"), Why: nothing + " " + v.say("콘솔 화면에서 직접 실행하세요.", "Press the button in the console itself.")}
	case errors.Is(err, errOtherHost):
		return refusal{Status: http.StatusForbidden, Head: v.say("이 주소로는 접속할 수 없습니다", "Not at this address"), Why: v.say("개발 모드에서는 localhost 주소로만 접속할 수 있습니다.", "In development mode the console answers localhost alone.")}
	case errors.Is(err, errProxied):
		return refusal{Status: http.StatusForbidden, Head: v.say("프록시를 통해서는 접속할 수 없습니다", "Not through a proxy"), Why: v.say("개발 모드에서는 누구나 관리자이므로, 프록시를 거친 접속도 모두 관리자가 됩니다. 먼저 키를 만드세요: firstcome key create", "In development mode everybody is admin, including everybody behind the proxy. Create a key first: firstcome key create")}
	case errors.As(err, &tooLarge):
		return refusal{Status: http.StatusRequestEntityTooLarge, Head: v.say("입력한 내용이 너무 깁니다", "The form is too long"), Why: nothing + " " + v.say("내용을 줄여 다시 시도하세요.", "Shorten it and send it again.")}
	case errors.Is(err, errMedia):
		return refusal{Status: http.StatusUnsupportedMediaType, Head: v.say("콘솔에서 보낸 양식이 아닙니다", "This form is not the console's"), Why: nothing + " " + v.say("콘솔 화면에서 직접 실행하세요.", "Press the button in the console itself.")}
	case errors.Is(err, errOften):
		return refusal{Status: http.StatusTooManyRequests, Head: v.say("요청이 너무 많습니다", "Too many requests"), Why: nothing + " " + v.say("접속 중인 주소에서 요청이 너무 많이 왔습니다. 잠시 뒤 다시 시도하세요.", "Too many requests came from your address. Try again in a moment.")}
	case errors.Is(err, errRoom):
		return refusal{Status: http.StatusServiceUnavailable, Head: v.say("열려 있는 화면이 너무 많습니다", "Too many pages are open"), Why: nothing + " " + v.say("이 키로, 또는 콘솔 전체에서 열 수 있는 화면 수를 넘었습니다. 화면을 몇 개 닫고 다시 시도하세요.", "This key, or all keys together, have reached the limit of open pages. Close some, and try again.")}
	case errors.Is(err, errProving):
		return refusal{Status: http.StatusConflict, Head: v.say("이미 검증 중입니다", "A verification is running"), Why: v.say("검증은 한 번에 하나만 실행됩니다. 끝나면 다시 시도하세요.", "Only one runs at a time. Try again when it has ended.")}
	case errors.Is(err, firstcome.ErrStale):
		return refusal{Status: http.StatusPreconditionFailed, Head: v.say("그사이 캠페인이 변경되었습니다", "The campaign has changed"), Why: nothing + " " + v.say("돌아가서 현재 값을 확인하고 다시 시도하세요.", "Go back, see what it is now, and try again.")}
	case errors.Is(err, firstcome.ErrNoCampaign), errors.Is(err, firstcome.ErrNoCoupon), errors.Is(err, firstcome.ErrNoDeadLetter), errors.Is(err, errLost):
		return refusal{Status: http.StatusNotFound, Head: v.say("페이지를 찾을 수 없습니다", "Not found"), Why: v.say("주소를 다시 확인하세요.", "Check the address.")}
	case errors.As(err, &field):
		return refusal{Status: http.StatusUnprocessableEntity, Head: v.say("사용할 수 없는 값입니다", "This value is not accepted"), Why: v.why(field) + ". " + nothing}
	case errors.Is(err, firstcome.ErrPrizesFixed):
		return refusal{Status: http.StatusConflict, Head: v.say("경품을 변경할 수 없습니다", "The prizes cannot be changed"), Why: v.say("이미 발급된 쿠폰이 있어 경품의 ID와 순서, 수량은 그대로 유지됩니다. 이름과 혜택은 변경할 수 있습니다.", "A coupon has been issued, so ids, order and quantities of the prizes stay. Names and benefits can still be changed.") + " " + nothing}
	case errors.Is(err, firstcome.ErrBelowInForce), errors.Is(err, firstcome.ErrClosed), errors.Is(err, firstcome.ErrAlreadyVoided), errors.Is(err, firstcome.ErrResolvedLetter), errors.Is(err, firstcome.ErrCampaignExists), errors.Is(err, record.ErrRefused), errors.Is(err, operate.ErrNoRemoteGate), errors.Is(err, gate.ErrRetired):
		return refusal{Status: http.StatusConflict, Head: v.say("지금은 처리할 수 없습니다", "This cannot be done now"), Why: v.why(err) + ". " + nothing}
	case errors.Is(err, firstcome.ErrPending): // also if the earlier change is the unfinished one
		return refusal{Status: http.StatusServiceUnavailable, Head: v.say("앞선 변경이 아직 반영 중입니다", "An earlier change is on its way"), Why: nothing + " " + v.say("앞선 변경이 게이트에 반영된 뒤 다시 시도하세요.", "Try again once that change has reached the gate.")}
	case errors.Is(err, gate.ErrUnfinished) && errors.Is(err, firstcome.ErrGateMismatch):
		return refusal{Status: http.StatusServiceUnavailable, Head: v.say("곧 반영됩니다", "It will take effect"), Why: v.say("변경은 원장에 기록되었습니다. 이 노드의 게이트나 코드 비밀키가 캠페인의 것과 달라, 다른 노드가 게이트에 반영해야 합니다. 조치 방법은 노드의 로그를 확인하세요.", "The change is in the ledger. This node has another gate or code secret than the campaign, so another node has to bring it to the gate. The node's log says what to do.")}
	case errors.Is(err, gate.ErrUnfinished):
		return refusal{Status: http.StatusServiceUnavailable, Head: v.say("곧 반영됩니다", "It will take effect"), Why: v.say("변경은 원장에 기록되었습니다. 게이트가 응답하면 바로 반영됩니다.", "The change is in the ledger, and reaches the gate as soon as that answers.")}
	case errors.Is(err, firstcome.ErrLineLogAway):
		return refusal{Status: http.StatusServiceUnavailable, Head: v.say("대기열을 보관하는 Kafka가 응답하지 않습니다", "Kafka, which has the copies of the lines, does not answer"), Why: nothing + " " + v.say("잠시 뒤 다시 시도하세요. 다시 시도해도 안전합니다.", "Try again in a moment: it is safe.")}
	case errors.Is(err, firstcome.ErrLineLogGone):
		return refusal{Status: http.StatusServiceUnavailable, Head: v.say("Kafka에 대기열의 기록이 빠져 있습니다", "Kafka lacks records of the line"), Why: nothing + " " + v.say("토픽이 다시 만들어졌거나 기록이 지워졌습니다. Redis에 있는 대기열을 다시 기록하려면 서버에서 다음을 실행하세요: firstcome gate rebuild ID --without-line-log", "The topic was recreated, or its records were deleted. To log the line that Redis has again, type at the server: firstcome gate rebuild ID --without-line-log")}
	case errors.Is(err, firstcome.ErrGateMismatch), errors.Is(err, gate.ErrUnnamed):
		return refusal{Status: http.StatusServiceUnavailable, Head: v.say("이 노드에서는 처리할 수 없습니다", "Not by this node"), Why: v.why(err) + ". " + v.say("조치 방법은 노드의 로그를 확인하세요.", "The node's log says what to do.")}
	case errors.Is(err, firstcome.ErrNotRecorded):
		return refusal{Status: http.StatusServiceUnavailable, Head: v.say("아직 원장에 없습니다", "It is not in the ledger yet"), Why: nothing + " " + v.say("쿠폰이 원장에 기록된 뒤 다시 시도하세요. 기록 현황 화면에서 확인할 수 있습니다.", "Try again as soon as the coupon is there: see Recording.")}
	}
	if known, ok := v.ofGate(err); ok {
		known.Status = http.StatusServiceUnavailable
		return known
	}
	if cause := firstcome.CauseOf(err); cause != "" {
		return refusal{Status: http.StatusServiceUnavailable, Head: v.lang.words(busyWords[cause]), Why: nothing + " " + v.say("잠시 뒤 다시 시도하세요. 다시 시도해도 안전합니다.", "Try again in a moment: it is safe.")}
	}
	undone := v.say("다시 시도하기 전에 돌아가서 현재 값을 확인하세요.", "Go back and check whether the change was made before you try again.")
	reads := v.r.Method == http.MethodGet
	switch {
	case errors.Is(err, errPanic) && reads:
		return refusal{Status: http.StatusInternalServerError, Head: v.say("화면에 오류가 발생했습니다", "This page failed"), Why: nothing + " " + v.say("원인은 노드의 로그에서 확인하세요.", "The node's log says what went wrong.")}
	case errors.Is(err, errPanic):
		return refusal{Status: http.StatusInternalServerError, Head: v.say("화면에 오류가 발생해 변경 여부를 알 수 없습니다", "This page failed, and it is not known whether the change was made"), Why: undone}
	case reads:
		return refusal{Status: http.StatusServiceUnavailable, Head: v.say("지금은 알 수 없습니다", "This is not known now"), Why: v.say("원장이나 게이트를 읽지 못했습니다. 원인은 노드의 로그에 있습니다. 잠시 뒤 다시 시도하세요.", "The ledger or the gate could not be read, and the node's log says why. Try again in a moment.")}
	}
	return refusal{Status: http.StatusServiceUnavailable, Head: v.say("변경 여부를 알 수 없습니다", "It is not known whether the change was made"), Why: v.say("원장이나 게이트가 변경을 확인해 주지 않았습니다. 원인은 노드의 로그에 있습니다.", "The ledger or the gate did not say that it was done, and the node's log says why.") + " " + undone}
}

// ofGate returns the refusal for a gate that decides nothing, or for a coupon that is not recorded yet. It returns false for other errors.
func (v *view) ofGate(err error) (refusal, bool) {
	nothing := v.say("아무것도 변경되지 않았습니다.", "Nothing was changed.")
	var full *recovery.NoRoomError
	switch {
	case errors.Is(err, gate.ErrLedgerRolledBack):
		return refusal{Head: v.say("원장이 게이트보다 오래되었습니다", "The ledger is older than the gate"), Why: nothing + " " + v.say("백업을 되돌린 것 같습니다. 조치 방법은 기록 현황 화면에서 확인하세요.", "A backup may have been restored. Recording says what to do.")}, true
	case errors.Is(err, gate.ErrStaleEpoch):
		return refusal{Head: v.say("게이트가 원장보다 오래되었습니다", "The gate is older than the ledger"), Why: nothing + " " + v.say("이 노드가 연결된 Redis는 이미 다른 Redis로 대체되었습니다. 조치 방법은 기록 현황 화면에서 확인하세요.", "Another Redis took the place of the one that this node reaches. Recording says what to do.")}, true
	case errors.Is(err, recovery.ErrSuperseded), errors.Is(err, record.ErrRebuilding):
		return refusal{Head: v.say("게이트를 재구성하고 있습니다", "The gate is being rebuilt"), Why: nothing + " " + v.say("끝나면 다시 시도하세요. 진행 상황은 기록 현황 화면에서 확인하세요.", "Try again when that is done: see Recording.")}, true
	case errors.Is(err, gate.ErrUnverified):
		return refusal{Head: v.say("게이트가 아직 확인되지 않았습니다", "The gate is not verified yet"), Why: nothing + " " + v.say("Redis가 다시 시작했거나, 이전 상태로 되돌아갔거나, 다른 서버로 전환되었습니다. 노드가 몇 초 안에 확인합니다. 그 뒤 다시 시도하세요.", "Redis restarted or went back to an older state, or another server took over. A node verifies it within seconds. Try again then.")}, true
	case errors.Is(err, gate.ErrGone):
		return refusal{Head: v.say("게이트가 이 캠페인의 데이터를 잃었습니다", "The gate has lost this campaign"), Why: nothing + " " + v.say("조치 방법은 기록 현황 화면에서 확인하세요.", "Recording says what to do.")}, true
	case errors.As(err, &full):
		const mega = 1 << 20
		return refusal{Head: v.say("Redis의 메모리가 부족합니다", "Redis lacks memory"), Why: nothing + " " + v.say("게이트를 재구성하려면 메모리가 약 %s MiB 더 필요합니다. maxmemory를 늘리거나 메모리를 확보한 뒤 다시 시도하세요.", "A rebuild needs about %s MiB more. Raise maxmemory, or free that much memory, and try again.", v.lang.number((full.Bytes+mega-1)/mega))}, true
	case errors.Is(err, issue.ErrNotRecordedYet):
		return refusal{Head: v.say("아직 원장에 없습니다", "It is not in the ledger yet"), Why: v.say("발급은 결정되었지만 쿠폰이 제때 원장에 기록되지 않았습니다. 다시 시도해도 한 장만 발급됩니다.", "The issue was decided, and the coupon was not recorded in time. Try again: it is safe, and no second coupon is issued.")}, true
	case errors.Is(err, issue.ErrUnrecorded):
		return refusal{Head: v.say("원장이 쿠폰을 받지 않았습니다", "The ledger did not take the coupon"), Why: v.say("쿠폰은 발급되었지만 기록되지 않았습니다. 기록 현황 화면에서 기록 실패 건이나 유실된 번호를 확인하세요.", "It was issued and is not recorded. Look for it among the dead letters and lost numbers on Recording.")}, true
	}
	return refusal{}, false
}

// busyWords says in both languages why nothing was done.
var busyWords = map[firstcome.Cause]sentence{
	firstcome.Busy:            {"지금은 요청이 너무 많습니다", "The server is busy"},
	firstcome.GateUnavailable: {"게이트가 지금 결정하지 못합니다", "The gate cannot decide now"},
	firstcome.GateFull:        {"게이트 용량을 초과했습니다", "The gate is full"},
	firstcome.LineFull:        {"대기열 정원을 초과했습니다", "The line is full"},
	firstcome.Stopping:        {"이 노드는 종료 중입니다", "This node is stopping"},
}

var errLost = errors.New("no such page")

func (c *Console) serveLost(w http.ResponseWriter, r *http.Request) {
	v := c.newView(w, r)
	if who, err := c.person(w, r); err == nil {
		v.who = who
	}
	v.refuse(errLost)
}

// conflicts says in Korean why something cannot be done now, or not by this node.
var conflicts = []struct {
	err error
	ko  string
}{
	{firstcome.ErrBelowInForce, "수량이 유효한 쿠폰 수보다 작습니다"},
	{firstcome.ErrClosed, "종료된 캠페인입니다"},
	{firstcome.ErrAlreadyVoided, "이미 회수된 쿠폰입니다"},
	{firstcome.ErrResolvedLetter, "이미 처리된 기록 실패 건입니다"},
	{firstcome.ErrCampaignExists, "이미 사용 중인 캠페인 ID입니다"},
	{operate.ErrNoRemoteGate, "이 노드의 캠페인은 원장이 직접 결정하므로 재구성할 게이트가 없습니다"},
	{gate.ErrRetired, "끝난 캠페인이라 게이트에서 삭제되었고, 이제 원장이 응답합니다"},
	{record.ErrRefused, "원장이 거부했습니다. 원인은 노드의 로그에 있습니다"},
	{gate.ErrUnnamed, "이 노드의 Redis에 게이트 이름이 없어 만들지 않았습니다"},
	{firstcome.ErrGateMismatch, "이 노드의 게이트나 코드 비밀키가 캠페인의 것과 다릅니다"},
}

// inList matches the place of an item in the name of a field, as in prizes[2].name.
var inList = regexp.MustCompile(`\[\d+\]`)

// why returns what is wrong, in the person's language.
func (v *view) why(err error) string {
	var field *firstcome.FieldError
	if v.lang.language == english {
		if errors.As(err, &field) && (field.Field == "user_id" || field.Field == "campaign") {
			return field.Reason // the reason names the field
		}
		return err.Error()
	}
	if errors.As(err, &field) && allowed[inList.ReplaceAllString(field.Field, "")] != "" {
		return allowed[inList.ReplaceAllString(field.Field, "")]
	}
	for _, c := range conflicts {
		if errors.Is(err, c.err) {
			return c.ko
		}
	}
	if errors.As(err, &field) && strings.ContainsFunc(field.Reason, func(r rune) bool { return r >= '가' && r <= '힣' }) { // it is one of the console's own reasons
		return field.Field + ": " + field.Reason
	}
	return "사용할 수 없는 값입니다"
}

// whyID returns what is wrong with an id. kind is user_id or campaign.
func (v *view) whyID(kind string, err error) string {
	return v.why(&firstcome.FieldError{Field: kind, Reason: err.Error()})
}

// fieldWrong returns what is wrong with a field, for the text beside it.
func (v *view) fieldWrong(field *firstcome.FieldError) string {
	if v.lang.language == english {
		return strings.NewReplacer("null", "empty", "opens_at", "the opening").Replace(field.Reason) // a form has no null
	}
	return v.why(field)
}
