package console

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
)

// allowed says in Korean what a field takes, by its name in a FieldError.
var allowed = map[string]string{
	"name": "1자에서 200바이트까지 적어 주세요", "quantity": "0 이상의 정수이고, 비우면 무제한입니다",
	"opens_at": "1970년부터 9999년까지의 시각입니다", "closes_at": "1970년부터 9999년까지의 시각이고, 오픈보다 뒤여야 합니다",
	"coupon.valid_until": "1970년부터 9999년까지의 시각입니다", "coupon.valid_for": "0보다 길고 100년을 넘지 않으며, 유효 기한과 함께 쓸 수 없습니다",
	"coupon.benefit": "16 KiB까지의 글이나 JSON입니다", "answer": "기록된 뒤이거나 결정하자마자입니다", "pace.per_second": "1 이상의 정수입니다",
	"waitlist": "대기열이 있어야 쓸 수 있습니다", "campaign": "캠페인 ID는 영어 소문자, 숫자, 붙임표로 된 1자에서 63자입니다",
	"user_id": fmt.Sprintf("고객 ID는 1바이트에서 %d바이트이고, 제어 문자가 없어야 합니다", firstcome.MaxUserID),
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
	{firstcome.ErrCampaignExists, "이 ID의 캠페인이 이미 있습니다"},
	{operate.ErrNoRemoteGate, "이 노드의 캠페인은 원장이 직접 결정하므로 다시 만들 게이트가 없습니다"},
	{gate.ErrRetired, "끝난 캠페인이라 게이트에서 지워졌고, 이제 원장이 응답합니다"},
	{flow.ErrRefused, "원장이 받지 않습니다. 무엇이 어긋나는지는 노드의 로그에 있습니다"},
	{ledger.ErrUnnamedGate, "이 노드의 Redis에 게이트 이름이 없어 만들지 않았습니다"},
	{firstcome.ErrGateMismatch, "이 노드의 게이트나 코드 비밀키가 캠페인의 것과 다릅니다"},
}

// why returns what is wrong, in the person's language.
func (v *view) why(err error) string {
	var field *firstcome.FieldError
	if v.lang == english {
		if errors.As(err, &field) && (field.Field == "user_id" || field.Field == "campaign") {
			return field.Reason // which names it
		}
		return err.Error()
	}
	if errors.As(err, &field) && allowed[field.Field] != "" {
		return allowed[field.Field]
	}
	for _, c := range conflicts {
		if errors.Is(err, c.err) {
			return c.ko
		}
	}
	if errors.As(err, &field) && hasHangul(field.Reason) { // the console's own
		return field.Field + ": " + field.Reason
	}
	return "받을 수 없는 값입니다"
}

func hasHangul(text string) bool {
	for _, r := range text {
		if r >= '가' && r <= '힣' {
			return true
		}
	}
	return false
}

// whyID returns what is wrong with an id of a kind: user_id or campaign.
func (v *view) whyID(kind string, err error) string {
	return v.why(&firstcome.FieldError{Field: kind, Reason: err.Error()})
}

// fieldWrong returns what is wrong with a field of a form, beside which it stands.
func (v *view) fieldWrong(field *firstcome.FieldError) string {
	if v.lang == english {
		return strings.ReplaceAll(field.Reason, "null", "empty") // a form has no null
	}
	return v.why(field)
}
