// Draws a run on canvases: lanes of the resources and, below them on the same time axis, the cumulative use of
// each client. Without this script the page shows static figures. Names are only ever inserted as text.
"use strict";
(() => {
  const { data, horizon, rows, bottlenecks, above, running, lines, used, UNIT_S, secondsText, seconds, percent, ticks } = run;
  const find = (id) => document.getElementById(id);
  const [lanes, plot, tooltip] = [find("lanes"), find("use"), find("tooltip")];
  document.documentElement.classList.add("script");

  const SERIES = 8;
  const series = (client) => data.series[client];
  // The dash patterns of `chart.css`.
  const DASHES = [[], [], [7, 2], [3, 2], [9, 2, 2, 2], [12, 3], [5, 2, 1, 2, 1, 2], [1.5, 2]];
  const hidden = new Array(data.clients.length).fill(false);
  let emphasized = -1;
  let cumulative = lines(-1);

  // Layout, in CSS pixels.
  const [RIGHT, TOP, LANE, ROW, BELOW, LINE_AT, AXIS, PLOT] = [16, 14, 34, 11, 16, 5, 30, 240];
  const FONT = '12px "DejaVu Sans", Verdana, "Segoe UI", "Helvetica Neue", Arial, sans-serif';
  const laneRows = data.resources.map((_, resource) => rows.filter((row) => row.resource === resource));
  const heights = laneRows.map((own) => Math.max(LANE, ROW * own.length));
  const tops = [];
  let bottom = TOP;
  for (const height of heights) {
    tops.push(bottom);
    bottom += height + BELOW;
  }
  const LANES_HEIGHT = bottom + AXIS;
  let [left, width, ratio] = [80, 800, 1];
  let colours = {};
  const view = { from: 0, until: horizon };
  // The time under the pointer, the use selected by keys, and the marked period.
  let pointer = null;
  let chosen = null;
  let marked = null;

  const minSpan = Math.min(horizon, Math.max(10 / data.unit_ns, horizon * 1e-9));
  function show(from, until) {
    const span = Math.min(horizon, Math.max(minSpan, until - from));
    const middle = (from + until) / 2;
    view.from = Math.min(Math.max(0, until - from === span ? from : middle - span / 2), horizon - span);
    view.until = view.from + span;
    redraw();
  }
  function zoom(factor, centre) {
    const span = Math.min(horizon, Math.max(minSpan, (view.until - view.from) * factor));
    const share = (centre - view.from) / (view.until - view.from);
    show(centre - share * span, centre - share * span + span);
  }
  const move = (share) => show(view.from + share * (view.until - view.from), view.until + share * (view.until - view.from));
  const x = (time) => left + ((time - view.from) / (view.until - view.from)) * width;
  const timeAt = (place) => view.from + ((place - left) / width) * (view.until - view.from);

  function timeTicks() {
    const label = Math.max(60, 9 * secondsText(view.until, Math.max(0, 2 - Math.floor(Math.log10((view.until - view.from) * UNIT_S)))).length);
    return ticks(view.from * UNIT_S, view.until * UNIT_S, width / label).map(([value, text]) => [x(value / UNIT_S), text]);
  }

  function prepare(canvas, height) {
    const [wide, high] = [Math.round(canvas.clientWidth * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, height);
    context.font = FONT;
    return context;
  }
  function stroke(context, colour, x1, y1, x2, y2) {
    context.strokeStyle = colour;
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
  }
  function shortened(context, text, maxWidth) {
    if (context.measureText(text).width <= maxWidth) return text;
    const characters = Array.from(text);
    let [low, high] = [0, characters.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(`${characters.slice(0, middle).join("")}…`).width <= maxWidth) low = middle;
      else high = middle - 1;
    }
    return `${characters.slice(0, low).join("")}…`;
  }
  function grid(context, top, base) {
    context.lineWidth = 1;
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    for (const [place, text] of timeTicks()) {
      stroke(context, colours.rule, Math.round(place) + 0.5, top, Math.round(place) + 0.5, base);
      context.fillStyle = colours.soft;
      const label = `${text}\u00a0s`;
      context.fillText(label, Math.min(place, left + width + RIGHT - context.measureText(label).width / 2), base + 17);
    }
    stroke(context, colours.axis, left, base + 0.5, left + width, base + 0.5);
  }

  // Intervals narrower than NARROW pixels cannot be distinguished; a column with two or more of them is divided
  // by height in proportion to the clients' use, as in the figures in files. Columns keep their positions in time
  // while the view moves, so that the drawing does not flicker.
  const [NARROW, COLUMN] = [1, 2];
  /** Returns the use of each client in column `c` (of length `span`) if the column is divided at `scale` pixels per
   * time unit, else null. */
  function columnUse(row, c, span, scale) {
    const [from, until] = [c * span, (c + 1) * span];
    const parts = new Map();
    let narrow = 0;
    for (let k = above(row.until, from); k < row.count && row.from[k] < until; k++) {
      if ((row.until[k] - row.from[k]) * scale < NARROW) narrow += 1;
      const part = Math.min(row.until[k], until) - Math.max(row.from[k], from);
      parts.set(row.client[k], (parts.get(row.client[k]) ?? 0) + part);
    }
    return narrow >= 2 ? parts : null;
  }
  function drawRow(context, row, top, height) {
    const scale = width / (view.until - view.from);
    const span = COLUMN / scale;
    const first = Math.floor(view.from / span);
    const count = Math.ceil(view.until / span) - first + 1;
    const begin = above(row.until, view.from);
    let end = begin;
    const narrow = new Uint32Array(count);
    const column = (time) => Math.min(count - 1, Math.max(0, Math.floor(time / span) - first));
    const lastColumn = (k) => Math.max(column(row.from[k]), Math.min(count - 1, Math.max(0, Math.ceil(row.until[k] / span) - 1 - first)));
    for (; end < row.count && row.from[end] < view.until; end++) {
      if ((row.until[end] - row.from[end]) * scale >= NARROW) continue;
      for (let c = column(row.from[end]); c <= lastColumn(end); c++) narrow[c] += 1;
    }
    const clients = data.clients.length;
    const labels = [];
    let [current, parts, present] = [-1, new Float64Array(clients), []];
    const edge = (place) => Math.min(left + width, Math.max(left, place));
    function rectangle(client, from, until, low, high) {
      if (hidden[client]) return;
      const [x1, x2] = [edge(from), edge(until)];
      if (x2 <= x1) return;
      context.fillStyle = colours.series[series(client)];
      context.globalAlpha = emphasized < 0 || emphasized === client ? 1 : 0.2;
      context.fillRect(x1, top + height * (1 - high), x2 - x1, height * (high - low));
    }
    function flush() {
      present.sort((a, b) => a - b);
      let low = 0;
      for (const client of present) {
        const high = Math.min(1, low + parts[client] / span);
        rectangle(client, x((current + first) * span), x((current + first + 1) * span), low, high);
        low = high;
        parts[client] = 0;
      }
      present = [];
    }
    for (let k = begin; k < end; k++) {
      const [client, from, until] = [row.client[k], row.from[k], row.until[k]];
      const [one, last] = [column(from), lastColumn(k)];
      let wholeFrom = from;
      for (let c = one; c <= last; c++) {
        if (narrow[c] < 2) continue;
        const [columnFrom, columnUntil] = [(c + first) * span, (c + first + 1) * span];
        if (wholeFrom < columnFrom) rectangle(client, x(wholeFrom), x(columnFrom), 0, 1);
        if (current !== c) {
          flush();
          current = c;
        }
        if (parts[client] === 0) present.push(client);
        parts[client] += Math.max(0, Math.min(until, columnUntil) - Math.max(from, columnFrom));
        wholeFrom = columnUntil;
      }
      if (wholeFrom < until) rectangle(client, x(wholeFrom), x(until), 0, 1);
      if (height >= 16 && (until - from) * scale > 30 && !hidden[client]) labels.push([edge(x(from)), edge(x(until)), client]);
    }
    flush();
    context.globalAlpha = 1;
    context.fillStyle = colours.paper;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const [from, until, client] of labels) {
      if (widths[client] + 8 <= until - from) context.fillText(data.clients[client], (from + until) / 2, top + height / 2 + 1);
    }
    return { span, first, narrow };
  }
  let widths = [];

  function drawLanes() {
    const context = prepare(lanes, LANES_HEIGHT);
    if (widths.length === 0) widths = data.clients.map((name) => context.measureText(name).width);
    grid(context, TOP, bottom);
    data.resources.forEach((name, resource) => {
      const [top, height] = [tops[resource], heights[resource]];
      context.fillStyle = colours.ink;
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(shortened(context, name, left - 14), left - 8, top + height / 2);
      const own = laneRows[resource];
      const each = height / own.length;
      own.forEach((row, index) => drawRow(context, row, top + each * index, each - (index + 1 < own.length ? 1 : 0)));
      context.fillStyle = colours.ink;
      for (const [from, until] of bottlenecks[resource]) {
        if (until <= view.from || from >= view.until) continue;
        const [x1, x2] = [Math.max(left, x(from)), Math.min(left + width, x(until))];
        context.fillRect(x1, top + height + LINE_AT - 1.5, Math.max(0.5, x2 - x1), 3);
      }
    });
    context.textBaseline = "alphabetic";
    for (const [at, client] of data.marks) {
      if (at < view.from || at > view.until) continue;
      context.fillStyle = client === null ? colours.ink : colours.series[series(client)];
      context.beginPath();
      context.moveTo(x(at), TOP - 1);
      context.lineTo(x(at) - 4.5, TOP - 10);
      context.lineTo(x(at) + 4.5, TOP - 10);
      context.fill();
    }
    overlay(context, TOP, bottom);
    if (chosen) {
      const { row, place } = chosen;
      const own = laneRows[row.resource];
      const each = heights[row.resource] / own.length;
      const y = tops[row.resource] + each * own.indexOf(row);
      context.strokeStyle = colours.ink;
      context.lineWidth = 2;
      if (place < 0) context.strokeRect(left, y - 1, width, each + 2);
      else {
        const [x1, x2] = [Math.max(left - 3, x(row.from[place])), Math.min(left + width + 3, x(row.until[place]))];
        if (x2 >= left && x1 <= left + width) context.strokeRect(x1 - 1, y - 2, x2 - x1 + 2, each + 4);
      }
    }
  }
  function overlay(context, top, base) {
    context.lineWidth = 1;
    if (marked) {
      context.fillStyle = colours.ink;
      context.globalAlpha = 0.15;
      context.fillRect(Math.min(...marked), top, Math.abs(marked[1] - marked[0]), base - top);
      context.globalAlpha = 1;
    }
    if (pointer) stroke(context, colours.soft, pointer.x, top, pointer.x, base);
  }

  function drawUse() {
    const [top, base] = [16, PLOT];
    const context = prepare(plot, PLOT + AXIS);
    const values = cumulative.flatMap((line, client) => (hidden[client] ? [] : [used(line, view.from), used(line, view.until)]));
    const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
    const marks = ticks(low * UNIT_S, Math.max(high, low + Math.max(1e-6 * low, 1e-9 / UNIT_S, 1e-6 * (view.until - view.from))) * UNIT_S, 5);
    const step = marks.length > 1 ? marks[1][0] - marks[0][0] : 1;
    const floor = Math.floor((low * UNIT_S) / step + 1e-9) * step;
    const ceiling = Math.max(floor + step, Math.ceil((high * UNIT_S) / step - 1e-9) * step);
    const y = (value) => base - ((value * UNIT_S - floor) / (ceiling - floor)) * (base - top);
    grid(context, top, base);
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const [value, text] of ticks(floor, ceiling, 5)) {
      const place = y(value / UNIT_S);
      if (value > floor) stroke(context, colours.rule, left, Math.round(place) + 0.5, left + width, Math.round(place) + 0.5);
      context.fillStyle = colours.soft;
      context.fillText(`${text}\u00a0s`, left - 8, place);
    }
    context.lineJoin = "round";
    cumulative.forEach((line, client) => {
      if (hidden[client]) return;
      context.strokeStyle = colours.series[series(client)];
      context.lineWidth = emphasized === client ? 3 : 1.6;
      context.globalAlpha = emphasized < 0 || emphasized === client ? 1 : 0.25;
      context.setLineDash(DASHES[series(client)]);
      context.beginPath();
      const [first, last] = [above(line.at, view.from), above(line.at, view.until)];
      context.moveTo(left, y(used(line, view.from)));
      if (last - first <= 2 * width) {
        for (let k = first; k < last; k++) context.lineTo(x(line.at[k]), y(line.sum[k]));
      } else {
        // The line never falls, so its value at each pixel is all that is visible.
        for (let place = 1; place < width; place++) context.lineTo(left + place, y(used(line, timeAt(left + place))));
      }
      context.lineTo(left + width, y(used(line, view.until)));
      context.stroke();
    });
    context.globalAlpha = 1;
    context.setLineDash([]);
    overlay(context, top, base);
  }

  let wanted = 0;
  function redraw() {
    if (wanted) return;
    wanted = requestAnimationFrame(() => {
      wanted = 0;
      draw();
    });
  }
  function draw() {
    drawLanes();
    drawUse();
    const text = `${seconds(view.from, digits())} to ${seconds(view.until, digits())}`;
    if (find("visible-time").textContent !== text) find("visible-time").textContent = text;
    point();
  }
  /** As many decimals as a pixel of the view needs. */
  const digits = () => Math.max(0, Math.min(9, 3 - Math.floor(Math.log10((view.until - view.from) * UNIT_S))));

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(`--${name}`).trim();
    colours = { paper: value("paper"), ink: value("ink"), soft: value("soft"), rule: value("rule"), axis: value("axis"), series: [] };
    for (let k = 0; k < SERIES; k++) colours.series.push(value(`s${k}`));
    for (const swatch of document.querySelectorAll("#legend .swatch")) swatch.style.background = `var(--s${swatch.dataset.series})`;
    redraw();
  }
  function resize() {
    ratio = devicePixelRatio || 1;
    const context = lanes.getContext("2d");
    context.font = FONT;
    const names = data.resources.map((name) => context.measureText(name).width);
    left = Math.ceil(Math.min(Math.max(64, lanes.clientWidth * 0.25), Math.max(64, ...names.map((name) => name + 16))));
    width = Math.max(50, lanes.clientWidth - left - RIGHT);
    redraw();
  }

  // The tooltip at the pointer.
  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }
  const pair = (name, value) => {
    const line = element("div");
    line.append(element("span", "name", name), element("span", "", value));
    return line;
  };
  const describe = (row, place) => [
    `${data.clients[row.client[place]]} uses ${data.resources[row.resource]}`,
    `from ${seconds(row.from[place])} to ${seconds(row.until[place])} (${seconds(row.until[place] - row.from[place])})`,
  ];
  function under({ y, time }) {
    const resource = tops.findIndex((top, k) => y >= top - 2 && y <= top + heights[k] + BELOW - 4);
    if (resource < 0) return null;
    const own = laneRows[resource];
    const row = own[Math.min(own.length - 1, Math.max(0, Math.floor(((y - tops[resource]) / heights[resource]) * own.length)))];
    const lines = [];
    const scale = width / (view.until - view.from);
    const span = COLUMN / scale;
    const column = Math.floor(time / span);
    const parts = columnUse(row, column, span, scale);
    const place = running(row, time);
    if (parts) {
      lines.push(element("b", "", `${data.resources[resource]}: several uses`), element("span", "", `from ${seconds(column * span, digits() + 1)} to ${seconds((column + 1) * span, digits() + 1)}`));
      const sorted = Array.from(parts).filter(([client]) => !hidden[client]).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
      for (const [client, part] of sorted.slice(0, 8)) lines.push(pair(data.clients[client], percent(part / span)));
    } else if (place >= 0 && !hidden[row.client[place]]) {
      const [title, times] = describe(row, place);
      lines.push(element("b", "", title), element("span", "", times));
    } else {
      lines.push(element("b", "", `${data.resources[resource]}: ${place >= 0 ? "a hidden client" : "idle"}`), element("span", "", `at ${seconds(time, digits() + 1)}`));
    }
    const limiting = bottlenecks[resource].find(([from, until]) => from <= time && time < until);
    if (limiting) lines.push(element("div", "", `bottleneck from ${seconds(limiting[0])} to ${seconds(limiting[1])}`));
    return lines;
  }
  function point() {
    let lines = null;
    if (pointer && !marked) {
      pointer.time = timeAt(pointer.x);
      const mark = pointer.on === lanes && pointer.y < TOP + 2 && data.marks.find(([at]) => Math.abs(x(at) - pointer.x) < 5);
      if (mark) {
        lines = [element("b", "", mark[1] === null ? mark[2] : `${data.clients[mark[1]]}: ${mark[2]}`), element("span", "", `at ${seconds(mark[0])}`)];
      } else if (pointer.on === lanes) lines = under(pointer);
      else {
        lines = [element("b", "", `until ${seconds(pointer.time, digits() + 1)}`)];
        const sums = cumulative.map((line, client) => [client, used(line, pointer.time)]).filter(([client]) => !hidden[client]);
        sums.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
        for (const [client, sum] of sums.slice(0, 12)) lines.push(pair(data.clients[client], `${(sum * UNIT_S).toFixed(3)}\u00a0s`));
        if (sums.length > 12) lines.push(element("div", "", `and ${sums.length - 12} more`));
      }
    }
    tooltip.hidden = !lines;
    if (!lines) return;
    tooltip.replaceChildren(...lines);
    const y = pointer.y + pointer.on.offsetTop;
    const beside = pointer.x + 16 + tooltip.offsetWidth > lanes.clientWidth ? pointer.x - 16 - tooltip.offsetWidth : pointer.x + 16;
    tooltip.style.transform = `translate(${Math.max(0, beside)}px, ${Math.max(0, y + 14)}px)`;
  }

  // One pointer drags or marks, two pointers zoom.
  const down = new Map();
  for (const canvas of [lanes, plot]) {
    const place = (event) => [event.clientX - canvas.getBoundingClientRect().left, event.clientY - canvas.getBoundingClientRect().top];
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey && event.deltaY === 0) return;
      event.preventDefault();
      const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(((event.deltaX || event.deltaY) * unit) / width);
      else zoom(Math.min(4, Math.max(0.25, 1.0025 ** (event.deltaY * unit))), Math.min(view.until, Math.max(view.from, timeAt(place(event)[0]))));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      const [px] = place(event);
      down.set(event.pointerId, { x: px, from: view.from, until: view.until, time: timeAt(px) });
      if (event.shiftKey) marked = [px, px];
      else canvas.classList.add("dragged");
    });
    canvas.addEventListener("pointermove", (event) => {
      const [px, py] = place(event);
      const inside = px >= left && px <= left + width;
      pointer = inside ? { x: px, y: py, on: canvas, time: timeAt(px) } : null;
      const start = down.get(event.pointerId);
      if (start && down.size === 2) {
        start.x = px;
        const [a, b] = Array.from(down.values());
        if (Math.abs(a.x - b.x) > 10 && a.time !== b.time) {
          // Both fingers stay on their times.
          const scale = (b.time - a.time) / (b.x - a.x);
          if (scale > 0) show(a.time - (a.x - left) * scale, a.time + (left + width - a.x) * scale);
        }
      } else if (start && marked) marked[1] = Math.min(left + width, Math.max(left, px));
      else if (start) {
        const shift = ((start.x - px) / width) * (start.until - start.from);
        show(start.from + shift, start.until + shift);
      }
      redraw();
    });
    const up = (event) => {
      const start = down.get(event.pointerId);
      down.delete(event.pointerId);
      // A remaining finger continues from its position.
      for (const other of down.values()) Object.assign(other, { from: view.from, until: view.until, time: timeAt(other.x) });
      canvas.classList.remove("dragged");
      if (start && marked) {
        const [a, b] = [Math.min(...marked), Math.max(...marked)].map(timeAt);
        const wide = Math.abs(marked[1] - marked[0]) > 3 && event.type === "pointerup";
        marked = null;
        if (wide) show(a, b);
      }
      redraw();
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => {
      pointer = null;
      redraw();
    });
    canvas.addEventListener("dblclick", (event) => zoom(0.25, timeAt(place(event)[0])));
  }

  const actions = {
    in: () => zoom(0.5, (view.from + view.until) / 2),
    out: () => zoom(2, (view.from + view.until) / 2),
    left: () => move(-0.25),
    right: () => move(0.25),
    whole: () => show(0, horizon),
  };
  find("tools").addEventListener("click", (event) => actions[event.target.closest("button")?.dataset.do]?.());
  const KEYS = { "+": "in", "=": "in", "-": "out", "−": "out", ArrowLeft: "left", ArrowRight: "right", Home: "whole", 0: "whole" };
  /** Selects another lane, or another use in the lane, and describes it in the readout. */
  function choose(lane, use) {
    const at = chosen ? rows.indexOf(chosen.row) : lane > 0 || use ? -1 : rows.length;
    if (lane || !chosen) chosen = { row: rows[Math.min(rows.length - 1, Math.max(0, at + (lane || 1)))], place: -1 };
    const { row } = chosen;
    const isShown = (k) => !hidden[row.client[k]];
    if (use) {
      let place = chosen.place < 0 ? above(row.until, view.from) - (use > 0 ? 1 : 0) : chosen.place;
      if (chosen.place < 0 && use < 0) place = above(row.from, view.until);
      do place += use;
      while (place >= 0 && place < row.count && !isShown(place));
      if (place >= 0 && place < row.count) chosen.place = place;
      if (chosen.place >= 0) {
        const [from, until] = [row.from[chosen.place], row.until[chosen.place]];
        const span = view.until - view.from;
        if (from < view.from || until > view.until) show((from + until) / 2 - span / 2, (from + until) / 2 + span / 2);
      }
    }
    const name = data.resources[row.resource];
    find("readout").textContent = chosen.place >= 0 ? describe(row, chosen.place).join(" ") : `${name}: ${row.count} uses; press N or P for the next or previous one`;
    redraw();
  }
  lanes.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || rows.length === 0) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (KEYS[key]) actions[KEYS[key]]();
    else if (key === "ArrowUp" || key === "ArrowDown") choose(key === "ArrowUp" ? -1 : 1, 0);
    else if (key === "n" || key === "p") choose(0, key === "n" ? 1 : -1);
    else if (key === "Escape") {
      chosen = null;
      find("readout").textContent = "";
      redraw();
    } else return;
    event.preventDefault();
  });

  data.clients.forEach((name, client) => {
    const button = element("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.title = name;
    const swatch = element("span", "swatch");
    swatch.dataset.series = series(client);
    button.append(swatch, element("span", "text", name));
    button.addEventListener("click", () => {
      hidden[client] = !hidden[client];
      button.setAttribute("aria-pressed", String(!hidden[client]));
      redraw();
    });
    for (const [event, value] of [["pointerenter", client], ["pointerleave", -1]]) {
      button.addEventListener(event, () => {
        emphasized = value;
        redraw();
      });
    }
    const item = element("li");
    item.append(button);
    find("legend").append(item);
  });
  ["all resources", ...data.resources].forEach((name, k) => {
    const option = element("option", "", name);
    option.value = String(k - 1);
    find("of").append(option);
  });
  find("of").addEventListener("change", () => {
    cumulative = lines(Number(find("of").value));
    redraw();
  });

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
  new ResizeObserver(resize).observe(lanes);
  resize();
  theme();
  draw();
})();
