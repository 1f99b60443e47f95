"use strict";
(() => {
  const list = document.getElementById("list");
  if (!list) return;
  const find = document.getElementById("find");
  const found = document.getElementById("found");
  const unfold = document.getElementById("unfold");
  const groups = Array.from(list.tBodies);
  const words = groups.map((group) => group.textContent.toLowerCase());
  const details = groups.map((group) => group.querySelector("details"));

  // Search: all words must occur in the cluster, in any order.
  const search = () => {
    const wanted = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    groups.forEach((group, index) => {
      const hit = wanted.every((word) => words[index].includes(word));
      group.hidden = !hit;
      shown += hit ? 1 : 0;
    });
    found.textContent = wanted.length ? shown + " of " + groups.length : "";
    document.getElementById("nothing").hidden = shown > 0;
  };

  // Sorting: numbers from large to small first, names from A to Z first.
  const name = (group) => group.querySelector(".id").textContent;
  const sort = (head, key) => {
    const text = key === "name";
    const before = head.getAttribute("aria-sort");
    const down = before ? before === "ascending" : !text;
    const order = (x, y) =>
      text ? name(x).localeCompare(name(y)) : Number(x.dataset[key]) - Number(y.dataset[key]);
    const sorted = groups.slice().sort((x, y) => (down ? order(y, x) : order(x, y)));
    sorted.forEach((group) => list.append(group));
    list.querySelectorAll("thead th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  };
  list.querySelectorAll("th[data-key]").forEach((head) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head, head.dataset.key));
    head.append(button);
  });

  const label = () => {
    const open = details.every((one) => one.open);
    unfold.setAttribute("aria-pressed", String(open));
    unfold.textContent = open ? "Close all" : "Open all";
  };
  unfold.addEventListener("click", () => {
    const open = !details.every((one) => one.open);
    details.forEach((one) => { one.open = open; });
  });
  details.forEach((one) => one.addEventListener("toggle", label));
  find.addEventListener("input", search);
  list.parentElement.querySelector(".tools").hidden = false;
  search();
})();
