// Sorts and filters the tables of users and accounts, and switches to another capacity or policy. Without
// this script the page shows its first run. Numbers have the format of `format_numbers.rs`.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const table = document.getElementById("user-table");
  if (!table) return;
  const find = (id) => document.getElementById(id);
  const choice = { capacity: find("choose-capacity"), policy: find("choose-policy") };
  const filter = { name: find("filter-name"), side: find("filter-side") };
  const compared = data.policies.length > 1;
  const ABSENT = "–";
  let sorted = { column: "tasks", rising: false };
  document.documentElement.classList.add("script");

  const group = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const grouped = (number) => group(String(number));
  function threeDigits(number) {
    const sign = number < 0 ? "−" : "";
    number = Math.abs(number);
    for (const [decimals, power] of [[3, 1e3], [2, 1e2], [1, 1e1]]) {
      const scaled = Math.floor(number * power + 0.5);
      if (scaled < 1000) {
        const digits = String(scaled).padStart(decimals + 1, "0");
        return `${sign}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
      }
    }
    return sign + group(BigInt(Math.floor(number + 0.5)).toString());
  }
  const quotient = (number) =>
    number !== 0 && Math.abs(number) < 0.01 ? number.toExponential(2) : threeDigits(number);
  const orAbsent = (number, text) => (number === null ? ABSENT : text(number));
  const UNITS = [[1e-6, 1e-9, "ns"], [1e-3, 1e-6, "µs"], [1, 1e-3, "ms"], [120, 1, "s"], [7200, 60, "min"], [172800, 3600, "h"]];
  function durationParts(seconds) {
    if (seconds === null) return [ABSENT, ""];
    if (seconds === 0) return ["0", "s"];
    const fit = UNITS.find(([below]) => Math.abs(seconds) < below);
    const [length, unit] = fit ? fit.slice(1) : [86400, "d"];
    return [threeDigits(seconds / length), unit];
  }
  const duration = (seconds) => durationParts(seconds).filter(Boolean).join("\u00a0");
  /** Returns an interval of times: one time where both ends read the same. */
  function between([low, high]) {
    const [from, to] = [duration(low), duration(high)];
    return from === to ? from : `${from} to ${to}`;
  }
  const ratio = (number) => (Math.floor(number * 1000 + 1e-9) / 1000).toFixed(3);

  function percent(share) {
    if (Math.abs(share) >= 10) return `${threeDigits(share * 100)}\u00a0%`;
    const tenths = Math.floor(Math.abs(share) * 1000 + 0.5);
    return `${share < 0 && tenths > 0 ? "−" : ""}${Math.floor(tenths / 10)}.${tenths % 10}\u00a0%`;
  }

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }
  function durationCell(seconds, mark = "", tone = "", sign = "", interval = null) {
    const cell = element("td");
    const [number, unit] = durationParts(seconds);
    if (seconds !== null) cell.title = `${threeDigits(seconds)}\u00a0s`;
    if (seconds !== null && interval) cell.title += `; 95\u00a0% of repeats: ${between(interval)}`;
    if (mark) {
      const made = element("span", "mark", mark === "shortest" ? "▼" : "▲");
      made.setAttribute("role", "img");
      made.setAttribute("aria-label", mark);
      cell.append(made);
    }
    cell.append(element("span", `value ${tone}`.trim(), sign + number), " ", element("span", "unit", unit));
    return cell;
  }

  /** Returns the chosen run, all runs at its capacity, the baseline run, and the texts of the comparison. */
  function chosen() {
    const capacity = Number(choice.capacity.value);
    const policy = Number(choice.policy.value);
    const all = data.runs[capacity];
    return { capacity, policy, all, run: all[policy], baseline: all[0], pair: data.pairs[capacity][policy] };
  }
  function difference({ policy, run, baseline }, user) {
    if (policy === 0 || !run || !baseline || run.wait[user] === null || baseline.wait[user] === null) return null;
    return run.wait[user] - baseline.wait[user];
  }
  const side = (change) => (change === null ? "" : change < 0 ? "better" : change > 0 ? "worse" : "same");
  /** Returns the side of a user, or `noise` where a repeated study finds the difference within the noise. */
  function verdict(now, user) {
    const change = difference(now, user);
    return change && now.run.noise && !now.run.noise.beyond[user] ? "noise" : side(change);
  }

  function keyOf(column, now) {
    if (column === "name") return (user) => data.users[user];
    if (column === "difference") return (user) => difference(now, user);
    if (column.startsWith("wait-")) {
      const run = now.all[Number(column.slice(5))];
      return (user) => (run ? run.wait[user] : null);
    }
    const name = column === "tasks" ? "submitted" : column;
    return (user) => now.run[name][user];
  }
  // Missing values come last in both directions; ties keep the order of the data.
  function comparing(key, rising) {
    const direction = rising ? 1 : -1;
    return (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      return x < y ? -direction : x > y ? direction : 0;
    };
  }
  const order = (now) => data.users.map((_, user) => user).sort(comparing(keyOf(sorted.column, now), sorted.rising));
  /** Turns the headings of a table into buttons that sort it. */
  function sortable(heads, sortBy) {
    for (const head of heads) {
      const button = element("button", "", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => sortBy(head.dataset.column));
    }
  }
  /** Sets `aria-sort` of the headings. */
  function markSorted(heads, by) {
    for (const head of heads) {
      if (head.dataset.column === by.column) head.setAttribute("aria-sort", by.rising ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
  }
  // Names sort ascending first, numbers descending; a second click reverses the order.
  const turned = (by, column) => ({ column, rising: by.column === column ? !by.rising : column === "name" });
  function row(now, user) {
    const { all, run } = now;
    const made = element("tr", verdict(now, user) === "noise" ? "noise" : "");
    const head = element("th", "text");
    head.scope = "row";
    const name = element("span", "name", data.users[user]);
    name.title = data.users[user];
    head.append(name);
    made.append(head, element("td", "", grouped(run.submitted[user])));
    const waits = all.map((one) => (one ? one.wait[user] : null));
    const known = waits.filter((wait) => wait !== null);
    const [shortest, longest] = [Math.min(...known), Math.max(...known)];
    for (const [policy, wait] of waits.entries()) {
      const differ = wait !== null && shortest < longest;
      const mark = differ && wait === shortest ? "shortest" : differ && wait === longest ? "longest" : "";
      const noise = all[policy] && all[policy].noise;
      made.append(durationCell(wait, mark, "", "", noise ? noise.wait[user] : null));
    }
    if (compared) {
      const change = difference(now, user);
      const interval = run.noise ? run.noise.difference[user] : null;
      made.append(durationCell(change, "", change ? verdict(now, user) : "", change > 0 ? "+" : "", interval));
    }
    const slowdown = run.slowdown[user];
    const completed = element("td", "", ratio(run.ratio[user]));
    completed.title = `${grouped(run.completed[user])} of ${grouped(run.submitted[user])}`;
    made.append(durationCell(run.p95[user]), element("td", "", orAbsent(slowdown, threeDigits)), element("td", "", orAbsent(run.nuwt[user], quotient)), completed);
    return made;
  }
  function showTable() {
    const now = chosen();
    const part = filter.name.value.trim().toLowerCase();
    const wanted = filter.side ? filter.side.value : "";
    const fits = (user) =>
      data.users[user].toLowerCase().includes(part) && (!wanted || verdict(now, user) === wanted);
    const users = now.run ? order(now).filter(fits) : [];
    table.tBodies[0].replaceChildren(...users.map((user) => row(now, user)));
    find("count").textContent = now.run
      ? `${grouped(users.length)} of ${grouped(data.users.length)} users`
      : "this run is missing";
    markSorted(table.querySelectorAll("th[data-column]"), sorted);
  }

  // The tree of accounts: its open nodes, and the column that sorts the children of each account (none at first:
  // the order of the data).
  const tree = { table: find("account-table"), by: { column: "", rising: true }, open: new Set(), within: new Map() };
  if (tree.table) {
    data.accounts.parent.forEach((parent, node) => {
      if (!tree.within.has(parent)) tree.within.set(parent, []);
      tree.within.get(parent).push(node);
    });
  }
  function openAccounts(fits) {
    tree.open = new Set([...data.accounts.name.keys()].filter((node) => tree.within.has(node) && fits(node)));
  }
  function accountRow(run, node, depth) {
    const made = element("tr", data.accounts.user[node] ? "" : "account");
    const head = element("th", "text");
    head.scope = "row";
    head.style.setProperty("--depth", depth);
    const name = element("span", "name", data.accounts.name[node]);
    name.title = data.accounts.name[node];
    if (tree.within.has(node)) {
      const twist = element("button", "twist");
      twist.type = "button";
      twist.setAttribute("aria-expanded", tree.open.has(node));
      twist.setAttribute("aria-label", data.accounts.name[node]);
      twist.addEventListener("click", () => {
        if (!tree.open.delete(node)) tree.open.add(node);
        showAccounts();
        tree.table.querySelector(`[data-node="${node}"] .twist`).focus();
      });
      head.append(twist);
    }
    head.append(name);
    made.dataset.node = node;
    made.append(head, element("td", "", orAbsent(data.accounts.entitlement[node], percent)),
      element("td", "", orAbsent(run.used[node], percent)), element("td", "", grouped(run.tasks[node])), durationCell(run.wait[node]),
      element("td", "", orAbsent(run.nuwt[node], quotient)), element("td", "", orAbsent(run.slowdown[node], threeDigits)));
    return made;
  }
  function showAccounts() {
    if (!tree.table) return;
    const now = chosen();
    const run = data.accounts.runs[now.capacity][now.policy];
    const { column, rising } = tree.by;
    const columns = { name: data.accounts.name, entitlement: data.accounts.entitlement, ...run };
    const compare = column && comparing((node) => columns[column][node], rising);
    const rows = [];
    // A stack: the last entry is the next row. Accounts stay before users.
    const next = run ? [[0, 0]] : [];
    while (next.length) {
      const [node, depth] = next.pop();
      rows.push(accountRow(run, node, depth));
      if (!tree.open.has(node)) continue;
      const within = [...tree.within.get(node)];
      if (compare) within.sort((a, b) => data.accounts.user[a] - data.accounts.user[b] || compare(a, b));
      next.push(...within.reverse().map((inner) => [inner, depth + 1]));
    }
    tree.table.tBodies[0].replaceChildren(...rows);
    markSorted(tree.table.querySelectorAll("th[data-column]"), tree.by);
  }

  /** Returns the function from values to pixels of an axis, from the description in the figure. */
  function scale(description) {
    const [spacing, ...numbers] = description.split(" ");
    const [low, high, zero, first, from, to] = numbers.map(Number);
    return (value) => {
      let place = (value - low) / (high - low);
      if (spacing === "log") place = value > 0 ? first + (1 - first) * ((Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low))) : zero;
      return from + Math.min(1, Math.max(0, place)) * (to - from);
    };
  }
  function showBubbles(id, drawn, column, text, lessIsBetter) {
    const figure = find(id);
    if (!figure || !drawn) return;
    const now = chosen();
    const svg = figure.querySelector("svg");
    const bubbles = svg.querySelector(".bubbles");
    svg.setAttribute("viewBox", drawn.view);
    svg.querySelector(".frame").innerHTML = drawn.frame;
    svg.querySelector(".names").innerHTML = drawn.names;
    const [x, y] = [scale(drawn.x), scale(drawn.y)];
    const [baseline, policy] = [data.policies[0], data.policies[now.policy]];
    const places = new Map(data.subjects.map((subject, user) => [subject, user]));
    for (const bubble of bubbles.children) {
      const user = places.get(Number(bubble.dataset.subject));
      const [old, next] = user === undefined ? [null, null] : [now.baseline[column][user], now.run[column][user]];
      const seen = old !== null && next !== null;
      bubble.style.display = seen ? "inline" : "none";
      if (!seen) continue;
      bubble.setAttribute("cx", x(old).toFixed(2));
      bubble.setAttribute("cy", y(next).toFixed(2));
      const isNoise = lessIsBetter && verdict(now, user) === "noise";
      bubble.setAttribute("class", `bubble ${old === next || isNoise ? "same" : next < old === lessIsBetter ? "better" : "worse"}`);
      bubble.querySelector("title").textContent =
        `${data.users[user]}: ${text(old)} under ${baseline}, ${text(next)} under ${policy}; ${grouped(now.run.submitted[user])} tasks`;
    }
    svg.querySelector("title").textContent = drawn.title;
    figure.querySelector(".figure-title").textContent = drawn.title;
    for (const ending of ["svg", "csv"]) figure.querySelector(`a.${ending}`).href = `figures/${drawn.name}.${ending}`;
    figure.querySelector(".readout").textContent = "";
  }
  function show() {
    const now = chosen();
    for (const place of document.querySelectorAll("[data-text]")) {
      place.textContent = place.dataset.text === "policy" ? data.policies[now.policy] : data.capacities[now.capacity];
    }
    for (const block of document.querySelectorAll(".capacity")) block.hidden = Number(block.dataset.capacity) !== now.capacity;
    showTable();
    showAccounts();
    if (!find("pair")) return;
    find("pair").hidden = !now.pair;
    find("no-pair").hidden = !!now.pair;
    if (!now.pair) return;
    showBubbles("pair-waits", now.pair.waits, "wait", duration, true);
    showBubbles("pair-completion", now.pair.completion, "ratio", ratio, false);
    if (find("completion-note")) find("completion-note").textContent = now.pair.completion_note;
  }

  sortable(table.querySelectorAll("th[data-column]"), (column) => {
    sorted = turned(sorted, column);
    showTable();
  });
  if (tree.table) {
    // In a large tree only the accounts directly under the root are visible at first.
    openAccounts((node) => data.accounts.name.length <= 60 || node === 0);
    sortable(tree.table.querySelectorAll("th[data-column]"), (column) => {
      tree.by = turned(tree.by, column);
      showAccounts();
    });
    for (const [id, fits] of [["open-all", () => true], ["close-all", (node) => node === 0]]) {
      find(id).addEventListener("click", () => {
        openAccounts(fits);
        showAccounts();
      });
    }
    addEventListener("beforeprint", () => {
      openAccounts(() => true);
      showAccounts();
    });
  }
  for (const select of Object.values(choice)) select.addEventListener("change", show);
  filter.name.addEventListener("input", showTable);
  if (filter.side) filter.side.addEventListener("change", showTable);
  find("choice").addEventListener("submit", (event) => event.preventDefault());
  for (const figure of document.querySelectorAll("#pair figure")) {
    const describe = (event) => {
      const bubble = event.target.closest(".bubbles .bubble");
      if (bubble) figure.querySelector(".readout").textContent = `${bubble.querySelector("title").textContent}.`;
    };
    figure.addEventListener("pointerover", describe);
    figure.addEventListener("click", describe);
  }
  // Opens all details for printing in browsers that cannot do so by style.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => (part.open = true)));
  show();
})();
