"""Styles of the pages with sortable tables, and the script that sorts them."""

COMPARISON_CSS = """
.verdict p { margin: 0 0 8px; max-width: 85ch; overflow-wrap: anywhere; }
.verdict p:first-of-type { font-size: 20px; line-height: 1.4; font-weight: 600; }
.scroll { overflow-x: auto; }
.sorted { font-size: 14px; font-variant-numeric: tabular-nums; }
.sorted th, .sorted td { padding: 6px 10px 6px 0; white-space: nowrap; text-align: right; }
.sorted th:first-child, .sorted td:first-child {
  text-align: left; position: sticky; left: 0; background: var(--card); white-space: normal; min-width: 8em;
  max-width: 18em; overflow-wrap: anywhere; font-weight: 400;
}
.sorted thead th { vertical-align: bottom; white-space: normal; font-weight: 600; }
.sorted button {
  all: unset; cursor: pointer; font-weight: 600; text-decoration: underline dotted; text-underline-offset: 3px;
}
.sorted button:focus-visible { outline: 2px solid var(--blue); }
.sorted th[aria-sort="ascending"] button::after { content: " \\25B2"; }
.sorted th[aria-sort="descending"] button::after { content: " \\25BC"; }
.sorted small { display: block; color: var(--soft); font-size: 12px; white-space: normal; }
.sorted .baseline > * { font-weight: 600; }
.sorted .baseline small { font-weight: 400; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 0 0 8px; padding: 0; font-size: 14px; }
.legend { list-style: none; }
.legend svg { width: 28px; height: 8px; vertical-align: middle; margin-right: 6px; }
.legend li { overflow-wrap: anywhere; }
@media (min-width: 760px) { .four .panels { grid-template-columns: 1fr 1fr; } }
details { margin-top: 12px; }
.closed h3 { margin: 20px 0 8px; font-size: 16px; }
a { color: var(--blue); }
@media screen and (max-width: 760px) {
  .verdict p:first-of-type { font-size: 18px; }
  .sorted th:first-child, .sorted td:first-child { min-width: 7em; max-width: 9em; }
}
@media print {
  .scroll { overflow-x: visible; }
  .sorted { font-size: 7.5pt; }
  .sorted th, .sorted td { white-space: normal; padding-right: 6px; }
  .sorted th:first-child, .sorted td:first-child { min-width: 7em; overflow-wrap: break-word; }
  .sorted small { font-size: 7pt; }
  .sorted button { text-decoration: none; }
  .sorted tr { break-inside: avoid; }
}
"""

# Heads become buttons here, so that without the script nothing looks as if it could be pressed.
SORTING = """
for (const table of document.querySelectorAll("table.sorted")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const key = (row, i) => {
    const text = row.cells[i].dataset.order;
    return text === undefined ? null : isNaN(text) ? text : Number(text);
  };
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending" || (i === 0 && !head.hasAttribute("aria-sort"));
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const sign = up ? 1 : -1;
      const rows = [...body.rows].sort((a, b) => {
        const x = key(a, i), y = key(b, i);
        if (x === null || y === null) return (x === null) - (y === null);
        const numbers = typeof x === "number" && typeof y === "number";
        return sign * (numbers ? x - y || 0 : String(x).localeCompare(String(y)));  // Infinity - Infinity is NaN
      });
      body.append(...rows);
    });
  });
}
"""
