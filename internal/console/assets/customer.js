// Copies the sentence for the customer. Without script it can be selected.
const quote = document.querySelector('[data-copy]');
const button = document.querySelector('.copy');
if (quote && navigator.clipboard) {
	button.hidden = false;
	button.addEventListener('click', async () => {
		await navigator.clipboard.writeText(quote.textContent);
		button.textContent = button.dataset.copied;
	});
}
