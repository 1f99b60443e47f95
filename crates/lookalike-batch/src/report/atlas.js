"use strict";
(() => {
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  document.querySelectorAll("table.sortable").forEach((table) => {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    const words = rows.map((row) => row.textContent.toLowerCase());
    const find = document.getElementById(table.dataset.find);
    const found = find.parentElement.querySelector("[role=status]");

    // Search: all words must occur in the row, in any order.
    find.addEventListener("input", () => {
      const wanted = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, index) => {
        const hit = wanted.every((word) => words[index].includes(word));
        row.hidden = !hit;
        shown += hit ? 1 : 0;
      });
      found.textContent = wanted.length ? shown + " of " + rows.length : "";
    });

    // Sorting: numbers from large to small first, names from A to Z first.
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const text = !head.classList.contains("num");
        const before = head.getAttribute("aria-sort");
        const down = before ? before === "ascending" : !text;
        const order = (x, y) => {
          const [a, b] = [value(x, column), value(y, column)];
          return text ? String(a).localeCompare(String(b)) : a - b;
        };
        rows.slice().sort((x, y) => (down ? order(y, x) : order(x, y))).forEach((row) => body.append(row));
        table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
      });
    });
    find.parentElement.hidden = false;
  });
})();
