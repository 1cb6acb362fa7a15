// The live page of one campaign: one EventSource, figures, and plots on one time axis.

// The page as it came is shown before all of this begins, which takes a browser longer. A page that nobody sees draws no frame.
if (!document.hidden) await new Promise(drawn => requestAnimationFrame(() => setTimeout(drawn)));

const live = document.querySelector('.live');
const {dataset: words, content: texts} = document.querySelector('#words');
const word = (of, name) => texts.querySelector(`[data-${of}=${name}]`)?.textContent ?? name;
const wall = document.body.matches('.wall');
const {lang, dataset: {zone}} = document.documentElement;
const whole = new Intl.NumberFormat(lang, {maximumFractionDigits: 0});
const dash = '–';
const count = n => n == null ? dash : whole.format(n);
const millis = s => s == null ? dash : s < .0001 ? '< 0.1 ms' : `${(s * 1000).toFixed(s < .1 ? 1 : 0)} ms`;
const span = s => s < 60 ? words.seconds.replace('%d', Math.ceil(s)) : words.minutes.replace('%d', Math.round(s / 60));
const sum = (of, names) => of && names.reduce((n, name) => n + (of[name] || 0), 0);
const [kinds, inVain, withoutOutcome] = [words.kinds, words.inVain, words.withoutOutcome].map(list => list.trim().split(' '));
const names = Object.fromEntries(withoutOutcome.map(kind => [kind, 'unknown'])); // kinds that have the colour of another
const window_ = 15 * 60; // seconds that plots show at most

// ---- figures

const figures = {
	in_force: s => count(s.in_force),
	left: s => s.quantity == null || s.in_force == null ? dash : count(Math.max(0, s.quantity - s.in_force)),
	waiting: s => count(s.waiting),
	rate: s => count(s.rates && sum(s.rates, kinds)),
	p95: s => millis(s.p95),
	in_vain: s => count(sum(s.totals, inVain)),
	unknown: s => count(sum(s.totals, withoutOutcome)),
	unrecorded: s => count(s.unrecorded),
};

function show(s) {
	if (s.version && s.version < Number(live.dataset.version)) return; // the page is newer
	for (const [name, of] of Object.entries(figures)) {
		for (const at of live.querySelectorAll(`[data-f=${name}]`)) at.textContent = of(s);
	}
	const share = live.querySelector('[data-share]');
	if (share) share.hidden = s.in_force == null || !s.quantity;
	if (share && !share.hidden) share.value = Math.min(1, s.in_force / s.quantity);
	notice('[data-down]', s.ledger_down && words.ledger, s);
	notice('[data-why]', s.why && word('why', s.why), s);
	const soon = live.querySelector('[data-soon]');
	soon.hidden = s.sold_out_in == null;
	soon.textContent = soon.hidden ? '' : words.soon.replace('%s', span(s.sold_out_in));
	live.querySelector('[data-alarm=unknown]').classList.toggle('alarm', sum(s.totals, withoutOutcome) > 0);
	live.querySelector('[data-alarm=unrecorded]').classList.toggle('alarm', s.unrecorded > 10_000);
	const state = live.querySelector('[data-state] .state');
	state.className = `state ${s.state}`;
	state.textContent = word('state', s.state || 'unknown');
	live.querySelectorAll('[data-prize]').forEach((row, n) => stock(row, s.prizes?.[n] ?? {}));
	legend(s);
	renew(s);
	pulse(s);
}

// stock shows how much of a prize is given.
function stock(row, {given, of}) {
	row.querySelector('[data-given]').textContent = count(given);
	row.querySelector('[data-of]').textContent = of == null ? '' : `/ ${count(of)}`;
	const share = row.querySelector('progress');
	share.hidden = given == null || !of;
	if (!share.hidden) share.value = given / of;
}

// A legend names what occurred.
function legend(s) {
	for (const at of live.querySelectorAll('.legend [data-kind]')) {
		const {kind} = at.dataset;
		at.hidden = !(s?.totals?.[kind] || samples.some(({rates}) => rates?.[kind]) || kind === 'issued' && course.rates.issued.length);
	}
}

// When the state or the terms change, or a prize runs out, the script fetches the status line and the buttons again. It leaves a text alone that stays the same,
// because a screen reader reads each change.
let asking = false;
async function renew(s) {
	if (asking || live.dataset.of === `${s.state} ${s.version} ${(s.prizes ?? []).filter(prize => prize.ran_out_at).length}`) return;
	asking = true;
	const answer = await fetch(location.href).catch(() => null);
	const fresh = answer?.ok && new DOMParser().parseFromString(await answer.text().catch(() => ''), 'text/html').querySelector('.live');
	asking = false;
	if (!fresh) return; // the next sample asks again
	Object.assign(live.dataset, {of: fresh.dataset.of, version: fresh.dataset.version});
	for (const part of live.querySelectorAll('[data-part]')) {
		const news = fresh.querySelector(`[data-part=${part.dataset.part}]`);
		if (!news || news.innerHTML === part.innerHTML) continue;
		const focused = part.contains(document.activeElement);
		part.replaceChildren(...news.childNodes);
		if (elsewhere) for (const time of part.querySelectorAll('time')) time.ariaDescription += `\n${own.format(new Date(time.dateTime))}`;
		if (focused) part.querySelector('button, a')?.focus();
	}
}

// A notice says why something is unknown, and when it was known last.
function notice(at, why, s) {
	const p = live.querySelector(at);
	p.hidden = !why;
	p.replaceChildren();
	if (!why) return;
	p.append(`${why} ${s.known_at ? words.known : words.never} `);
	if (s.known_at) p.append(moment(s.known_at), ` (${zone})`);
}

let last = Date.now(); // or since when the page waits for the first news
let heard = '';
function pulse(s) {
	last = Date.now();
	ahead = Date.parse(s.at) - last;
	heard = words.pulse.replace('%d', count(s.nodes_seen)).replace('%d', count(s.nodes)) + (s.gone.length ? ` · ${words.gone}: ${s.gone.join(', ')}` : '');
	tell();
}
function tell() {
	const at = live.querySelector('[data-pulse]');
	const old = Date.now() - last > 5000;
	at.parentElement.classList.toggle('lost', old);
	at.textContent = old ? words.lost : heard.replace('%s', Math.round((Date.now() - last) / 1000));
}

// ---- the countdown to the opening, by the server's clock

let ahead = Date.parse(live.dataset.now) - Date.now(); // of this browser's clock
function countDown() {
	const opening = live.querySelector('[data-opens]');
	if (!opening) return;
	const left = Math.max(0, Math.ceil((Date.parse(opening.dataset.opens) - Date.now() - ahead) / 1000));
	const two = n => String(n).padStart(2, '0');
	opening.textContent = `${Math.floor(left / 3600)}:${two(Math.floor(left / 60) % 60)}:${two(left % 60)}`;
}
countDown();

// ---- plots

// A canvas knows no CSS variables: a probe resolves them in the scheme that is shown.
const probe = document.body.appendChild(document.createElement('i'));
probe.hidden = true;
const colour = name => {
	probe.style.color = `var(--${name})`;
	return getComputedStyle(probe).color;
};
const faint = (name, alpha) => {
	const [r, g, b] = colour(name).match(/[\d.]+/g).map(Number);
	return `rgb(${r} ${g} ${b} / ${alpha})`;
};

const samples = [];
let course = {issued: [], recorded: [], rates: {issued: []}};
let marks = [];
const seconds = at => Date.parse(at) / 1000;

const clock = new Intl.DateTimeFormat(lang, {hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23', timeZone: zone});
const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16; // of the page's words
function axes(format, more) {
	const line = {stroke: colour('soft'), grid: {stroke: colour('edge'), width: 1}, ticks: {show: false}, font: `${12 * scale}px system-ui`};
	return [
		{...line, space: 90 * scale, size: 34 * scale, values: (_, at) => at.map(x => clock.format(x * 1000))},
		{...line, space: 30 * scale, size: 72 * scale, ...more, values: (_, at) => at.map(y => y == null ? '' : format(y))},
	];
}

function drawMarks(u) {
	const {ctx} = u;
	const ratio = devicePixelRatio * scale;
	ctx.save();
	ctx.font = `600 ${11 * ratio}px system-ui`;
	ctx.fillStyle = ctx.strokeStyle = colour('ink');
	ctx.setLineDash([4 * ratio, 4 * ratio]);
	let before = -Infinity, row = 0; // labels that would touch stand below each other
	for (const mark of marks) {
		const x = Math.round(u.valToPos(seconds(mark.at), 'x', true));
		if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
		ctx.beginPath();
		ctx.moveTo(x, u.bbox.top);
		ctx.lineTo(x, u.bbox.top + u.bbox.height);
		ctx.stroke();
		row = x - before < 90 * ratio ? (row + 1) % 4 : 0;
		before = x;
		const right = x > u.bbox.left + u.bbox.width * .7;
		ctx.textAlign = right ? 'right' : 'left';
		ctx.fillText(word('mark', mark.kind), x + (right ? -5 : 5) * ratio, u.bbox.top + (12 + 15 * row) * ratio);
	}
	ctx.restore();
}

// The tip of a plot: the instant under the pointer, and each series that has a value there.
function tellValues(u) {
	const at = u.cursor.idx;
	const values = at == null ? [] : u.series.slice(1).map((s, n) => [s.label, u.data[n + 1][at]]).filter(([, value]) => value != null);
	u.root.title = values.length ? [clock.format(u.data[0][at] * 1000), ...values.map(([label, value]) => `${label} ${u.axes[1].values(u, [value])[0]}`)].join('\n') : '';
}

const size = at => ({width: at.clientWidth, height: wall ? at.clientHeight : 240});
const plots = [];
function plot(name, make) {
	const at = live.querySelector(`[data-plot=${name}]`);
	if (!at) return;
	let drawn;
	const draw = () => {
		drawn?.destroy();
		const {series, data, format, scales, axis} = make();
		drawn = new uPlot({
			...size(at), series: [{}, ...series], axes: axes(format, axis),
			scales: {x: {time: false, range: range}, ...scales}, legend: {show: false}, cursor: {y: false, points: {show: false}}, hooks: {draw: [drawMarks], setCursor: [tellValues]},
		}, data(), at);
	};
	const update = () => {
		const {data: of, limits = 0} = make(), data = of();
		at.previousElementSibling.hidden = data.slice(1 + limits).some(column => column.some(value => value > 0));
		drawn ? drawn.setData(data) : draw();
	};
	new ResizeObserver(() => drawn?.setSize(size(at))).observe(at);
	plots.push({draw, update});
}

// All plots share one axis: from the first instant that is known, or the last quarter of an hour.
function range() {
	const now = samples.length ? seconds(samples.at(-1).at) : Date.now() / 1000;
	const first = samples.length ? seconds(samples[0].at) : now;
	const begun = course.issued.length ? Math.min(course.issued[0][0], first) : first;
	return [Math.max(Math.min(begun, now - 30), now - window_), now];
}

// The axis of latencies has a line for each power of ten.
const decades = (_, at) => at.map(y => Math.abs(Math.log10(y) - Math.round(Math.log10(y))) < 1e-6 ? y : null);

const times = () => samples.map(s => seconds(s.at));
const column = of => samples.map(s => of(s) ?? null);

// before draws the rate of issue before anybody watched, from the ledger: both ends of each span, and nothing around it.
function before() {
	const first = samples.length ? seconds(samples[0].at) : Infinity;
	return course.rates.issued.filter(([, to]) => to < first).flatMap(([from, to, n]) => [[from, 0], [from + .001, n], [to, n], [to + .001, 0]]);
}

plot('claims', () => {
	const stacked = kinds.slice().reverse();
	return {
		format: count,
		series: stacked.map((kind, n) => ({label: word('kind', kind), stroke: colour(names[kind] || kind), fill: colour(names[kind] || kind), width: 0, points: {show: false}})),
		data: () => {
			const past = before();
			return [[...past.map(([at]) => at), ...times()], ...stacked.map((kind, n) => [...past.map(([, rate]) => kind === 'issued' ? rate : null), ...column(s => s.rates && sum(s.rates, stacked.slice(n)))])];
		},
		scales: {y: {range: (_, low, high) => [0, Math.max(10, high * 1.15)]}},
	};
});

plot('course', () => ({
	format: count,
	series: [
		{label: words.quantity, stroke: colour('sold_out'), width: 1.5, dash: [6, 4], points: {show: false}},
		{label: words.issued, stroke: colour('issued'), width: 2.5, points: {show: false}},
		{label: words.recorded, stroke: colour('already_issued'), width: 2, points: {show: false}},
	],
	data: courseData,
	limits: 1, // series that are no figures
	scales: {y: {range: (_, low, high) => [0, Math.max(10, high * 1.12)]}},
}));
plot('latency', () => ({
	format: millis,
	axis: {filter: decades, grid: {stroke: colour('edge'), width: 1, filter: decades}},
	series: [['waiting', 'p50'], ['paused', 'p95'], ['unknown', 'p99']].map(([name, label]) => ({label, stroke: colour(name), width: 2, spanGaps: false, points: {show: false}})),
	data: () => [times(), column(s => s.p50), column(s => s.p95), column(s => s.p99)],
	scales: {y: {distr: 3, range: (_, low, high) => [Math.min(low ?? .0001, .0005), Math.max(high ?? .01, .01)]}},
}));
plot('line', () => ({
	format: count,
	series: [{label: words.waiting, stroke: colour('waiting'), fill: faint('waiting', .15), width: 2, points: {show: false}}],
	data: () => [times(), column(s => s.waiting)],
	scales: {y: {range: (_, low, high) => [0, Math.max(10, high * 1.12)]}},
}));

// The ledger's course is continued by the samples of this page. Both share one list of instants. An unknown figure is a gap.
function courseData() {
	const first = samples.length ? seconds(samples[0].at) : Infinity;
	const rows = new Map();
	const put = (at, n, value) => {
		if (!rows.has(at)) rows.set(at, []);
		rows.get(at)[n] = value;
	};
	for (const [at, n] of course.issued) if (at < first) put(at, 1, n);
	for (const [at, n] of course.recorded) if (at < first) put(at, 2, n);
	for (const s of samples) {
		const at = seconds(s.at);
		put(at, 1, s.issued);
		put(at, 2, s.recorded);
	}
	const at = [...rows.keys()].sort((a, b) => a - b);
	const quantity = samples.findLast(s => s.quantity != null)?.quantity ?? null;
	const filled = n => {
		let before = null;
		return at.map(x => before = n in rows.get(x) ? rows.get(x)[n] : before);
	};
	return [at, at.map(() => quantity), filled(1), filled(2)];
}

// ---- the table beside the plots

const body = document.querySelector('[data-table] tbody'); // a wall has none
const inZone = new Intl.DateTimeFormat('sv', {dateStyle: 'short', timeStyle: 'medium', timeZone: zone}); // 2026-11-23 20:00:03

const own = new Intl.DateTimeFormat(lang, {dateStyle: 'medium', timeStyle: 'long'});
const elsewhere = ![zone, 'UTC'].includes(own.resolvedOptions().timeZone);

// An instant in the zone of the page. A pointer or the keyboard focus on it shows it in the zone, in UTC and in the reader's own zone.
function moment(at) {
	const instant = new Date(at).toISOString();
	const there = inZone.format(new Date(at));
	const time = document.createElement('time');
	time.dateTime = instant;
	time.tabIndex = 0;
	const utc = `${instant.slice(0, 23).replace('T', ' ')} UTC`;
	time.ariaDescription = zone === 'UTC' ? utc : `${there}${instant.slice(19, 23)} ${zone}\n${utc}`;
	if (elsewhere) time.ariaDescription += `\n${own.format(new Date(at))}`;
	time.textContent = there;
	return time;
}

function row(s) {
	if (!body) return;
	const cells = [count(s.issued), count(s.recorded), count(s.waiting), ...kinds.map(kind => s.rates ? count(s.rates[kind]) : dash), millis(s.p50), millis(s.p95), millis(s.p99)];
	const tr = document.createElement('tr');
	const th = tr.appendChild(document.createElement('th'));
	th.scope = 'row';
	th.append(moment(s.at));
	for (const text of cells) {
		const td = tr.appendChild(document.createElement('td'));
		td.className = 'number';
		td.textContent = text;
	}
	body.append(tr);
	while (body.rows.length > 12) body.rows[0].remove();
}

// ---- events

function take(s) {
	if (samples.length && seconds(s.at) <= seconds(samples.at(-1).at)) return; // another node's clock
	samples.push(s);
	if (samples.length > window_) samples.shift();
	marks.push(...s.marks);
}
function begin(event) {
	course = JSON.parse(event.data);
	samples.length = 0;
	marks = [];
	body?.replaceChildren();
	course.samples.forEach(take);
	samples.slice(-12).forEach(row);
	if (samples.length) show(samples.at(-1));
	legend(samples.at(-1));
	plots.forEach(p => p.update());
}
// A connection broke, and the browser came again.
function missed(event) {
	const news = JSON.parse(event.data).samples;
	news.forEach(take);
	news.slice(-12).forEach(row);
	if (samples.length) show(samples.at(-1));
	plots.forEach(p => p.update());
}
function goOn(event) {
	const s = JSON.parse(event.data);
	take(s);
	row(s);
	show(s);
	plots.forEach(p => p.update());
}
// A browser comes again by itself after a connection that broke, and not after an answer that is no stream: a proxy's 502, or the
// login, when the session has ended.
async function comeAgain() {
	const page = await fetch(location.href).catch(() => null);
	if (page?.redirected) location.reload();
	else follow();
}
function follow() {
	const events = new EventSource(live.dataset.events);
	events.addEventListener('course', begin);
	events.addEventListener('missed', missed);
	events.addEventListener('sample', goOn);
	events.addEventListener('error', () => {
		if (events.readyState === EventSource.CLOSED) setTimeout(comeAgain, 3000);
	});
}
follow();
setInterval(() => { tell(); countDown(); }, 1000);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plots.forEach(p => p.draw()));
