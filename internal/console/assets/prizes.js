// The ranks that each prize of a form covers, as somebody types.
const prizes = document.querySelector('[data-prizes]');
const {dataset: words} = prizes ?? {dataset: {}}; // a closed campaign has no form
const quantity = document.querySelector('[name=quantity]');
const whole = new Intl.NumberFormat(document.documentElement.lang);
const number = ({value}) => /^\d+$/.test(value.replace(/[, ]/g, '')) ? Number(value.replace(/[, ]/g, '')) : NaN;
const fill = (text, ...values) => values.reduce((text, value) => text.replace('%s', whole.format(value)), text);

function show() {
	let from = 1;
	for (const row of prizes.querySelectorAll('[data-prize]')) {
		const rest = row.querySelector('[data-rest]');
		const count = rest ? Infinity : number(row.querySelector('[name$=".quantity"]')) || NaN;
		const to = from + count - 1;
		row.querySelector('[data-ranks]').textContent = Number.isNaN(to) ? '–' : rest ? fill(words.from, from) : to === from ? fill(words.single, from) : fill(words.span, from, to);
		if (rest) {
			const left = number(quantity) - from + 1;
			rest.textContent = left >= 0 ? fill(words.left, left) : words.all;
		}
		from = to + 1;
	}
}
prizes?.form.addEventListener('input', show);
