// Opens the page of a run of processes and checks its contents and controls: npm ci, then
// node processes_page.mjs PAGE.html, for example the page that the example `processes_page` writes. The browser is
// /usr/bin/chromium, or the one that CHROMIUM names. Prints one line per check and a summary; exits with status 0
// if all checks passed. Prints the drawing time after a zoom; with MAX_MS=200 a median above 200 ms fails.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { check, launchBrowser, finish } from "./run_checks.mjs";

const MAX_MS = Number(process.env.MAX_MS ?? Infinity);
const file = process.argv[2];
if (!file) {
  console.error("usage: node processes_page.mjs PAGE.html");
  process.exit(2);
}
const address = pathToFileURL(resolve(file)).href;

const browser = await launchBrowser();

/** Opens a page that records every console error and every request beyond the page itself. */
async function open(options = {}) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 1000 }, ...options });
  const problems = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("dialog", async (dialog) => (problems.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on("request", (request) => {
    if (request.url() !== address && !request.url().startsWith("data:")) problems.push(`request: ${request.url()}`);
  });
  await page.goto(address);
  return { page, problems };
}

const { page, problems } = await open();

// Decodes the data independently of the page's script: integers of any size.
const data = JSON.parse(await page.locator("#data").textContent());
const rows = data.rows.map(({ resource, count, uses }) => {
  const numbers = [];
  let [number, shift] = [0n, 0n];
  for (const byte of Buffer.from(uses, "base64")) {
    number |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (byte < 128) {
      numbers.push(number);
      [number, shift] = [0n, 0n];
    }
  }
  const found = [];
  let end = 0n;
  for (let k = 0; k < numbers.length; k += 3) {
    const from = end + numbers[k + 1];
    end = from + numbers[k + 2];
    found.push({ client: Number(numbers[k]), from: Number(from), until: Number(end) });
  }
  if (found.length !== count) throw new Error(`${found.length} uses instead of ${count}`);
  return { resource, uses: found };
});
const UNIT = data.unit_ns / 1e9;
const uses = rows.reduce((sum, row) => sum + row.uses.length, 0);

const lanes = page.locator("#lanes");
const plot = page.locator("#use");
const settled = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const shown = async () => {
  await settled();
  const text = await page.locator("#visible-time").textContent();
  return text.replaceAll("\u00a0", " ").match(/^(.*) s to (.*) s$/).slice(1).map(Number);
};
const whole = async () => {
  await lanes.focus();
  await page.keyboard.press("Home");
  return shown();
};
const tooltip = async () => ((await page.locator("#tooltip").isVisible()) ? (await page.locator("#tooltip").innerText()).replaceAll("\u00a0", " ") : "");
const at = async (canvas, x, y) => {
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + x, box.y + y);
  await settled();
};
/** Returns the positions of times in the current view, from the times that the lower plot shows at two positions. */
async function timeScale() {
  const wide = (await lanes.boundingBox()).width;
  const [a, b] = [wide * 0.3, wide * 0.9];
  const times = [];
  for (const x of [a, b]) {
    await at(plot, x, 100);
    times.push(Number((await tooltip()).match(/until (\S+) s/)[1]));
  }
  return { x: (seconds) => a + ((seconds - times[0]) / (times[1] - times[0])) * (b - a), unit: (b - a) / (times[1] - times[0]) };
}
/** Returns the colours of pixels of the lanes as `r,g,b`. */
const pixels = (places) => lanes.evaluate((canvas, places) => {
  // Reads from a copy, since reading changes how the browser stores a canvas.
  const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const scale = canvas.width / canvas.clientWidth;
  return places.map(([x, y]) => Array.from(context.getImageData(Math.floor(x * scale), Math.floor(y * scale), 1, 1).data.slice(0, 3)).join());
}, places);
const colours = () => page.evaluate(() => {
  const probe = document.body.appendChild(document.createElement("i"));
  const found = Array.from({ length: 8 }, (_, k) => {
    probe.style.color = `var(--s${k})`;
    return getComputedStyle(probe).color.match(/\d+/g).slice(0, 3).join();
  });
  probe.remove();
  return found;
});
// Lanes with one row: 34 pixels every 50, the first one at 14 (see the script's layout).
const single = data.resources.every((_, resource) => rows.filter((row) => row.resource === resource).length === 1);
const laneTop = (resource) => 14 + 50 * resource;
const text = (units) => `${(units * UNIT).toFixed(9).replace(/\.?0+$/, "")} s`;

await check(`the page shows ${uses} uses: heading, lanes, lines and totals`, async () => {
  for (const part of ["h1", "#lanes", "#use", "#legend", "#totals table"]) {
    if (!(await page.locator(part).first().isVisible())) return `${part} is not visible`;
  }
  if (await page.locator(".still").isVisible()) return "the static figures for readers without script are visible";
});

await check("names are inserted as text", async () => {
  const legend = await page.locator("#legend button .text").allTextContents();
  if (legend.join("\n") !== data.clients.join("\n")) return legend.join(", ");
  const foreign = await page.locator("main img, main b, header b, #legend script").count();
  if (foreign) return `${foreign} elements from names`;
});

await check("all uses of a short period have their colours, and each tooltip names the client and the time", async () => {
  if (!single) return;
  await whole();
  // Around a use in the middle of the run.
  const row = rows[0];
  const middle = row.uses[Math.floor(row.uses.length / 2)];
  const wide = (await lanes.boundingBox()).width;
  let [from, until] = await shown();
  // The pointer follows the use while the view shrinks.
  for (let k = 0; k < 60 && until - from > 40 * (middle.until - middle.from) * UNIT; k++) {
    const { x } = await timeScale();
    await at(lanes, Math.min(wide - 20, Math.max(100, x(((middle.from + middle.until) / 2) * UNIT))), laneTop(0) + 8);
    await page.mouse.wheel(0, -300);
    [from, until] = await shown();
  }
  const { x } = await timeScale();
  const palette = await colours();
  const visible = rows.flatMap((row) => row.uses.filter((use) => use.from * UNIT > from && use.until * UNIT < until && x(use.until * UNIT) - x(use.from * UNIT) > 3).map((use) => ({ ...use, resource: row.resource })));
  if (visible.length < 5) return `only ${visible.length} uses between ${from} and ${until}`;
  await page.mouse.move(0, 0);
  await settled();
  // Near the top of the lane, above the labels.
  const found = await pixels(visible.map((use) => [(x(use.from * UNIT) + x(use.until * UNIT)) / 2, laneTop(use.resource) + 4]));
  const off = visible.findIndex((use, k) => found[k] !== palette[data.series[use.client]]);
  if (off >= 0) return `${JSON.stringify(visible[off])} is ${found[off]} instead of ${palette[data.series[visible[off].client]]}`;
  for (const use of visible.slice(0, 40)) {
    await at(lanes, (x(use.from * UNIT) + x(use.until * UNIT)) / 2, laneTop(use.resource) + 8);
    const shownText = await tooltip();
    const wanted = [`${data.clients[use.client]} uses ${data.resources[use.resource]}`, `from ${text(use.from)} to ${text(use.until)}`];
    if (!wanted.every((part) => shownText.includes(part))) return `${JSON.stringify(shownText)} instead of ${JSON.stringify(wanted)}`;
  }
});

await check("bottlenecks are lines under their lanes", async () => {
  if (!single || data.bottlenecks.length === 0) return;
  await whole();
  const [resource, from, until] = data.bottlenecks.reduce((a, b) => (b[2] - b[1] > a[2] - a[1] ? b : a));
  const { x } = await timeScale();
  await page.mouse.move(0, 0);
  await settled();
  const ink = (await colours())[0];
  const middle = x(((from + until) / 2) * UNIT);
  const [line] = await pixels([[middle, laneTop(resource) + 39]]);
  if (x(until * UNIT) - x(from * UNIT) > 3 && line !== ink) return `${line} instead of ${ink}`;
  await at(lanes, middle, laneTop(resource) + 39);
  if (!(await tooltip()).includes("bottleneck from")) return await tooltip();
});

await check("wheel, drag, drag with Shift, double click, buttons and keys change the visible time", async () => {
  const [start, end] = await whole();
  const span = end - start;
  const steps = [
    ["wheel", () => at(lanes, 600, 60).then(() => page.mouse.wheel(0, -400)), ([a, b]) => b - a < span * 0.6],
    ["button out", () => page.locator('[data-do="out"]').click(), ([a, b]) => b - a > span * 0.6],
    ["key +", () => lanes.focus().then(() => page.keyboard.press("+")).then(() => page.keyboard.press("+")), ([a, b]) => b - a < span * 0.35],
    ["key right", () => page.keyboard.press("ArrowRight"), ([a], before) => a > before[0]],
    ["key left", () => page.keyboard.press("ArrowLeft"), ([a], before) => a < before[0]],
    ["drag to the left", async () => {
      await at(lanes, 700, 60);
      await page.mouse.down();
      await at(lanes, 500, 60);
      await page.mouse.up();
    }, ([a, b], before) => a > before[0] && Math.abs(b - a - (before[1] - before[0])) < span * 1e-3],
    ["drag with Shift", async () => {
      await page.keyboard.down("Shift");
      await at(lanes, 500, 60);
      await page.mouse.down();
      await at(lanes, 600, 60);
      await page.mouse.up();
      await page.keyboard.up("Shift");
    }, ([a, b], before) => b - a < (before[1] - before[0]) / 5 && a > before[0] && b < before[1]],
    ["double click", () => plot.dblclick({ position: { x: 500, y: 100 } }), ([a, b], before) => b - a < (before[1] - before[0]) / 3],
    ["button for the whole run", () => page.locator('[data-do="whole"]').click(), ([a, b]) => a === start && b === end],
    ["far in", async () => {
      await at(lanes, 600, 60);
      for (let k = 0; k < 40; k++) await page.mouse.wheel(0, -1000);
    }, ([a, b]) => a <= b && b <= end],
    ["key Home", () => lanes.focus().then(() => page.keyboard.press("Home")), ([a, b]) => a === start && b === end],
  ];
  let before = [start, end];
  for (const [name, act, holds] of steps) {
    await act();
    const after = await shown();
    if (!holds(after, before)) return `${name}: ${before} became ${after}`;
    before = after;
  }
});

await check("keys select one use after another and describe it", async () => {
  await whole();
  await page.keyboard.press("ArrowDown");
  const { resource, uses: own } = rows[0];
  for (const use of own.slice(0, 3)) {
    await page.keyboard.press("n");
    const shownText = (await page.locator("#readout").textContent()).replaceAll("\u00a0", " ");
    const wanted = `${data.clients[use.client]} uses ${data.resources[resource]} from ${text(use.from)} to ${text(use.until)}`;
    if (!shownText.startsWith(wanted)) return `${JSON.stringify(shownText)} instead of ${JSON.stringify(wanted)}`;
  }
  await page.keyboard.press("Escape");
  if (await page.locator("#readout").textContent()) return "the readout is not empty";
});

/** Returns the use of each client until `seconds`, of a resource or of all (-1). */
const used = (resource, seconds) => {
  const sums = data.clients.map(() => 0);
  for (const row of rows) {
    if (resource >= 0 && row.resource !== resource) continue;
    for (const use of row.uses) sums[use.client] += Math.max(0, Math.min(use.until * UNIT, seconds) - use.from * UNIT);
  }
  return sums;
};
await check("cumulative use is the sum of the uses, of all resources and of one", async () => {
  await whole();
  for (const resource of [-1, data.resources.length - 1]) {
    await page.selectOption("#of", String(resource));
    for (const share of [0.3, 0.95]) {
      await at(plot, (await plot.boundingBox()).width * share, 60);
      const shownText = await tooltip();
      const time = Number(shownText.match(/until (\S+) s/)[1]);
      const [low, high] = [used(resource, time - 0.06 * UNIT - data.horizon * UNIT * 1e-4), used(resource, time + 0.06 * UNIT + data.horizon * UNIT * 1e-4)];
      const lines = shownText.split("\n").map((line) => line.trim()).filter(Boolean);
      for (const [client, name] of data.clients.entries()) {
        const line = lines.findIndex((line) => line === name || line.startsWith(`${name}\t`));
        if (line < 0) return `${name} is not in ${JSON.stringify(shownText)}`;
        const value = Number((lines[line] + " " + (lines[line + 1] ?? "")).slice(name.length).match(/([\d.]+) s/)[1]);
        if (value < low[client] - 1e-3 || value > high[client] + 1e-3) return `${name} at ${time}: ${value}, not from ${low[client]} to ${high[client]}`;
      }
    }
  }
  await page.selectOption("#of", "-1");
});

await check("a click in the legend hides a client and another one shows it", async () => {
  await whole();
  await page.mouse.move(0, 0);
  await settled();
  const picture = () => lanes.evaluate((canvas) => canvas.toDataURL());
  const before = await picture();
  const button = page.locator("#legend button").first();
  await button.focus();
  await page.keyboard.press("Enter");
  await settled();
  if ((await picture()) === before || (await button.getAttribute("aria-pressed")) !== "false") return "it is not hidden";
  await page.keyboard.press("Enter");
  await settled();
  if ((await picture()) !== before || (await button.getAttribute("aria-pressed")) !== "true") return "it is still hidden";
});

await check("zooming redraws within the time limit", async () => {
  await whole();
  const times = await lanes.evaluate(async (canvas) => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const box = canvas.getBoundingClientRect();
    const found = [];
    const copy = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    for (let k = 0; k < 41; k++) {
      // In and out near the whole run, where the drawing has the most elements.
      const wheel = { deltaY: k % 2 ? 40 : -40, clientX: box.left + 300 + 10 * k, clientY: box.top + 60, bubbles: true, cancelable: true };
      await frame();
      const start = performance.now();
      canvas.dispatchEvent(new WheelEvent("wheel", wheel));
      // The page draws in the next frame, before this callback continues; reading a pixel waits for the drawing.
      await frame();
      for (const each of document.querySelectorAll(".plot canvas")) copy.drawImage(each, 0, 0);
      copy.getImageData(0, 0, 1, 1);
      found.push(performance.now() - start);
    }
    return found.sort((a, b) => a - b);
  });
  const median = times[Math.floor(times.length / 2)];
  console.log(`        ${uses} uses: median ${median.toFixed(1)} ms, longest ${times.at(-1).toFixed(1)} ms`);
  if (median >= MAX_MS) return `${median.toFixed(1)} ms`;
});

await check("without script the figures and the totals are there, and no controls", async () => {
  const plain = await open({ javaScriptEnabled: false });
  const wrong = !(await plain.page.locator(".still svg").first().isVisible()) || (await plain.page.locator("#tools").isVisible());
  const names = await plain.page.locator("#totals tbody th").allTextContents();
  await plain.page.close();
  if (wrong) return "the wrong part is visible";
  if (names.slice(0, -1).join() !== data.clients.join()) return names.join();
});

await check("dark mode has a dark background, and the lanes are drawn for it", async () => {
  const dark = await open({ colorScheme: "dark" });
  await dark.page.waitForTimeout(100);
  const paper = await dark.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const [light, other] = await Promise.all([page, dark.page].map((one) => one.locator("#lanes").evaluate((canvas) => canvas.toDataURL())));
  await dark.page.close();
  if (paper.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) > 150) return paper;
  if (light === other) return "the lanes look the same";
});

await check("a phone needs no horizontal scrolling", async () => {
  for (const width of [390, 320]) {
    const phone = await open({ viewport: { width, height: 800 }, isMobile: true, hasTouch: true });
    const over = await phone.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    await phone.page.close();
    if (over > 0) return `${over} pixels too wide at ${width}`;
  }
});

await check("print shows figures instead of controls", async () => {
  await page.emulateMedia({ media: "print" });
  const wrong = !(await page.locator(".still svg").first().isVisible()) || (await page.locator("#tools").isVisible());
  await page.emulateMedia({ media: "screen" });
  if (wrong) return "the controls are visible or the figures are not";
});

await check("no console errors and no requests", async () => problems[0]);
await browser.close();
finish();
