// Claims through the client that openapi-generator makes of openapi.yaml for TypeScript and fetch.
import {ClaimsApi, Configuration, ResponseError, ProblemFromJSON, type ClaimAnswer} from './api/index';

const [server, prefix] = process.argv.slice(2);
const claims = new ClaimsApi(new Configuration({basePath: server}));

function tell(name: string, answer: ClaimAnswer) {
	const benefit = answer.coupon?.benefit as {percent: number} | null | undefined;
	console.log(name, answer.outcome, answer.coupon?.number ?? answer.ticket, benefit?.percent ?? '-');
}

for (const name of ['open', 'open', 'rich', 'sold', 'early', 'paused', 'closed', 'line', 'none']) {
	try {
		tell(name, await claims.claim({id: `${prefix}-${name}`, claimRequest: {userId: 'mina'}}));
	} catch (e) {
		if (!(e instanceof ResponseError)) throw e;
		console.log(name, ProblemFromJSON(await e.response.json()).code, '-', '-');
	}
}
for (const name of ['open', 'line']) tell(name, await claims.readClaim({id: `${prefix}-${name}`, userId: 'mina'}));
