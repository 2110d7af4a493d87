"use strict";
(() => {
  const { measures, solvers, kinds, tasks } = window.SURVEY;
  const form = document.getElementById("survey-choice");
  const table = document.getElementById("survey-standings");
  Object.keys(measures).forEach((name) => form.elements.measure.append(new Option(name)));
  let [column, sign] = [2, 1];

  // Those equal but for rounding share their mean rank, the best first.
  const ranks = (values) => values.map((x) =>
    values.filter((y) => y > x + 1e-12).length + (values.filter((y) => Math.abs(y - x) <= 1e-12).length + 1) / 2);
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  const within = (x, range) => ((ends) => x > ends[0] && x <= ends[1])(range.split("-").map(Number));

  const show = () => {
    const chosen = tasks.filter((of) => measures[form.elements.measure.value][of.task]
      && within(of.share, form.elements.share.value) && within(of.positives, form.elements.positives.value));
    const values = chosen.map((of) => measures[form.elements.measure.value][of.task]);
    const placed = values.map(ranks);
    const rows = !chosen.length ? [] : solvers.map((solver, j) => [solver, kinds[j],
      mean(placed.map((of) => of[j])),
      mean(values.map((of) => Math.max(...of) > 0 ? 1 - of[j] / Math.max(...of) : 0)),
      mean(values.map((of) => of[j]))]);
    const wanted = form.elements.wanted.value.trim().toLowerCase();
    const kept = rows.filter((row) => `${row[0]} ${row[1]}`.toLowerCase().includes(wanted));
    kept.sort((a, b) => sign * (column < 2 ? a[column].localeCompare(b[column]) : a[column] - b[column]));
    table.tBodies[0].replaceChildren(...kept.map((row) => {
      const tr = document.createElement("tr");
      [row[0], row[1], row[2].toFixed(1), `${(100 * row[3]).toFixed(1)} %`, row[4].toFixed(3)]
        .forEach((text) => { tr.insertCell().textContent = text; });
      return tr;
    }));
    document.getElementById("survey-said").textContent =
      `${chosen.length} of ${tasks.length} tasks, ${kept.length} of ${solvers.length} contestants`;
  };

  [...table.tHead.rows[0].cells].forEach((head, j) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: head.textContent });
    button.addEventListener("click", () => {
      [column, sign] = [j, column === j ? -sign : j === 4 ? -1 : 1];
      [...table.tHead.rows[0].cells].forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      show();
    });
    head.replaceChildren(button);
  });
  form.addEventListener("input", show);
  form.addEventListener("change", show);  // all that a program sends which chooses for its user
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
