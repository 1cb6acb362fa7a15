// Claims a coupon of firstcome, with nothing but Node 18.17 or later: see docs/node.md.

// claim asks until the answer is known, and returns it: {outcome, coupon} with outcome issued or
// already_issued, or a refusal {outcome, detail, …}. A refusal is an answer and no error. It
// throws where asking again does not help, such as a bad key, and when signal is aborted:
// then nobody knows whether there is a coupon, and asking again later is safe.
export async function claim({ server, key, campaign, user, signal }) {
  for (let wait = 100; ; wait = Math.min(2 * wait, 5_000)) {
    let response, body;
    try {
      const came = await fetch(`${server}/v1/campaigns/${encodeURIComponent(campaign)}/claims`, {
        method: "POST",
        headers: { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) },
        body: JSON.stringify({ user_id: user }),
        signal: AbortSignal.any([AbortSignal.timeout(20_000), ...(signal ? [signal] : [])]),
      });
      const text = await came.text();
      response = came; // it is whole; one that breaks off is lost, whatever its status
      body = JSON.parse(text);
    } catch (error) {
      if (signal?.aborted) throw error; // else the answer was lost: it is unknown, as with a 5xx
    }
    if (body?.outcome) return body;
    if (response && response.status < 500 && response.status !== 429) {
      throw new Error(`firstcome answers ${response.status} ${body?.title}: ${body?.detail ?? ""}`);
    }
    // No sooner than the server says, and not all at once. A proxy may say it as a date, which is no number.
    const least = 1_000 * (Number(response?.headers.get("Retry-After")) || 0);
    await new Promise((resolve) => setTimeout(resolve, least + wait * Math.random()));
    signal?.throwIfAborted();
  }
}
