// Copies a sentence for a customer or for colleagues. Without script it can be selected.
for (const button of navigator.clipboard ? document.querySelectorAll('.copy') : []) {
	button.hidden = false;
	button.addEventListener('click', async () => {
		await navigator.clipboard.writeText(button.previousElementSibling.textContent);
		button.textContent = button.dataset.copied;
	});
}
