// node k6.mjs SERVER CAMPAIGN USER... runs claim of examples/load/k6.js for each user in turn, without k6, and prints
// each outcome and the counters. What the script imports of k6 is here as far as it uses it.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [server, campaign, ...users] = process.argv.slice(2);
const counted = {};
class Metric {
  constructor(name) {
    this.name = name;
    counted[name] = 0;
  }
  add(value) {
    counted[this.name] += value;
  }
}

// post is k6's, which returns when the answer is there. Status 0 says that none came, or a part of one.
function post(url, body, { headers, timeout }) {
  const sent = Object.entries(headers).flatMap(([name, text]) => ["-H", `${name}: ${text}`]);
  let text = "";
  try {
    text = execFileSync("curl", ["-s", "-i", "-m", String(parseInt(timeout)), "-d", body, ...sent, url], { encoding: "utf8" });
  } catch {
    return { status: 0, headers: {} };
  }
  const [head, ...rest] = text.split("\r\n\r\n");
  const [status, ...lines] = head.split("\r\n");
  const names = lines.map((line) => line.split(/: (.*)/).slice(0, 2)).map(([name, value]) => [name.replace(/(^|-)[a-z]/g, (c) => c.toUpperCase()), value]);
  return { status: Number(status.split(" ")[1] || 0), headers: Object.fromEntries(names), json: (key) => JSON.parse(rest.join("\r\n\r\n"))[key] };
}

globalThis.__ENV = { SERVER: server, CAMPAIGN: campaign };
globalThis.k6 = {
  k6: { sleep: (seconds) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000 * seconds) },
  "k6/execution": { default: { scenario: { iterationInTest: 0 } } },
  "k6/http": { default: { post, expectedStatuses: () => null } },
  "k6/metrics": { Counter: Metric, Trend: Metric },
};
const script = readFileSync(new URL("../examples/load/k6.js", import.meta.url), "utf8")
  .replace(/^import \{(.*)\} from (".*");/gm, "const {$1} = globalThis.k6[$2];")
  .replace(/^import (\w+) from (".*");/gm, "const $1 = globalThis.k6[$2].default;");
const dir = mkdtempSync(join(tmpdir(), "firstcome-k6-"));
try {
  writeFileSync(join(dir, "k6.mjs"), script);
  const { claim } = await import(join(dir, "k6.mjs"));
  for (const user of users) console.log(user, claim(user) || "-");
  console.log("outcomes", counted.firstcome_outcomes, "unknown", counted.firstcome_unknown, "mistakes", counted.firstcome_mistakes, counted.firstcome_asked_again > 0 ? "asked again" : "asked once");
} finally {
  rmSync(dir, { recursive: true });
}
