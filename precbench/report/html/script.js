"use strict";
{
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // "1,234 ± 5" sorts as 1234, and a text as NaN
  const numberIn = (text) => {
    const match = /^[+-]?[\d.]+(e[+-]?\d+)?(?=[\s%]|$)/.exec(text.replace(/,/g, "").replace("−", "-"));
    return match ? Number(match[0]) : NaN;
  };
  const compare = (a, b, sign) => {  // numbers before texts in both directions
    const [x, y] = [numberIn(a), numberIn(b)];
    if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y) || sign * a.localeCompare(b, "en");
    return sign * (x - y);
  };

  const sortBy = (table, head) => {
    const order = head.getAttribute("aria-sort");
    const isAscending = order ? order === "descending" : head.cellIndex === 0;  // best numbers first
    const textOf = (row) => row.cells[head.cellIndex].textContent.trim();
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    table.tBodies[0].append(...rows.sort((a, b) => compare(textOf(a), textOf(b), isAscending ? 1 : -1)));
  };
  for (const head of all("thead th")) {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(head.closest("table"), head));
    head.append(button);
  }

  const filter = document.getElementById("filter");
  filter?.closest("p").removeAttribute("hidden");  // without a script it would do nothing
  filter?.addEventListener("input", () => {
    for (const row of all("#results tbody tr")) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(filter.value.trim().toLowerCase());
    }
  });
}
