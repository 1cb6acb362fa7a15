// What the page says, in Korean and in English. Nobody is told of a failure where the truth is a refusal.

const count = (n, lang) => new Intl.NumberFormat(lang).format(n);

// koHour says an instant of today as people do: 오전 10시, 오후 8시 30분; of another day with its date.
function koHour(at, now) {
  const h = at.getHours(), m = at.getMinutes(), s = at.getSeconds();
  const day = at.toDateString() === now.toDateString() ? "" : `${at.getMonth() + 1}월 ${at.getDate()}일 `;
  const part = h < 12 ? `오전 ${h}` : h === 12 ? "낮 12" : `오후 ${h - 12}`;
  return `${day}${part}시${m || s ? ` ${m}분` : ""}${s ? ` ${s}초` : ""}`;
}

function enHour(at, now) {
  const time = { hour: "numeric", minute: at.getMinutes() || at.getSeconds() ? "2-digit" : undefined, second: at.getSeconds() ? "2-digit" : undefined };
  const day = at.toDateString() === now.toDateString() ? {} : { month: "short", day: "numeric" };
  return new Intl.DateTimeFormat("en", { ...day, ...time }).format(at);
}

// A headline is a list of parts, [class, text], so that its figure can be set large. Read as a whole it is one sentence.
const plain = (text) => [["lead", text]];

function koWait(s) {
  return s === null ? [] : [["sep", " · "], ["tail", s < 60 ? `약 ${Math.max(s, 1)}초` : `약 ${Math.ceil(s / 60)}분`]];
}

function enWait(s) {
  return s === null ? [] : [["sep", " · "], ["tail", s < 60 ? `about ${Math.max(s, 1)} s` : `about ${Math.ceil(s / 60)} min`]];
}

export const words = {
  ko: {
    count: (n) => count(n, "ko"),
    title: "선착순 쿠폰", shop: "오늘의 상점", tongues: "언어", kicker: "선착순 쿠폰",
    off: "할인", terms: (q) => (q === null ? "1인 1매" : `${count(q, "ko")}장 · 1인 1매`),
    fair: "신청이 도착한 순서대로 드려요. 시간은 서버 시각 기준이에요.",
    tag: {
      loading: "불러오는 중", not_open: "곧 열려요", opening: "오픈 시각", open: "지금 열렸어요", asking: "확인 중", issued: "내 쿠폰", already_issued: "내 쿠폰",
      sold_out: "소진", closed: "종료", paused: "일시중지", waiting: "대기 중", unknown: "확인 중", left: "대기 취소", voided: "안내", lost: "안내", mistake: "안내",
    },
    loading: plain("불러오고 있어요"), asking: plain("확인하고 있어요"),
    opensAt: (at, now, left) => [["lead", `${koHour(at, now)}에 열려요`], ["sep", " · "], ["big", left], ["unit", " 남음"]],
    wakes: "열리면 버튼을 누를 수 있어요. 새로고침하지 않아도 돼요.",
    opening: plain("오픈 시각이 됐어요"), openingMore: "버튼을 누르면 바로 신청해요.", ask: "쿠폰 신청하기",
    none: plain("지금은 남은 쿠폰이 없어요"), noneMore: "대기하면 쿠폰이 다시 생길 때 순서대로 드려요.",
    open: plain("지금 받을 수 있어요"), remaining: (n, q) => `${count(q, "ko")}장 중 ${count(n, "ko")}장 남았어요`,
    issued: (n) => [["lead", "쿠폰을 받았어요!"], ["sep", " "], ["unit", "번호 "], ["big", count(n, "ko")]], already_issued: plain("이미 받은 쿠폰이에요"),
    issuedPrize: (prize, rank) => [["lead", `${prize} 쿠폰을 받았어요!`], ["sep", " "], ["big", count(rank, "ko")], ["unit", "번째"]],
    prize: (from, to) => (to === null ? (from > 1 ? "그다음 모두" : "모두") : from === 1 ? `처음 ${count(to, "ko")}명` : from === to ? `${count(to, "ko")}번째` : `${count(from, "ko")}~${count(to, "ko")}번째`),
    ranOut: "소진", rank: (n) => `${count(n, "ko")}번째`, number: (n) => `번호 ${count(n, "ko")}`, kept: "쿠폰함에 넣어 두었어요.", recording: "곧 쿠폰함에 보여요.",
    sold_out: plain("준비한 쿠폰이 모두 소진됐어요"), soldOutAt: (at, now) => `${koHour(at, now)}에 소진됐어요.`,
    closed: plain("이벤트가 끝났어요"), closedMore: "다음에 또 만나요.",
    paused: plain("쿠폰 발급이 일시중지됐어요"), pausedMore: "다시 시작될 때까지 기다려 주세요.",
    waiting: (ahead, seconds, turn) => (ahead > 0 ? [["lead", "내 앞에 최대 "], ["big", count(ahead, "ko")], ["unit", "명"], ...koWait(seconds)] : plain(turn ? "이제 내 차례예요" : "대기열 맨 앞이에요")),
    waitingMore: "화면을 닫아도 순번이 유지돼요.", unlikely: "지금대로라면 받지 못할 수 있어요. 앞사람이 취소하면 받을 수도 있어요.",
    standing: "지금대로라면 받지 못할 수 있어요. 쿠폰이 다시 생기면 순서대로 드려요.",
    held: "쿠폰 발급이 일시중지됐어요. 순번은 유지돼요.", early: (at, now, left) => `${koHour(at, now)}에 시작해요 · ${left} 남음. 순번은 유지돼요.`, ticket: (n) => `순번 ${count(n, "ko")}`,
    unknown: plain("아직 확인 중이에요. 다시 눌러도 한 장만 받아요."), again: (s) => `${s}초 뒤에 자동으로 다시 확인해요.`,
    left: plain("대기를 취소했어요"), leftMore: "다시 대기하면 맨 뒤부터예요.",
    voided: plain("쿠폰이 회수됐어요"), voidedMore: "차례가 되어 받은 쿠폰이 회수됐어요. 자세한 내용은 고객센터에 문의해 주세요.",
    lost: plain("순번이 사라졌어요"), lostMore: "불편을 드려 죄송해요. 다시 대기해 주세요.",
    mistake: plain("지금은 이 쿠폰을 보여 드릴 수 없어요"), mistakeMore: (code) => `고객센터에 문의해 주세요. (${code})`,
    get: "쿠폰 받기", queue: "대기하기", wait: "열리면 받기", join: "다시 대기하기", retry: "다시 확인하기", leave: "대기 취소하기",
    copy: "코드 복사", copied: "복사했어요", code: "쿠폰 코드",
    sure: "대기를 취소할까요?", sureText: "취소하면 순번이 사라져요. 다시 대기하면 맨 뒤부터예요.", stay: "계속 대기하기", go: "취소하기",
    wallet: "쿠폰함", empty: "아직 받은 쿠폰이 없어요.", until: (at) => `${at.getMonth() + 1}월 ${at.getDate()}일까지`, forever: "기한 없음",
  },
  en: {
    count: (n) => count(n, "en"),
    title: "First come, first served", shop: "Today’s shop", tongues: "Language", kicker: "First come, first served",
    off: "off", terms: (q) => (q === null ? "One each" : `${count(q, "en")} ${q === 1 ? "coupon" : "coupons"} · one each`),
    fair: "In the order in which requests reach us. All times are by the server’s clock.",
    tag: {
      loading: "Loading", not_open: "Opening soon", opening: "Opening", open: "Open now", asking: "Checking", issued: "Your coupon", already_issued: "Your coupon",
      sold_out: "All gone", closed: "Over", paused: "On hold", waiting: "In line", unknown: "Checking", left: "Left the line", voided: "Notice", lost: "Notice", mistake: "Notice",
    },
    loading: plain("Loading"), asking: plain("Checking"),
    opensAt: (at, now, left) => [["lead", `Opens at ${enHour(at, now)}`], ["sep", " · "], ["big", left], ["unit", " to go"]],
    wakes: "The button wakes up by itself. No need to reload.",
    opening: plain("It is time"), openingMore: "Tap the button to ask for a coupon.", ask: "Ask for a coupon",
    none: plain("No coupon is left right now"), noneMore: "If one comes back, it goes to the first in line.",
    open: plain("Ready when you are"), remaining: (n, q) => `${count(n, "en")} of ${count(q, "en")} left`,
    issued: (n) => [["lead", "The coupon is yours!"], ["sep", " "], ["unit", "No. "], ["big", count(n, "en")]], already_issued: plain("You already have this coupon"),
    issuedPrize: (prize, rank) => [["lead", `It is yours: ${prize}`], ["sep", " "], ["unit", "Rank "], ["big", count(rank, "en")]],
    prize: (from, to) => (to === null ? (from > 1 ? "Everybody else" : "Everybody") : from === 1 ? `The first ${count(to, "en")}` : from === to ? `Rank ${count(to, "en")}` : `Ranks ${count(from, "en")} to ${count(to, "en")}`),
    ranOut: "all gone", rank: (n) => `Rank ${count(n, "en")}`, number: (n) => `No. ${count(n, "en")}`, kept: "It is in your wallet.", recording: "It will be in your wallet soon.",
    sold_out: plain("All coupons are gone"), soldOutAt: (at, now) => `First sold out at ${enHour(at, now)}`,
    closed: plain("This event is over"), closedMore: "See you next time.",
    paused: plain("On hold"), pausedMore: "Please wait until it goes on.",
    waiting: (ahead, seconds, turn) => (ahead > 0 ? [["lead", "At most "], ["big", count(ahead, "en")], ["unit", " ahead of you"], ...enWait(seconds)] : plain(turn ? "It is your turn" : "You are first in line")),
    waitingMore: "Your place is kept, even if you close this page.", unlikely: "As it stands, you may not get one. If people ahead leave, you still may.",
    standing: "As it stands, you may not get one. If a coupon comes back, it goes to the first in line.",
    held: "On hold. Your place is kept.", early: (at, now, left) => `It begins at ${enHour(at, now)} · ${left} to go. Your place is kept.`, ticket: (n) => `Ticket ${count(n, "en")}`,
    unknown: plain("Still checking. Tap again if you like: you get one coupon only."), again: (s) => `Checking again by itself in ${s} s.`,
    left: plain("You left the line"), leftMore: "If you join again, you start at the end.",
    voided: plain("Your coupon was taken back"), voidedMore: "Your turn came, and the coupon was taken back. Please ask the shop if you want to know why.",
    lost: plain("Your place is gone"), lostMore: "Please join the line again.",
    mistake: plain("This coupon cannot be shown right now"), mistakeMore: (code) => `Please tell the shop (${code})`,
    get: "Get my coupon", queue: "Join the line", wait: "Get it when it opens", join: "Join the line again", retry: "Check again", leave: "Leave the line",
    copy: "Copy code", copied: "Copied", code: "Coupon code",
    sure: "Leave the line?", sureText: "You give up your place. If you join again, you start at the end.", stay: "Keep waiting", go: "Leave",
    wallet: "Wallet", empty: "No coupons yet.", until: (at) => `until ${new Intl.DateTimeFormat("en", { month: "short", day: "numeric" }).format(at)}`, forever: "no end date",
  },
};

// clock says how much is left: 02:13, 1:02:13, 3:04:02:13 with days.
export function clock(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000)), two = (n) => String(n).padStart(2, "0");
  const parts = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60, s % 60];
  if (parts[0]) return `${parts[0]}:${parts.slice(1).map(two).join(":")}`;
  return parts[1] ? `${parts[1]}:${two(parts[2])}:${two(parts[3])}` : `${two(parts[2])}:${two(parts[3])}`;
}
