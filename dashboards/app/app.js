// Comfort only: every page works without it. A choice in a filter asks at once.
for (const choice of document.querySelectorAll(".filters select")) {
  choice.addEventListener("change", () => choice.form.requestSubmit());
}
