package console

import (
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
)

// findingWords has the Korean name and advice for each check of doctor, by Finding.What.
var findingWords = map[string]struct{ name, advice string }{
	"ledger":                             {"원장", "원장이 응답하지 않거나 느리거나 손상되었습니다. 주소와 로그인 정보, 서버 상태를 확인하세요. 파일이 손상되었다면 서버를 멈추고 백업을 되돌리세요."},
	"the ledger's clock":                 {"원장 서버의 시계", "이 서버의 시계와 맞지 않습니다. 두 시계를 모두 NTP로 맞추세요. 원장이 직접 결정하면 그 시계로 오픈하고 마감합니다."},
	"WAL":                                {"원장 파일의 WAL", "WAL이 꺼져 있거나 읽을 수 없습니다. 꺼져 있다면 serve가 시작하면서 켭니다."},
	"lock":                               {"원장 파일의 잠금", "잠금 파일을 쓸 수 없습니다. serve를 실행하는 사용자에게 쓰기 권한을 주세요."},
	"tables":                             {"원장의 테이블", "테이블이 없거나 이 firstcome의 것이 아닙니다. 테이블을 만들 수 있는 사용자로 firstcome migrate를 실행하거나, 더 새로운 firstcome을 쓰세요."},
	"ids":                                {"ID 비교 방식", "열이나 데이터베이스가 ID를 바이트 단위로 비교하지 않습니다. 원문에 나온 문장을 실행하세요."},
	"rights":                             {"권한", "원장의 파일이나 테이블을 읽고 쓸 권한이 모자랍니다. serve를 실행하는 사용자나 데이터베이스 사용자에게 권한을 주세요."},
	"server":                             {"원장 서버의 버전", "버전을 읽을 수 없거나 너무 오래되었습니다. PostgreSQL 13, MariaDB 10.6, MySQL 8.0.16 이상이어야 합니다."},
	"writes":                             {"쓰기", "쓸 수 없는 서버이거나 트랜잭션이 읽기 전용입니다. 주 서버의 주소를 쓰세요."},
	"read_only":                          {"read_only", "쓸 수 없는 서버입니다. 주 서버의 주소를 쓰세요."},
	"settings":                           {"세션 설정", "세션에 정한 설정이 적용되지 않거나 읽을 수 없습니다. 중간의 풀러나 프록시가 SET을 버리거나 바꾸지 않게 하세요."},
	"cluster":                            {"Galera 클러스터", "모든 노드가 클러스터의 한 서버에만 연결하게 하세요. 그 서버는 Primary이고 Synced여야 합니다."},
	"semi-synchronous replication":       {"반동기 복제", "확인 응답을 보내는 복제 서버가 없거나, 응답 없이 커밋하게 되는 설정입니다. 복제 서버를 다시 연결하고 rpl_semi_sync_master_timeout을 하루 이상으로 하세요. 아니면 장애 조치 때 기록되었다고 안내한 쿠폰이 유실될 수 있습니다."},
	"old transactions":                   {"오래 열린 트랜잭션", "1분 넘게 열려 있는 트랜잭션이 있거나, 있는지 읽을 수 없습니다. 열려 있는 동안 요청 처리가 점점 느려지니 원문에 나온 대로 종료하세요."},
	"synchronous standby":                {"동기 복제 서버", "커밋이 동기 복제 서버를 기다리지 않거나, 연결된 동기 복제 서버가 모자라 커밋이 멈췄거나, 상태를 읽을 수 없습니다. 원문에 나온 대로 조치하세요."},
	"max_allowed_packet":                 {"max_allowed_packet", "16M로 하세요. 너무 작으면 쿠폰을 한꺼번에 기록할 수 없습니다."},
	"sessions":                           {"세션", "세션마다 서버 프로세스가 따로 있지 않습니다. 풀러가 트랜잭션이 아니라 세션을 나누게 하세요: pool_mode = session"},
	"isolation":                          {"격리 수준", "READ COMMITTED로 실행되지 않거나 읽을 수 없습니다. 풀러와 binlog_format 설정을 확인하세요."},
	"connections":                        {"원장 연결 수", "노드를 띄우기에 연결이 모자라거나 한도를 읽을 수 없습니다. 서버나 사용자의 연결 한도를 늘리세요."},
	"fsync":                              {"fsync", "디스크가 느리거나, 쓴 것을 확실히 남기지 못합니다. 더 빠른 디스크를 쓰고, PostgreSQL이라면 fsync를 on으로 하세요."},
	"full_page_writes":                   {"full_page_writes", "on으로 하세요. 꺼져 있으면 전원이 끊길 때 페이지가 깨질 수 있습니다."},
	"synchronous_commit":                 {"synchronous_commit", "원장 주소에서 이 설정을 빼세요. 아니면 기록되었다고 안내한 쿠폰이 유실될 수 있습니다."},
	"innodb_flush_log_at_trx_commit":     {"innodb_flush_log_at_trx_commit", "1로 하세요. 아니면 기록되었다고 안내한 쿠폰이 유실될 수 있습니다."},
	"innodb_doublewrite":                 {"innodb_doublewrite", "ON으로 하세요. 꺼져 있으면 전원이 끊길 때 페이지가 깨질 수 있습니다."},
	"innodb_flush_method":                {"innodb_flush_method", "fsync나 O_DIRECT로 하세요. 지금은 아무것도 디스크에 확실히 남지 않습니다."},
	"binary log":                         {"바이너리 로그", "설정을 확인하세요."},
	"sync_binlog":                        {"sync_binlog", "1로 하세요. 아니면 기록되었다고 안내한 쿠폰이 유실될 수 있습니다."},
	"gate":                               {"게이트", "Redis가 응답하지 않거나 느립니다. 주소와 로그인 정보, 서버 상태를 확인하고, 느리다면 노드 가까이에 두세요. 연결은 되는데 응답이 없다면 스왑, AOF 디스크의 남은 공간, 느린 명령(SLOWLOG), 멈춘 프로세스를 확인하세요."},
	"the gate's server":                  {"게이트의 서버", "버전을 읽을 수 없거나 쓸 수 없는 서버입니다. Redis 6.2 이상이나 Valkey여야 하고, Sentinel에는 주 서버의 이름을 적어야 합니다."},
	"role":                               {"Redis의 역할", "복제 서버는 아무것도 결정하지 못합니다. 주 서버의 주소를 쓰세요."},
	"eviction":                           {"maxmemory-policy", "noeviction으로 하세요. 아니면 가득 찼을 때 데이터가 지워져 쿠폰이 두 번 나갈 수 있습니다."},
	"memory":                             {"Redis 메모리", "한도가 없거나 거의 찼습니다. maxmemory를 알맞게 정하세요. 가득 차면 요청에 503으로 응답합니다."},
	"persistence":                        {"Redis의 디스크 기록", "AOF가 꺼져 있거나 마지막 쓰기에 실패했습니다. appendonly를 켜고 디스크 공간을 확인하세요."},
	"appendfsync":                        {"appendfsync", "everysec나 always로 하고, no-appendfsync-on-rewrite는 no로 하세요. 값을 읽을 수 없다면 서비스 설정에서 확인하세요."},
	"snapshots":                          {"Redis 스냅샷", "마지막 스냅샷에 실패했습니다. Redis 로그를 확인하세요. 계속되면 Redis가 쓰기를 거절할 수 있습니다."},
	"the user default":                   {"Redis의 default 사용자", "권한이 모자라거나 확인할 수 없습니다. 모자라면 Redis가 다시 시작할 때 모든 캠페인을 잃습니다. 원문에 나온 대로 권한을 주세요."},
	"replicas":                           {"Redis 복제", "min-replicas-to-write가 0입니다. 끊긴 주 서버가 계속 발급하면 장애 조치 때 유실됩니다. 1로 하고 min-replicas-max-lag는 2로 하세요."},
	"clients":                            {"Redis 연결 수", "남은 연결이 적습니다. maxclients를 늘리세요."},
	"the gate's clock":                   {"게이트의 시계", "이 서버의 시계와 맞지 않거나 읽을 수 없습니다. 두 시계를 모두 NTP로 맞추세요. Redis의 시계로 오픈하고 마감합니다."},
	"the gate's rights":                  {"게이트의 권한", "Redis 사용자에게 필요한 권한이 없습니다. 원문에 나온 대로 권한을 주세요."},
	"the gate's layout":                  {"게이트의 데이터 형식", "읽을 수 없거나, 더 새로운 firstcome이 쓴 형식입니다. 이 노드에도 더 새로운 firstcome을 쓰세요."},
	"the topic of facts":                 {"발급 기록 토픽", "토픽을 쓸 수 없습니다. 브로커 주소와 로그인 정보, 토픽 이름을 확인하세요."},
	"the topic of the journal":           {"저널 토픽", "토픽을 쓸 수 없습니다. 브로커 주소와 로그인 정보, 토픽 이름을 확인하세요."},
	"the topic of lines":                 {"대기열 토픽", "토픽을 쓸 수 없습니다. 브로커 주소와 로그인 정보, 토픽 이름을 확인하세요."},
	"the settings of the topic of facts": {"발급 기록 토픽의 설정", "복제 수나 보관 설정이 알맞지 않거나 읽을 수 없습니다. 다른 시스템이 읽기 전에 기록이 지워질 수 있습니다."},
	"the settings of the topic of the journal": {"저널 토픽의 설정", "복제 수나 보관 설정이 알맞지 않거나 읽을 수 없습니다. 원장에 기록되기 전에 쿠폰이 지워질 수 있습니다."},
	"the settings of the topic of lines":       {"대기열 토픽의 설정", "복제 수나 보관 설정이 알맞지 않거나 읽을 수 없습니다. 대기하는 사람의 순번이 지워질 수 있습니다."},
	"the topic's rights":                       {"토픽의 권한", "토픽을 조회하고 읽고 쓸 권한이 모자랍니다."},
	"the recorders' group":                     {"레코더의 컨슈머 그룹", "레코더가 그룹에 들어갈 수 없습니다. 그룹의 권한을 확인하세요."},
	"disk":                                     {"디스크 공간", "공간이 모자라거나 읽을 수 없습니다. 가득 차면 요청에 503으로 응답합니다."},
	"secret":                                   {"코드 비밀키", "비밀키 파일을 읽을 수 없거나 다른 사용자도 읽을 수 있습니다. serve를 실행하는 사용자만 읽게 하세요."},
	"clock":                                    {"이 서버의 시계", "시계가 맞지 않습니다. NTP로 맞추세요."},
	"open files":                               {"열 수 있는 파일 수", "한도가 연결 수보다 작거나 읽을 수 없습니다. 한도를 늘리세요."},
}

// looked returns the Korean name of a check.
func looked(f doctor.Finding) string {
	if words, ok := findingWords[f.What]; ok {
		return words.name
	}
	return "그 밖의 점검"
}

// advice returns in Korean what to do about a finding, or "" if nothing.
func advice(f doctor.Finding) string {
	switch words, ok := findingWords[f.What]; {
	case f.Grade == doctor.OK:
		return ""
	case ok:
		return words.advice
	}
	return "운영 권한이 있는 사람이 원문을 확인해야 합니다."
}

// breachWords has the meaning of a breach, by its promise: see package audit.
var breachWords = map[string]sentence{
	"P1":         {"유효한 쿠폰이 수량을 넘은 적이 있습니다.", "More coupons were in force than the quantity."},
	"P2":         {"쿠폰이 남았는데 소진이라고 답했습니다.", "Claims were answered sold out while coupons were left."},
	"P3":         {"한 사람이 유효한 쿠폰을 두 장 가진 적이 있습니다.", "A customer held two coupons in force."},
	"P4":         {"번호와 발급 순서가 맞지 않습니다.", "Numbers and the order of the issues do not agree."},
	"P5":         {"있어야 할 쿠폰이 원장에 없습니다.", "The ledger lacks coupons that it should have."},
	"P6":         {"다시 신청한 사람에게 다른 답을 했습니다.", "Repeated claims were answered differently."},
	"P7":         {"오픈 전이나 마감 뒤, 또는 일시중지 중에 발급된 쿠폰이 있습니다.", "Coupons were issued before the opening, after the closing or in a pause."},
	"P8":         {"결과를 알면서 모른다고 답했거나, 모르면서 안다고 답했습니다.", "An answer reported something unknown, or something untrue."},
	"P9":         {"대기열의 순번이 지켜지지 않았거나, 대기열의 합이 맞지 않습니다.", "Places in line were not kept, or the line does not add up."},
	"P10":        {"같은 순위가 두 번 나갔거나, 순위나 경품이 쿠폰의 조건과 맞지 않습니다.", "A rank was given twice, or ranks and prizes do not agree with the coupons' terms."},
	"changes":    {"변경 이력과 캠페인의 지금 상태가 맞지 않습니다.", "The campaign does not match its changes."},
	"counters":   {"캠페인에 적힌 수나 시각이 쿠폰과 맞지 않습니다.", "The campaign's counters or times do not agree with its coupons."},
	"facts":      {"발급 기록이 쿠폰과 맞지 않습니다.", "The facts do not agree with the coupons."},
	"identity":   {"ID나 쿠폰 코드가 이 캠페인의 것이 아닙니다.", "An id or a code is not of this campaign."},
	"letters":    {"기록 실패 건의 내용이 서로 맞지 않습니다.", "A dead letter contradicts itself."},
	"log":        {"감사 로그가 변경이나 발급과 맞지 않습니다.", "The audit log does not agree with the changes or issues."},
	"keys":       {"감사 로그가 API 키와 맞지 않습니다.", "The audit log does not agree with the API keys."},
	"gate":       {"게이트가 가진 것이 원장과 맞지 않습니다.", "The gate and the ledger do not agree."},
	"unreadable": {"읽을 수 없는 행이 있습니다.", "Some rows cannot be read."},
	"books":      {"서버와 클라이언트의 기록이 서로 맞지 않습니다.", "The histories of server and clients do not agree."},
}

// broken returns the words for a breach of a promise. A breach that another version found may have general words only.
func (l language) broken(promise string) string {
	if words, ok := breachWords[promise]; ok {
		return l.words(words)
	}
	return l.say("서로 맞지 않는 것이 있습니다.", "The data is inconsistent.")
}

// unproved returns why a verification failed. The error itself is in the log.
func (l language) unproved(err error) string {
	if errors.Is(err, firstcome.ErrGateUnavailable) {
		return l.say("게이트가 응답하지 않았습니다. 잠시 뒤 다시 검증하세요.", "The gate did not answer. Verify again in a moment.")
	}
	return l.say("원장이나 게이트를 끝까지 읽지 못했습니다. 이유는 노드의 로그에 있습니다.", "The ledger or the gate could not be read to the end. The node's log says why.")
}
