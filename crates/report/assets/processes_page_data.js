// Decodes the data of a run: uses in order of time and cumulative use of each client. Formats times.
"use strict";
const run = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  // Times are integers in units of data.unit_ns, exact up to 2^53.
  const UNIT_S = data.unit_ns / 1e9;
  const horizon = Math.max(data.horizon, 1);

  /** Decodes a row's uses: clients, beginnings and ends, in order of time. */
  function decode(row) {
    const bytes = Uint8Array.from(atob(row.uses), (character) => character.charCodeAt(0));
    const [client, from, until] = [new Uint32Array(row.count), new Float64Array(row.count), new Float64Array(row.count)];
    let at = 0;
    function number() {
      let [sum, factor] = [0, 1];
      for (;;) {
        const byte = bytes[at++];
        sum += (byte & 127) * factor;
        if (byte < 128) return sum;
        factor *= 128;
      }
    }
    let end = 0;
    for (let k = 0; k < row.count; k++) {
      client[k] = number();
      from[k] = end + number();
      until[k] = end = from[k] + number();
    }
    return { resource: row.resource, client, from, until, count: row.count };
  }
  const rows = data.rows.map(decode);

  /** Returns the first index in `sorted` (of `count` elements) whose value exceeds `value`. */
  function above(sorted, value, count = sorted.length) {
    let [low, high] = [0, count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] > value) high = middle;
      else low = middle + 1;
    }
    return low;
  }
  /** Returns the index of a row's use at `time`, or -1. */
  function running(row, time) {
    const place = above(row.until, time);
    return place < row.count && row.from[place] <= time ? place : -1;
  }

  // Bottlenecks of each resource.
  const bottlenecks = data.resources.map(() => []);
  for (const [resource, from, until] of data.bottlenecks) bottlenecks[resource].push([from, until]);

  /** Returns the vertices of each client's cumulative use: times and sums. */
  function lines(resource) {
    const changes = data.clients.map(() => []);
    for (const row of rows) {
      if (resource >= 0 && row.resource !== resource) continue;
      for (let k = 0; k < row.count; k++) changes[row.client[k]].push([row.from[k], 1], [row.until[k], -1]);
    }
    return changes.map((list) => {
      list.sort((a, b) => a[0] - b[0]);
      const [at, sum] = [new Float64Array(list.length + 1), new Float64Array(list.length + 1)];
      let level = 0;
      list.forEach(([time, change], k) => {
        at[k + 1] = time;
        sum[k + 1] = sum[k] + level * (time - at[k]);
        level += change;
      });
      return { at, sum };
    });
  }
  function used({ at, sum }, time) {
    const next = above(at, time);
    if (next >= at.length) return sum[at.length - 1];
    const span = at[next] - at[next - 1];
    return sum[next - 1] + (span > 0 ? ((sum[next] - sum[next - 1]) * (time - at[next - 1])) / span : 0);
  }

  /** Formats a time in seconds with all significant digits. */
  function secondsText(time, decimals = 9) {
    const text = (time * UNIT_S).toFixed(decimals);
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  }
  const seconds = (time, decimals) => `${secondsText(time, decimals).replace("-", "−")}\u00a0s`;
  const percent = (share) => `${(share * 100).toFixed(1)}\u00a0%`;

  /** Returns at most `count` round numbers from `low` to `high` with their labels. */
  function ticks(low, high, count) {
    const rough = (high - low) / Math.max(count, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough * 0.999);
    const decimals = Math.max(0, Math.min(12, Math.ceil(-Math.log10(step) - 1e-9)));
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push([k * step, (k * step).toFixed(decimals)]);
    return found;
  }

  return { data, horizon, rows, bottlenecks, above, running, lines, used, UNIT_S, secondsText, seconds, percent, ticks };
})();
