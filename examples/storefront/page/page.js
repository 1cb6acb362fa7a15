// The page: it asks firstcome and shows one state at a time.
import * as firstcome from "./firstcome.js";
import { clock, words } from "./words.js";

const at = (id) => document.getElementById(id);
let lang = pick();
let view = { state: "loading" }; // what is shown: a state with its coupon, place, …
let terms = null; // the campaign, as last read
let wallet = [];
let user = "";
let following = null; // the AbortController of who stands in line
let busy = false; // a claim, or leaving, is under way: one at a time

// The clock is the server's: the phone's own may be wrong, and may be set while the page is open.
const time = { server: 0, at: 0 };
const now = () => time.server + performance.now() - time.at;

function pick() {
  const kept = localStorage.getItem("lang");
  return kept in words ? kept : navigator.language.startsWith("ko") ? "ko" : "en";
}

async function begin() {
  render();
  for (let tries = 0; ; tries++) {
    try {
      user = (await firstcome.start()).user_id;
      break;
    } catch {
      await firstcome.sleep(firstcome.pause({ after: 0 }, tries));
    }
  }
  const answer = await known(readCampaign);
  if (!terms) return show({ state: "mistake", code: answer.body.code ?? answer.status });
  const mine = await known(firstcome.readClaim);
  if (mine.body.outcome === "waiting") wait(mine.body);
  else if (mine.body.coupon) hold("issued", mine.body.coupon);
  else if (localStorage.getItem(pending()) !== null) claim(); // a claim before the reload was never answered
  else showCampaign();
  readWallet();
  watch();
}

// known asks until the answer is known.
async function known(question) {
  for (let tries = 0; ; tries++) {
    const answer = await question();
    if (!firstcome.unknown(answer)) return answer;
    await firstcome.sleep(firstcome.pause(answer, tries));
  }
}

// readCampaign reads the campaign and the clock, if it gets them, and returns the answer.
async function readCampaign() {
  const asked = performance.now();
  const answer = await firstcome.readCampaign();
  earliest = performance.now() + answer.after;
  if (answer.status !== 200) return answer;
  terms = answer.body;
  time.at = (asked + performance.now()) / 2;
  time.server = Date.parse(terms.server_time);
  return answer;
}

let earliest = 0; // when the server wants to be asked for the campaign again
const couldRead = async () => (await readCampaign()).status === 200;

// settled are the states that no reading of the campaign changes.
const settled = ["issued", "already_issued", "waiting", "closed", "left", "voided", "lost", "mistake", "loading", "asking"];
const idle = () => !busy && !following && !settled.includes(view.state);

// watch reads the campaign now and then while nothing else happens, so that a page left open tells what is.
async function watch() {
  for (;;) {
    await firstcome.sleep(10_000 + 10_000 * Math.random());
    if (document.hidden || !idle()) continue;
    await readCampaign();
    if (idle()) showCampaign();
  }
}

// woken reads the clock and the campaign at once, and looks at the line. While a device sleeps, the page's timers and performance.now() may stand
// still, and the network breaks streams without a word.
let wakes = 0;
async function woken() {
  const mine = ++wakes;
  await firstcome.sleep(Math.max(50, earliest - performance.now())); // several events may tell of one waking
  if (mine !== wakes || document.hidden) return;
  if (following) wait(view.place, view.first);
  if (view.hasten && performance.now() >= view.earliest) view.hasten.abort();
  for (let tries = 0; mine === wakes && (following || idle()); tries++) {
    const answer = await readCampaign();
    if (!firstcome.unknown(answer)) break;
    await firstcome.sleep(firstcome.pause(answer, tries));
  }
  if (mine === wakes && idle()) showCampaign();
}

// opened says that it is time, and promises a coupon only once it has read the campaign: it may be paused, or all may be gone already. Users who
// do not wait for that may ask. The pages of a crowd do not read all at once.
async function opened() {
  show({ state: "opening" });
  await firstcome.sleep(3000 * Math.random());
  const waits = () => !busy && view.state === "opening";
  if (waits() && (await couldRead()) && waits()) showCampaign();
}

function showCampaign() {
  if (terms) show({ state: terms.state in words.ko.tag ? terms.state : "open" });
}

const pending = () => `asked ${terms?.id} ${user}`;

// claim asks for a coupon until the answer is known. A press while it waits hastens it, but not past Retry-After.
async function claim() {
  if (busy) return;
  busy = true;
  localStorage.setItem(pending(), "");
  show({ state: "asking" });
  for (let tries = 0; ; tries++) {
    const answer = await firstcome.claim();
    if (!firstcome.unknown(answer) && !(await comesSoon(answer))) {
      busy = false;
      localStorage.removeItem(pending());
      await settle(answer);
      return;
    }
    if (firstcome.unknown(answer)) await linger(answer, tries);
  }
}

// comesSoon waits where somebody pressed so early that it opens in a moment.
async function comesSoon(answer) {
  const left = Date.parse(answer.body.opens_at) - now();
  if (answer.body.outcome !== "not_open" || !(left < 2000) || !answer.after) return false;
  await firstcome.sleep(answer.after);
  return true;
}

// linger shows that the outcome is unknown, and waits.
async function linger(answer, tries) {
  const from = performance.now(), hasten = new AbortController();
  const until = from + firstcome.pause(answer, tries);
  show({ state: "unknown", until, earliest: from + answer.after, hasten });
  await firstcome.sleep(until - from, hasten.signal);
  if (view.state === "unknown") show({ ...view, until: 0 });
}

function press() {
  if (view.hasten) {
    if (performance.now() >= view.earliest) view.hasten.abort();
    else say(headline() + " " + words[lang].again(seconds(view.until)), true);
    return;
  }
  if (["opening", "open", "unknown", "left", "voided", "lost"].includes(view.state)) claim();
}

async function settle({ status, body }) {
  switch (body.outcome) {
    case "waiting": return wait(body);
    case "issued": case "already_issued": return hold(body.outcome, body.coupon);
  }
  if (!words[lang].tag[body.outcome]) return show({ state: "mistake", code: body.code ?? status });
  // A refusal. Since then stock may have come back, or an operator changed something: a refused user sees the campaign as it is now.
  if ((await couldRead()) && terms.state !== "unknown") return showCampaign();
  show({ state: body.outcome, at: body.opens_at });
}

function hold(state, coupon) {
  show({ state, coupon });
  readWallet();
}

// wait follows a place. again, if it is not 0, is how many people were ahead when the user joined, and the place may be of long ago.
async function wait(place, again = 0) {
  following?.abort();
  const mine = (following = new AbortController());
  const first = again || Math.max(place.ahead, 1);
  show({ state: "waiting", place, first });
  const end = await firstcome.follow(place, (p) => { if (following === mine) show({ state: "waiting", place: p, first: Math.max(first, p.ahead) }); }, mine.signal, again > 0);
  if (following !== mine || !end) return;
  following = null;
  if (end.coupon) hold("issued", end.coupon);
  else if (["left", "voided", "lost"].includes(end.outcome)) show({ state: end.outcome });
  else await settle({ status: 200, body: end });
}

async function leave() {
  if (busy || !following) return;
  busy = true;
  following.abort();
  following = null;
  show({ state: "asking" });
  const answer = await known(firstcome.leave);
  busy = false;
  if (answer.body.coupon) hold("issued", answer.body.coupon); // their turn came first
  else show({ state: "left" });
}

async function readWallet() {
  const answer = await firstcome.readWallet();
  if (answer.status === 200) wallet = answer.body.items;
  renderWallet();
}

// Showing.

function show(next) {
  const before = view.state;
  view = next;
  render();
  if (before === view.state) return;
  said = 0;
  say(headline());
}

const seconds = (until) => Math.max(0, Math.ceil((until - performance.now()) / 1000));
const headline = () => parts().map(([, text]) => text).join("");
// standsBy reports that nothing is left, and a newcomer joins the line all the same.
const standsBy = () => view.state === "open" && terms.waitlist && terms.remaining === 0;
const opens = () => Date.parse(terms?.opens_at ?? view.at ?? 0);

// parts returns the headline of what is shown.
function parts() {
  const w = words[lang];
  switch (view.state) {
    case "not_open": return w.opensAt(new Date(opens()), new Date(now()), clock(opens() - now()));
    case "open": return standsBy() ? w.none : w.open;
    case "issued": return view.coupon.prize ? w.issuedPrize(view.coupon.prize.name, view.coupon.rank) : w.issued(view.coupon.number);
    case "waiting": return headOfWaiting(w, view.place);
    default: return w[view.state];
  }
}

// more returns the line under the headline.
function more() {
  const w = words[lang];
  switch (view.state) {
    case "not_open": return w.wakes;
    case "opening": return w.openingMore;
    case "open": return standsBy() ? w.noneMore : terms.remaining === null ? "" : w.remaining(terms.remaining, terms.quantity);
    case "issued": return view.coupon.recorded ? w.kept : w.recording;
    case "already_issued": return placeOf(view.coupon);
    case "sold_out": return terms?.sold_out_at ? w.soldOutAt(new Date(terms.sold_out_at), new Date(now())) : "";
    case "waiting": return waitingMore(w, view.place);
    case "unknown": return view.until ? w.again(seconds(view.until)) : "";
    case "mistake": return w.mistakeMore(view.code);
    default: return w[`${view.state}More`] ?? "";
  }
}

// placeOf tells a coupon's place: its rank if that decides the prize, otherwise its number.
const placeOf = (coupon) => (coupon.prize ? words[lang].rank(coupon.rank) : words[lang].number(coupon.number));

// headOfWaiting says that it is the user's turn only while the line is served and a coupon is left for them.
function headOfWaiting(w, { ahead, serving, eta_seconds, likely }) {
  const held = serving === false;
  return w.waiting(ahead, held ? null : eta_seconds, !held && likely !== false);
}

function waitingMore(w, { serving, reason, until, likely }) {
  const opens = Date.parse(until ?? terms?.opens_at);
  if (serving !== false) return likely !== false ? w.waitingMore : terms?.waitlist ? w.standing : w.unlikely;
  return reason === "not_open" && opens ? w.early(new Date(opens), new Date(now()), clock(opens - now())) : w.held;
}

function render() {
  const w = words[lang], { state, coupon } = view;
  document.documentElement.lang = lang;
  document.title = w.title;
  for (const id of ["shop", "kicker", "fair"]) text(at(id), w[id]);
  text(at("name"), terms?.name ?? "");
  text(at("terms"), terms ? w.terms(terms.quantity) : "");
  benefit(at("benefit"), coupon ? goodOf(coupon) : terms?.coupon.benefit);
  prizes(at("prizes"), coupon ? [] : terms?.prizes ?? []);
  at("tongues").setAttribute("aria-label", w.tongues);
  for (const b of at("tongues").children) b.setAttribute("aria-pressed", b.dataset.lang === lang);
  at("stub").dataset.state = state;
  text(at("tag"), state === "waiting" ? `${w.tag.waiting} · ${w.ticket(view.place.ticket)}` : w.tag[state]);
  renderWords();
  track(at("track"));
  at("coderow").hidden = !coupon;
  text(at("codelabel"), w.code);
  text(at("code"), coupon ? coupon.code.replace(/(.{4})(?=.)/g, "$1-") : "");
  renderActs();
  for (const id of ["sure", "stay", "go"]) text(at(id === "sure" ? "suretitle" : id), w[id]);
  text(at("suretext"), w.sureText);
  if (state !== "waiting" && at("sure").open) at("sure").close();
}

function renderWords() {
  const spans = parts(), h = at("words");
  if (h.children.length !== spans.length) h.replaceChildren(...spans.map(() => document.createElement("span")));
  spans.forEach(([kind, t], i) => { h.children[i].className = kind; text(h.children[i], t); });
  text(at("more"), more());
}

function renderActs() {
  const w = words[lang], act = at("act"), { state } = view;
  const label = { not_open: w.wait, opening: w.ask, open: standsBy() ? w.queue : w.get, asking: w.asking[0][1], unknown: w.retry, left: w.join, voided: w.join, lost: w.join }[state];
  // A button keeps the focus while it has nothing to do.
  act.setAttribute("aria-disabled", state === "not_open" || state === "asking");
  const lost = [act, at("leave"), at("copy")].find((b) => b === document.activeElement);
  act.hidden = !label;
  text(act, label ?? "");
  at("copy").hidden = !view.coupon;
  text(at("copy"), view.copied ? w.copied : w.copy);
  at("leave").hidden = state !== "waiting";
  text(at("leave"), w.leave);
  if (lost?.hidden) at("words").focus({ preventScroll: true });
}

// track shows how far the line, or the stock, has come.
function track(bar) {
  const { state, place, first } = view;
  const stock = state === "open" && terms?.quantity > 0 && terms.remaining !== null;
  bar.hidden = state !== "waiting" && !stock;
  bar.value = stock ? terms.remaining / terms.quantity : state === "waiting" ? 1 - place.ahead / first : 0;
  bar.setAttribute("aria-label", bar.hidden ? "" : stock ? more() : headline());
}

// prizes shows which ranks get which prize, and which prizes are gone.
function prizes(node, all) {
  const w = words[lang], shown = `${JSON.stringify(all)} ${lang}`;
  if (node.dataset.shown === shown) return;
  node.dataset.shown = shown;
  node.replaceChildren(...all.map((p) => {
    const item = document.createElement("li"), gone = p.to !== null && p.given === p.quantity;
    item.classList.toggle("gone", gone);
    item.append(Object.assign(document.createElement("strong"), { textContent: p.name }), `${w.prize(p.from, p.to)}${gone ? ` · ${w.ranOut}` : ""}`);
    return item;
  }));
}

// goodOf tells what a coupon is good for: the name of its prize, or its benefit.
const goodOf = (coupon) => coupon.prize?.name ?? coupon.benefit;

// benefit shows what a coupon is good for: {"percent": 20}. Put your shop's benefits here.
function benefit(node, b) {
  const percent = b?.percent;
  const shown = `${JSON.stringify(b)} ${lang}`;
  if (node.dataset.shown === shown) return;
  node.dataset.shown = shown;
  node.classList.toggle("text", !percent);
  if (!percent) return node.replaceChildren(typeof b === "string" ? b : "");
  const unit = document.createElement("span");
  unit.append("%", Object.assign(document.createElement("small"), { textContent: words[lang].off }));
  node.replaceChildren(words[lang].count(percent), unit);
}

function renderWallet() {
  const w = words[lang];
  text(at("wallet"), w.wallet);
  text(at("empty"), wallet.length ? "" : w.empty);
  at("coupons").replaceChildren(...wallet.map((c) => {
    const item = document.createElement("li"), good = document.createElement("p"), line = document.createElement("p");
    good.className = "good";
    benefit(good, goodOf(c));
    const name = Object.assign(document.createElement("strong"), { textContent: c.campaign_id === terms?.id ? terms.name : c.campaign_id });
    line.append(name, `${placeOf(c)} · ${c.expires_at ? w.until(new Date(c.expires_at)) : w.forever}`);
    item.append(good, line);
    return item;
  }));
}

function text(node, t) {
  if (node.textContent !== t) node.textContent = t;
}

// say tells a screen reader, politely. What moves all the time is told each quarter of a minute.
let said = 0;
function say(t, at_once = false) {
  const moves = ["not_open", "waiting"].includes(view.state);
  if (!at_once && said && (!moves || performance.now() - said < 15_000)) return;
  said = performance.now();
  at("said").textContent = "";
  setTimeout(() => { at("said").textContent = t; }, 50); // the same words again are told again
}

let ticked = Date.now();
function tick() {
  if (Date.now() - ticked > 2000) woken(); // no timer ran: the device slept, although nothing told the page
  ticked = Date.now();
  if (view.state === "not_open" && now() >= opens()) opened();
  if (["not_open", "unknown", "waiting"].includes(view.state)) renderWords();
  if (["not_open", "waiting"].includes(view.state)) say(headline());
}

at("act").addEventListener("click", press);
at("leave").addEventListener("click", () => at("sure").showModal());
at("stay").addEventListener("click", () => at("sure").close());
at("go").addEventListener("click", () => { at("sure").close(); leave(); });
at("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(view.coupon.code);
  } catch {
    return getSelection().selectAllChildren(at("code")); // without the permission: ready to be copied by hand
  }
  view.copied = true;
  render();
  say(words[lang].copied, true);
});
at("tongues").addEventListener("click", ({ target }) => {
  if (!(target.dataset.lang in words)) return;
  lang = target.dataset.lang;
  localStorage.setItem("lang", lang);
  render();
  renderWallet();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) woken(); });
document.addEventListener("resume", woken);
addEventListener("pageshow", ({ persisted }) => { if (persisted) woken(); });
addEventListener("online", woken);
setInterval(tick, 200);
renderWallet();
begin();
