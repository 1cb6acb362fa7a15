// node main.mjs CAMPAIGN USER… claims for each user in turn and prints what they got.
import { claim } from "./claim.mjs";

const server = process.env.FIRSTCOME_SERVER ?? "http://127.0.0.1:8080";
const [campaign, ...users] = process.argv.slice(2);
for (const user of users) {
  const { outcome, coupon } = await claim({ server, key: process.env.FIRSTCOME_KEY, campaign, user, signal: AbortSignal.timeout(60_000) });
  console.log(user, outcome, coupon?.number ?? "-");
}
