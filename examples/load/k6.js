// Claims at firstcome as a shop does: run it with k6, and see docs/operate.md.
//
//   k6 run -e SERVER=http://127.0.0.1:8080 -e KEY=… -e CAMPAIGN=rehearsal -e USERS=20000 -e CONNECTIONS=200 examples/load/k6.js
//
// Each user claims once, and asks again until the answer is known. k6 counts answers and does not check them: prove
// afterwards with "firstcome audit" that the coupons are right, or use "firstcome load", which holds each answer against its coupon.
import { sleep } from "k6";
import exec from "k6/execution";
import http from "k6/http";
import { Counter, Trend } from "k6/metrics";

const server = __ENV.SERVER || "http://127.0.0.1:8080";
const campaign = __ENV.CAMPAIGN || "rehearsal";
const prefix = __ENV.PREFIX || "user-";
const patience = 60; // seconds for which a user asks again

const headers = { "Content-Type": "application/json" };
if (__ENV.KEY) headers.Authorization = `Bearer ${__ENV.KEY}`;

export const options = {
  scenarios: {
    drop: {
      executor: "shared-iterations",
      iterations: Number(__ENV.USERS || 1000),
      vus: Number(__ENV.CONNECTIONS || 50),
      maxDuration: __ENV.MAX || "10m",
    },
  },
  thresholds: { firstcome_unknown: ["count==0"], firstcome_mistakes: ["count==0"] },
};

const outcomes = new Counter("firstcome_outcomes"); // by the tag outcome
const again = new Counter("firstcome_asked_again");
const unknown = new Counter("firstcome_unknown"); // users whose answer is still unknown: they may hold a coupon
const mistakes = new Counter("firstcome_mistakes"); // 400, 401, 404 and the like: asking again does not help
const known = new Trend("firstcome_until_known", true); // from the first request to the outcome

export default function () {
  claim(prefix + exec.scenario.iterationInTest);
}

// claim asks for one user until there is an outcome.
export function claim(user) {
  const began = Date.now();
  for (let wait = 0.1; ; wait = Math.min(2 * wait, 5)) {
    const response = ask(user);
    const outcome = outcomeOf(response);
    if (outcome) {
      outcomes.add(1, { outcome });
      known.add(Date.now() - began);
      return outcome;
    }
    if (!maybeDecided(response)) {
      mistakes.add(1, { status: String(response.status) });
      return "";
    }
    // No sooner than the server says, and not all at once.
    const pause = retryAfter(response) + Math.random() * wait;
    if (Date.now() + 1000 * pause > began + 1000 * patience) {
      unknown.add(1);
      return "";
    }
    again.add(1);
    sleep(pause);
  }
}

function ask(user) {
  return http.post(`${server}/v1/campaigns/${encodeURIComponent(campaign)}/claims`, JSON.stringify({ user_id: user }), {
    headers,
    timeout: "20s", // longer than a claim waits at the server
    tags: { name: "claim" },
    responseCallback: http.expectedStatuses(200, 201, 202, 403, 410), // refusals are answers
  });
}

// outcomeOf returns the outcome of a claim, or "" if the answer is none. A 5xx is unknown, whatever its body says.
function outcomeOf(response) {
  if (response.status === 0 || response.status >= 500 || response.status === 429) return "";
  try {
    return response.json("outcome") || "";
  } catch (cut) {
    return ""; // an answer that broke off
  }
}

// maybeDecided: no answer (0), half an answer, 429 and 5xx leave it open whether there is a coupon.
function maybeDecided(response) {
  return response.status < 300 || response.status >= 500 || response.status === 429;
}

// retryAfter returns seconds. A proxy may say it as a date, which counts as 0.
function retryAfter(response) {
  const seconds = Number(response.headers["Retry-After"]);
  return seconds > 0 ? seconds : 0;
}
