// Comfort only: every page works without it. A choice in a filter asks at once.
for (const choice of document.querySelectorAll("form[method=get] select")) {
  choice.addEventListener("change", () => choice.form.requestSubmit());
}

// The chosen table of a graph that is wider than the page.
document.querySelector("#chosen")?.scrollIntoView({ block: "nearest", inline: "center" });

// Without a server there are no forms: rows are filtered and sorted here.
for (const form of document.querySelectorAll("[data-filters]")) {
  const table = document.querySelector(`table[aria-labelledby="${form.dataset.filters}"]`);
  if (!table) continue;
  const body = table.tBodies[0], rows = [...body.rows];
  const texts = rows.map(row => row.textContent.toLowerCase());
  const field = form.querySelector("input"), count = form.querySelector("output");
  const filter = () => {
    const wanted = field.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, at) => shown += !(row.hidden = !texts[at].includes(wanted)));
    count.textContent = `${shown} of ${rows.length} runs of this page`;
  };
  const value = (row, at) => {
    const cell = row.cells[at], text = cell.dataset.by || cell.textContent.trim();
    if (!cell.classList.contains("num")) return text;
    const number = parseFloat(text.replace("\u2212", "-").replace(/[^0-9.-]/g, ""));
    return Number.isNaN(number) ? -Infinity : number;
  };
  for (const button of table.querySelectorAll("[data-sorts]")) {
    button.disabled = false;
    button.addEventListener("click", () => {
      const head = button.closest("th"), at = Number(button.dataset.sorts);
      const isNumber = head.classList.contains("num");
      const down = head.ariaSort ? head.ariaSort === "ascending" : isNumber;
      for (const other of table.tHead.rows[0].cells) {
        other.removeAttribute("aria-sort");
        other.querySelector("span")?.remove();
      }
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = rows.map(row => [value(row, at), row]);
      keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
      body.append(...keyed.map(([, row]) => row));
    });
  }
  form.hidden = false;
  form.addEventListener("submit", event => event.preventDefault());
  field.addEventListener("input", filter);
  filter();
}
