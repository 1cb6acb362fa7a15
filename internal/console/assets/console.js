// What every page does with script: a form is sent once, and times go on.

document.addEventListener('submit', event => {
	const form = event.target;
	if (form.method !== 'post') return;
	if (form.dataset.sent) {
		event.preventDefault();
		return;
	}
	form.dataset.sent = 'yes';
	for (const button of form.querySelectorAll('button')) button.setAttribute('aria-disabled', 'true');
});
// A page that comes back from the browser's memory can be sent again.
addEventListener('pageshow', event => {
	if (!event.persisted) return;
	for (const form of document.querySelectorAll('form[data-sent]')) {
		delete form.dataset.sent;
		for (const button of form.querySelectorAll('button')) button.removeAttribute('aria-disabled');
	}
});

// A time is told in the reader's own zone, too, and how far it is goes on to count.
const {lang, dataset: {zone}} = document.documentElement;
const own = new Intl.DateTimeFormat(lang, {dateStyle: 'medium', timeStyle: 'long'});
const away = new Intl.RelativeTimeFormat(lang);
const units = [['day', 24 * 60 * 60, 2], ['hour', 60 * 60, 1], ['minute', 60, 1], ['second', 1, 0]]; // with how many of it begin
if (![zone, 'UTC'].includes(own.resolvedOptions().timeZone)) {
	for (const time of document.querySelectorAll('time[aria-description]')) time.ariaDescription += `\n${own.format(new Date(time.dateTime))}`;
}
function count() {
	for (const time of document.querySelectorAll('time[data-age]')) {
		const age = Number(time.dataset.age) + performance.now() / 1000; // the clock of the reader's machine may be wrong
		const [unit, seconds] = units.find(([, seconds, least]) => Math.abs(age) >= seconds * least);
		const text = away.format(-Math.trunc(age / seconds), unit);
		if (time.textContent !== text) time.textContent = text;
	}
}
if (document.querySelector('time[data-age]')) setInterval(count, 1000);

const print = document.querySelector('[data-print]');
if (print) {
	print.hidden = false;
	print.addEventListener('click', () => window.print());
}

// A page that shows something under way loads again, unless somebody is typing, reads what a word means, looks at an exact time or has gone elsewhere.
const again = document.querySelector('[data-reload]');
if (again) {
	const reload = () => document.hidden || document.activeElement?.matches('input, textarea, select, time') || document.querySelector(':popover-open') ? setTimeout(reload, 1000) : location.reload();
	setTimeout(reload, again.dataset.reload * 1000);
}
