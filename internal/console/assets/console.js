// What every page does with script: a form is sent once, and times are told in the reader's own zone.

for (const form of document.querySelectorAll('form[method=post]')) {
	form.addEventListener('submit', event => {
		if (form.dataset.sent) {
			event.preventDefault();
			return;
		}
		form.dataset.sent = 'yes';
		for (const button of form.querySelectorAll('button')) button.setAttribute('aria-disabled', 'true');
	});
}
// A page that comes back from the browser's memory can be sent again.
addEventListener('pageshow', event => {
	if (!event.persisted) return;
	for (const form of document.querySelectorAll('form[data-sent]')) {
		delete form.dataset.sent;
		for (const button of form.querySelectorAll('button')) button.removeAttribute('aria-disabled');
	}
});

const exact = new Intl.DateTimeFormat(document.documentElement.lang, {dateStyle: 'medium', timeStyle: 'long'});
for (const time of document.querySelectorAll('time[datetime]')) {
	time.title = `${exact.format(new Date(time.dateTime))} · ${time.title}`;
}

// A page that shows something under way loads again, unless somebody is typing or has gone elsewhere.
const again = document.querySelector('[data-reload]');
if (again) {
	const reload = () => document.hidden || document.activeElement?.matches('input, textarea, select') ? setTimeout(reload, 1000) : location.reload();
	setTimeout(reload, again.dataset.reload * 1000);
}
