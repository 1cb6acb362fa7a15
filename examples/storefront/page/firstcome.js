// The public API of firstcome, as a page asks it: with a user's token, one request at a time, and again no sooner than
// the server says. An answer is {status, body, after}. The status 0 says that none came: what was asked may be done.

let session;

// start learns who the user is, and returns it.
export async function start() {
  const response = await fetch("/session", { cache: "no-store" });
  if (!response.ok) throw new Error(`session: ${response.status}`);
  session = await response.json();
  return session;
}

const campaign = () => `/v1/campaigns/${encodeURIComponent(session.campaign)}`;
const own = () => `${campaign()}/claims/${encodeURIComponent(session.user_id)}`;

export const readCampaign = () => ask("GET", campaign());
// readClaim reads the user's claim, and how a place ended that the user is not in any longer.
export const readClaim = (place) => ask("GET", own() + (place ? `?place=${place.generation}.${place.ticket}` : ""));
export const readWallet = () => ask("GET", `/v1/users/${encodeURIComponent(session.user_id)}/coupons`);
export const claim = () => ask("POST", `${campaign()}/claims`, { user_id: session.user_id });
export const leave = () => ask("DELETE", own());
const readLine = () => send("GET", `${campaign()}/line`, undefined, true);

const longest = 20_000; // ms: firstcome answers a claim within 15 s

async function ask(method, path, body) {
  const answer = await send(method, path, body);
  if (answer.status !== 401) return answer;
  try {
    await start(); // the token was over
  } catch {
    return nothing;
  }
  return send(method, path, body);
}

const nothing = { status: 0, body: {}, after: 0 };

// anybody tells that the answer is the same for everybody: it is asked for without credentials, and of a line caches may tell
// what is a second old. That is how a crowd follows it.
async function send(method, path, body, anybody = false) {
  const headers = anybody ? {} : { Authorization: `Bearer ${session.token}` };
  if (body) headers["Content-Type"] = "application/json";
  try {
    const response = await fetch(session.server + path, {
      method, headers, cache: anybody ? "default" : "no-store", credentials: "omit",
      body: body && JSON.stringify(body), signal: AbortSignal.timeout(longest),
    });
    const after = 1000 * (Number(response.headers.get("Retry-After")) || 0);
    const known = await response.json().catch(() => null);
    return known || response.status >= 400 ? { status: response.status, body: known ?? {}, after } : nothing;
  } catch {
    return nothing;
  }
}

// unknown tells of an answer that it does not say what was decided: ask again, it is safe.
export const unknown = (a) => a.status === 0 || a.status === 429 || a.status >= 500;

// pause is how long to wait before asking again, in ms: what the server asks for, and a random time that grows, so
// that a crowd does not come back all at once.
export const pause = (answer, tries) => answer.after + Math.random() * Math.min(500 * 2 ** tries, 8000);

// sleep waits for ms, or until the signal aborts.
export const sleep = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  signal?.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

// follow waits in line, calls each with every place that it hears of, and returns the outcome: {outcome, coupon?}.
// It listens to the stream of events, and looks at the line in turns when there is none or it breaks. A place that is stale it looks at first.
export async function follow(place, each, signal, stale = false) {
  const heard = { id: "", place, end: null };
  if (stale) await lookOnce(heard, each);
  for (let streams = true; !heard.end && !signal.aborted;) {
    if (streams) streams = await listen(heard, each, signal);
    if (!heard.end && !signal.aborted) await look(heard, each, signal);
  }
  return heard.end;
}

const silence = 45_000; // ms without even a heartbeat: the stream is dead

// listen reads the stream, and tells whether it is worth to come back to it.
async function listen(heard, each, signal) {
  const headers = { Authorization: `Bearer ${session.token}`, Accept: "text/event-stream" };
  if (heard.id) headers["Last-Event-ID"] = heard.id;
  const dead = new AbortController();
  const hears = () => setTimeout(() => dead.abort(), silence);
  let timer = hears();
  try {
    const both = AbortSignal.any([signal, dead.signal]);
    const response = await fetch(`${session.server}${own()}/events`, { headers, cache: "no-store", credentials: "omit", signal: both });
    if (response.status === 401) {
      await start(); // the token was over
      return true;
    }
    if (!response.ok || !response.headers.get("Content-Type")?.startsWith("text/event-stream")) return false;
    const text = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; !heard.end;) {
      const { done, value } = await text.read();
      clearTimeout(timer);
      timer = hears();
      if (done) return true;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) take(event, heard, each);
    }
    text.cancel();
  } catch {
    // A stream that breaks is not the end of a place.
  } finally {
    clearTimeout(timer);
  }
  return true;
}

// take reads one event of a stream.
function take(event, heard, each) {
  const fields = Object.fromEntries(event.split("\n").filter((l) => l.includes(": ")).map((l) => [l.slice(0, l.indexOf(": ")), l.slice(l.indexOf(": ") + 2)]));
  if (fields.id) heard.id = fields.id;
  if (fields.event === "place") each((heard.place = JSON.parse(fields.data)));
  if (fields.event === "outcome") heard.end = JSON.parse(fields.data);
}

// look waits for its turn to look at the line, and reads the user's own claim only when their turn has come.
async function look(heard, each, signal) {
  await sleep(1000 * pollAfter(heard.place), signal);
  for (let tries = 0; !signal.aborted; tries++) {
    const answer = await lookOnce(heard, each);
    if (!answer || signal.aborted) return;
    await sleep(pause(answer, tries), signal);
  }
}

// lookOnce returns an answer only where it is not known yet.
async function lookOnce(heard, each) {
  const line = await readLine();
  if (line.status !== 200) return line;
  const { ticket, generation } = heard.place;
  const { serving, pace, state, last_ticket, waiting, likely_through, waitlist } = line.body;
  if (line.body.generation === generation && serving <= ticket) {
    const ahead = ticket - serving, served = state !== "paused" && state !== "not_open";
    // Some of those ahead may have left, and nobody waits for them.
    const people = waiting > 0 && last_ticket > serving ? (ahead * (waiting - 1)) / (last_ticket - serving) : ahead;
    const likely = likely_through === null || ticket <= likely_through;
    // In a line that stands by nobody knows when a coupon comes back.
    const seconds = served && pace?.per_second && (likely || !waitlist) ? Math.ceil(people / pace.per_second) : null;
    each((heard.place = { ...heard.place, ahead, eta_seconds: seconds, likely, serving: served, reason: served ? null : state }));
    return null;
  }
  const mine = await readClaim(heard.place);
  if (mine.status === 404) {
    heard.end = { outcome: mine.body.outcome ?? "lost" };
  } else if (mine.body.outcome === "waiting") {
    each((heard.place = mine.body));
  } else if (mine.body.coupon) {
    heard.end = mine.body;
  } else {
    return mine;
  }
  return null;
}

// pollAfter is after how many seconds to look again: 1 to 2 near the front, about 5 where one has to come back, 8 to 10 from a minute away on.
function pollAfter(place) {
  const seconds = place.eta_seconds ?? (place.serving === false ? 60 : place.likely === false ? 35 : place.ahead / 1000);
  const far = Math.min(1, Math.max(0, (seconds - 10) / 50));
  return 1 + 7 * far + (1 + far) * Math.random();
}
