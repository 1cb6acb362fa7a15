// Claims through the client that orval makes of openapi.yaml for fetch.
import {claim, readClaim} from './api/client';
import type {ClaimAnswer} from './api/client';

const [server, prefix] = process.argv.slice(2);
const fetchAt = globalThis.fetch;
globalThis.fetch = (path, init) => fetchAt(new URL(String(path), server), init);

function tell(name: string, answer: ClaimAnswer) {
	const benefit = answer.coupon?.benefit as {percent: number} | null | undefined;
	console.log(name, answer.outcome, answer.coupon?.number ?? answer.ticket, benefit?.percent ?? '-');
}

for (const name of ['open', 'open', 'rich', 'sold', 'early', 'paused', 'closed', 'line', 'none']) {
	const answer = await claim(`${prefix}-${name}`, {user_id: 'mina'});
	switch (answer.status) {
		case 200: case 201: case 202: tell(name, answer.data); break;
		default: console.log(name, answer.data.code, '-', '-');
	}
}
for (const name of ['open', 'line']) {
	const answer = await readClaim(`${prefix}-${name}`, 'mina');
	if (answer.status !== 200) throw new Error(JSON.stringify(answer));
	tell(name, answer.data);
}
