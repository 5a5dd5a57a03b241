// Sorting and filtering of tables. The page is whole without it.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    if (!heads[column].classList.contains("number")) return cell.textContent.trim();
    return cell.dataset.value === undefined ? NaN : Number(cell.dataset.value);
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const number = head.classList.contains("number");
      const first = number && head.dataset.first !== "low" ? "descending" : "ascending";
      const other = first === "descending" ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row, place) => ({ row, place, key: key(row, column) }));
      rows.sort((a, b) => {
        if (!number) return sign * a.key.localeCompare(b.key) || a.place - b.place;
        if (Number.isNaN(a.key) || Number.isNaN(b.key)) {
          return Number.isNaN(a.key) - Number.isNaN(b.key) || a.place - b.place;
        }
        return sign * (a.key - b.key) || a.place - b.place;
      });
      body.append(...rows.map((r) => r.row));
    });
  });
  if (body.rows.length > 15) {
    const input = document.createElement("input");
    input.className = "filter";
    input.type = "search";
    input.placeholder = "Show only names with …";
    input.setAttribute("aria-label", "Show only rows whose name contains this text");
    table.parentElement.before(input);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const row of body.rows) {
        const name = row.querySelector("th")?.textContent ?? "";
        row.hidden = !name.toLowerCase().includes(wanted);
      }
    });
  }
}
