"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (id) => document.getElementById(id);

  // Numbers before texts, and what has no number last.
  const numberIn = (text) => {
    const found = /^[+×]?(-?[\d.]+(e[+-]?\d+)?)/.exec(text.trim().replace(/[,\s]/g, "").replace("−", "-"));
    return found ? Number(found[1]) : NaN;
  };
  const compare = (a, b, sign) => {
    const [x, y] = [numberIn(a), numberIn(b)];
    if (!isNaN(x) && !isNaN(y)) return sign * (x - y);
    if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
    return sign * a.localeCompare(b, "en");
  };

  const sortBy = (table, head) => {
    const place = head.cellIndex;
    const isDown = head.getAttribute("aria-sort") === "descending";
    const descends = !isDown && (place > 0 || head.getAttribute("aria-sort") === "ascending");
    all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descends ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) =>
      compare(a.cells[place].textContent, b.cells[place].textContent, descends ? -1 : 1));
    table.tBodies[0].append(...rows);
  };

  for (const table of all("table.sortable")) {
    for (const head of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sortBy(table, head));
      head.append(button);
    }
  }

  const tables = all("table.results");
  if (!tables.length) return;
  const values = JSON.parse(one("values").textContent);
  one("filter").form.hidden = false;
  one("filter").form.addEventListener("submit", (event) => event.preventDefault());

  one("filter").addEventListener("input", () => {
    const wanted = one("filter").value.trim().toLowerCase();
    let shown = 0;
    for (const row of tables.flatMap((table) => [...table.tBodies[0].rows])) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    one("said").textContent = wanted ? `${shown} rows` : "";
  });

  const signed = (x) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(4);
  const against = (own, other) => {
    const pairs = own.map((x, i) => [x, other[i]]).filter(([x, y]) => x !== null && y !== null);
    if (!pairs.length) return "–";
    const gaps = pairs.map(([x, y]) => x - y);
    const mean = gaps.reduce((a, b) => a + b) / gaps.length;
    const squares = gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0);
    const spread = gaps.length > 1 ? " ± " + Math.sqrt(squares / (gaps.length - 1)).toFixed(4) : "";
    return signed(mean) + spread;
  };

  const texts = new Map(all("table.results td").map((cell) => [cell, [...(cell.firstElementChild || cell).childNodes]]));
  one("relative").addEventListener("change", () => {
    const chosen = one("relative").value;
    tables.forEach((table, t) => {
      for (const row of table.tBodies[0].rows) {
        for (const cell of [...row.cells].slice(1)) {
          const own = values[t][row.dataset.row][cell.cellIndex - 1];  // null for times
          const isShown = chosen === "" || row.dataset.row === chosen || own === null;
          (cell.firstElementChild || cell).replaceChildren(...(isShown ? texts.get(cell) :
            [against(own, values[t][chosen][cell.cellIndex - 1])]));
        }
      }
    });
    const name = one("relative").selectedOptions[0].textContent;
    one("said").textContent = chosen === "" ? "" :
      `Mean difference to ${name} ± standard deviation over the same splits`;
  });

  // A number leads to its trials, which are folded.
  one("content").addEventListener("click", (event) => {
    const link = event.target.closest("table.results a");
    if (link) one(link.hash.slice(1)).closest("details").open = true;
  });
})();
