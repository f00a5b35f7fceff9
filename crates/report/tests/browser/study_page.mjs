// Opens a study page from its folder, without a network, and checks its contents and controls: npm ci, then
// node study_page.mjs FOLDER. The browser is /usr/bin/chromium, or the one that CHROMIUM names. Prints one line
// per check and a summary; exits with status 0 if all checks passed.
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { check, cutTexts, launchBrowser, finish, seriousFindings } from "./run_checks.mjs";

const folder = process.argv[2];
if (!folder) {
  console.error("usage: node study_page.mjs FOLDER, where FOLDER contains the report's index.html");
  process.exit(2);
}
const address = (...parts) => pathToFileURL(resolve(join(folder, ...parts))).href;
const index = address("index.html");

const browser = await launchBrowser();

/** Opens a page that records every console error and every request beyond the page itself. */
async function open(target, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, ...options });
  const problems = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("dialog", async (dialog) => (problems.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on("request", (request) => {
    if (request.url() !== target && !request.url().startsWith("data:")) problems.push(`request: ${request.url()}`);
  });
  await page.goto(target);
  return { page, problems };
}

const names = (page) => page.locator("#user-table tbody th").allTextContents();
const tableText = (page) => page.locator("#user-table tbody").evaluate((body) => [...body.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join("|")).join("\n"));
const column = (page, index) => page.locator("#user-table tbody tr").evaluateAll((rows, index) => rows.map((row) => row.cells[index].textContent), index);
const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

const { page, problems } = await open(index);
const hasTable = (await page.locator("#user-table").count()) > 0;
const users = hasTable ? await names(page) : [];
const options = async (id) => (hasTable ? page.locator(`${id} option`).count() : 0);
const [capacities, policies] = [await options("#choose-capacity"), await options("#choose-policy")];

await check("the page has a heading, a question and a method", async () => {
  for (const part of ["h1", "#question", "#method pre", "#reading"]) {
    if (!(await page.locator(part).first().isVisible())) return `${part} is not visible`;
  }
});

await check("the answer comes before the question", () =>
  page.evaluate(() => {
    const [answer, question] = ["answer", "question"].map((id) => document.getElementById(id));
    return !answer || answer.compareDocumentPosition(question) & Node.DOCUMENT_POSITION_FOLLOWING ? null : "the question is first";
  }));

for (const [what, options] of [
  ["wide", {}],
  ["phone", { viewport: { width: 390, height: 800 } }],
  ["dark", { colorScheme: "dark" }],
]) {
  const opened = await open(index, options);
  await check(`${what}: axe-core has no serious finding`, () => seriousFindings(opened.page));
  await check(`${what}: every figure has a title, and no text is cut`, () => cutTexts(opened.page));
  if (what === "phone") {
    await check("phone: the values of tables of names and values are in sight, and a figure that scrolls says so", () =>
      opened.page.evaluate(() => {
        for (const table of document.querySelectorAll(".summary-table")) {
          const { parentElement: around } = table;
          if (around.scrollWidth > around.clientWidth + 1) return `${around.getAttribute("aria-label")} has to be scrolled`;
        }
        for (const drawing of document.querySelectorAll(".drawing")) {
          const caption = drawing.parentElement.querySelector("figcaption");
          const hint = caption ? getComputedStyle(caption, "::before").content : "none";
          if (drawing.scrollWidth > drawing.clientWidth + 1 && !hint.includes("sideways")) return "a figure scrolls without a hint";
        }
        for (const heading of document.querySelectorAll("th.group span")) {
          if (heading.getBoundingClientRect().right > innerWidth) return `${JSON.stringify(heading.textContent)} is out of sight`;
        }
        return null;
      }));
  }
  await opened.page.close();
}

if (hasTable) {
  const plain = await open(index, { javaScriptEnabled: false });
  await check("without script the table, the figures and the texts are there, and no controls", async () => {
    if ((await names(plain.page)).length !== users.length) return "the table differs in length";
    if (!(await plain.page.locator("#over-time svg").first().isVisible())) return "no figures";
    if (await plain.page.locator("#choose-capacity").isVisible()) return "a control without function is visible";
  });
  await check("script and page write the same table", async () => {
    // Choose another run and the first one again, so that the script writes the table.
    const first = await page.locator("#choose-policy").inputValue();
    await page.selectOption("#choose-policy", String(policies - 1));
    await page.selectOption("#choose-policy", first);
    const [written, given] = [await tableText(page), await tableText(plain.page)];
    if (written === given) return;
    const [a, b] = [written.split("\n"), given.split("\n")];
    const row = a.findIndex((line, at) => line !== b[at]);
    return `row ${row}: ${JSON.stringify(a[row])} instead of ${JSON.stringify(b[row])}`;
  });
  await plain.page.close();

  await check("sorting changes the order of rows and sets aria-sort", async () => {
    const button = page.locator('#user-table th[data-column="name"] button');
    await button.click();
    const rising = await names(page);
    await button.click();
    const falling = await names(page);
    const sorted = [...users].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    if (rising.join("\n") !== sorted.join("\n")) return "not in the order of names";
    if (users.length > 1 && falling.join("\n") === rising.join("\n")) return "the second click changes nothing";
    if ((await page.locator('#user-table th[data-column="name"]').getAttribute("aria-sort")) !== "descending") return "aria-sort is wrong";
    await page.locator('#user-table th[data-column="tasks"] button').click();
    const tasks = (await column(page, 1)).map((text) => Number(text.replace(/\D/g, "")));
    if (tasks.some((count, at) => at > 0 && count > tasks[at - 1])) return "not by falling number of tasks";
  });
  await check("every column sorts", async () => {
    for (const head of await page.locator("#user-table th[data-column] button").all()) {
      await head.click();
      if ((await names(page)).length !== users.length) return `rows lost by ${await head.textContent()}`;
    }
    await page.locator('#user-table th[data-column="tasks"] button').click();
  });
  await check("the filter keeps the users whose names match", async () => {
    const part = users[0].slice(-3);
    await page.fill("#filter-name", part);
    const kept = await names(page);
    const wanted = users.filter((name) => name.toLowerCase().includes(part.toLowerCase()));
    await page.fill("#filter-name", "no user is called this");
    const none = await names(page);
    await page.fill("#filter-name", "");
    if (kept.length !== wanted.length) return `${kept.length} of ${wanted.length} kept`;
    if (none.length !== 0) return "a name that no user has keeps some users";
    if ((await names(page)).length !== users.length) return "not all users come back";
  });
  if (policies > 1) {
    await check("the filter by gain and loss separates the users", async () => {
      let sum = 0;
      for (const side of ["better", "worse", "same"]) {
        await page.selectOption("#filter-side", side);
        const texts = await column(page, 2 + policies);
        const fits = { better: /^−/, worse: /^\+/, same: /^0/ }[side];
        if (!texts.every((text) => fits.test(text.trim()))) return `a user is wrong in ${side}`;
        sum += texts.length;
      }
      await page.selectOption("#filter-side", "");
      if (sum > users.length) return "more users than there are";
    });
    await check("another policy changes the table, the bubbles, the texts and the links", async () => {
      if (policies < 3) return;
      const state = async () => [
        await tableText(page),
        await page.locator("#pair-waits .bubbles").innerHTML(),
        await page.locator("#users [data-text=policy]").first().textContent(),
        await page.locator("#pair-waits a.csv").getAttribute("href"),
      ];
      await page.selectOption("#choose-policy", "1");
      const before = await state();
      await page.selectOption("#choose-policy", "2");
      const after = await state();
      const same = before.findIndex((part, at) => part === after[at]);
      if (same >= 0) return `part ${same} does not change`;
    });
    await check("the baseline policy has no comparison", async () => {
      await page.selectOption("#choose-policy", "0");
      const hidden = !(await page.locator("#pair").isVisible()) && (await page.locator("#no-pair").isVisible());
      await page.selectOption("#choose-policy", "1");
      if (!hidden || !(await page.locator("#pair").isVisible())) return "the figures do not follow";
    });
    await check("moved bubbles have the positions of the figure's file", async () => {
      for (const capacity of capacities > 1 ? [String(capacities - 1), "0"] : ["0"]) {
        await page.selectOption("#choose-capacity", capacity);
        const name = await page.locator("#pair-waits a.svg").getAttribute("href");
        const read = (root) => root.evaluate((element) => [...element.querySelectorAll(".bubbles circle")]
          .filter((circle) => circle.getAttribute("display") !== "none" && circle.style.display !== "none" || circle.style.display === "inline")
          .map((circle) => ["data-subject", "cx", "cy", "class"].map((name) => (/^c[xy]$/.test(name) ? Number(circle.getAttribute(name)) : circle.getAttribute(name)))));
        const here = await read(page.locator("#pair-waits"));
        const file = await open(address(name));
        const there = await read(file.page.locator("svg"));
        await file.page.close();
        if (here.length !== there.length) return `${here.length} bubbles instead of ${there.length}`;
        const off = here.findIndex((bubble, at) => bubble.some((value, part) =>
          typeof value === "number" ? Math.abs(value - there[at][part]) > 0.011 : value !== there[at][part]));
        if (off >= 0) return `${here[off]} instead of ${there[off]}`;
      }
    });
    await check("the users that differ most are named in the figure of the chosen pair", async () => {
      const named = await page.locator("#pair-waits .names text").allTextContents();
      const differing = await page.locator("#pair-waits .bubbles circle.better, #pair-waits .bubbles circle.worse").count();
      if (named.length > 5 || (differing > 0 && named.length === 0)) return `${named.length} names for ${differing} users`;
      const unknown = named.find((name) => !users.some((user) => user === name || user.startsWith(name.replace(/…$/, ""))));
      if (unknown) return `${unknown} is no user`;
      const [title, drawn] = [await page.locator("#pair-waits .figure-title").textContent(), await page.locator("#pair-waits svg > title").textContent()];
      if (title !== drawn) return `${title} instead of ${drawn}`;
    });
    await check("pointing at a bubble names its user", async () => {
      await page.locator("#pair-waits .bubbles circle:visible").last().dispatchEvent("pointerover");
      const text = await page.locator("#pair-waits .readout").textContent();
      if (!users.some((name) => text.startsWith(`${name}: `))) return JSON.stringify(text);
    });
  }
  await check("another capacity changes the table and the figures over time", async () => {
    if (capacities < 2) return;
    const visible = () => page.locator(".capacity:visible").evaluateAll((blocks) => blocks.map((block) => block.dataset.capacity).join());
    await page.selectOption("#choose-capacity", "0");
    const [table, shown] = [await tableText(page), await visible()];
    await page.selectOption("#choose-capacity", "1");
    if (shown !== "0" || (await visible()) !== "1") return "the wrong figures are shown";
    if ((await tableText(page)) === table) return "the table does not change";
  });
}

if ((await page.locator("#account-table").count()) > 0) {
  const rows = (of) => of.locator("#account-table tbody").evaluate((body) => [...body.rows].map((row) => [
    Number(row.cells[0].style.getPropertyValue("--depth")), row.classList.contains("account"), ...[...row.cells].map((cell) => cell.textContent.trim())]));
  const flat = (of) => of.map((row) => row.join("|"));
  /** Returns each row with the names of its ancestors, which sorting does not change. */
  const paths = (of) => {
    const above = [];
    return of.map(([depth, , name]) => (above.splice(depth), above.push(name), above.join("/")));
  };
  await page.click("#open-all");
  const all = await rows(page);
  await check("the tree of accounts is the same with and without script", async () => {
    const plain = await open(index, { javaScriptEnabled: false });
    await page.reload();
    await page.click("#open-all");
    const [written, given] = [flat(await rows(page)), flat(await rows(plain.page))];
    if (await plain.page.locator("#open-all").isVisible()) return "a control without function is visible";
    await plain.page.close();
    const row = written.findIndex((line, at) => line !== given[at]);
    if (row >= 0 || written.length !== given.length) return `row ${row}: ${written[row]} instead of ${given[row]}`;
  });
  await check("an account opens and closes, by click and by key", async () => {
    await page.click("#close-all");
    const closed = await rows(page);
    if (closed.some(([depth]) => depth > 1) || closed.length >= all.length) return `closed, ${closed.length} rows are left`;
    const at = closed.findIndex(([depth, account, name]) => depth === 1 && account && all.some((row, i) => row[2] === name && all[i + 1]?.[0] === 2));
    if (at < 0) return "no account has children";
    const twist = page.locator("#account-table tbody tr").nth(at).locator(".twist");
    await twist.click();
    const open = await rows(page);
    if (open.length <= closed.length || !open.slice(at + 1, at + 2).every(([depth]) => depth === 2)) return "the click opens nothing";
    if ((await twist.getAttribute("aria-expanded")) !== "true") return "aria-expanded is wrong";
    await page.keyboard.press("Enter");
    if (flat(await rows(page)).join() !== flat(closed).join()) return "the key does not close it";
    await page.click("#open-all");
    if (flat(await rows(page)).length !== all.length) return "not all open again";
  });
  await check("every column sorts accounts and users within their account", async () => {
    const wanted = paths(all).sort().join("\n");
    for (const head of await page.locator("#account-table th[data-column] button").all()) {
      for (const _ of [1, 2]) {
        await head.click();
        const now = await rows(page);
        if (paths(now).sort().join("\n") !== wanted) return `${await head.textContent()} moves rows to other accounts`;
      }
    }
    await page.click('#account-table th[data-column="tasks"] button');
    const now = await rows(page);
    const above = [];
    for (const [depth, account, name, , , tasks] of now) {
      above.splice(depth + 1);
      const [before, number] = [above[depth], Number(tasks.replace(/\D/g, ""))];
      if (before && before.account === account && before.number < number) return `${name} is not by falling number of tasks`;
      if (before && !before.account && account) return `${name} comes after a user`;
      above[depth] = { account, number };
    }
  });
  await check("the table of accounts shows the chosen run", async () => {
    if (policies < 2) return;
    await page.selectOption("#choose-policy", "0");
    const before = await rows(page);
    await page.selectOption("#choose-policy", "1");
    const after = await rows(page);
    if (flat(before).join() === flat(after).join()) return "the table does not change";
    const same = (of) => of.map(([, , name, entitled, , tasks]) => [name, entitled, tasks].join("|")).sort().join("\n");
    if (same(before) !== same(after)) return "names, entitlements or tasks change";
  });
}

await check("the tables of runs have one row per run", async () => {
  const runs = await page.locator("#fairness tbody tr").count();
  for (const id of ["#normalized", "#waste"]) {
    const count = await page.locator(`${id} tbody tr`).count();
    if (count !== runs) return `${id} has ${count} rows instead of ${runs}`;
    const empty = await page.locator(`${id} tbody td`).evaluateAll((cells) => cells.filter((cell) => !cell.textContent.trim()).length);
    if (empty) return `${empty} empty cells in ${id}`;
  }
});

await check("dark mode has a dark background and light text", async () => {
  const dark = await open(index, { colorScheme: "dark" });
  const light = await background(page);
  const [paper, ink] = [await background(dark.page), await dark.page.evaluate(() => getComputedStyle(document.body).color)];
  const brightness = (color) => color.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
  await dark.page.close();
  if (brightness(light) < 600 || brightness(paper) > 150 || brightness(ink) < 600) return `${light}, ${paper}, ${ink}`;
});

await check("a phone needs no horizontal scrolling", async () => {
  for (const width of [390, 320]) {
    const phone = await open(index, { viewport: { width, height: 800 }, isMobile: true, hasTouch: true });
    const over = await overflow(phone.page);
    await phone.page.close();
    if (over > 0) return `${over} pixels too wide at ${width}`;
  }
});

await check("print shows all sections completely", async () => {
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  const hidden = await page.locator("section, .capacity, details > *, .verdict").evaluateAll((parts) =>
    parts.filter((part) => part.getBoundingClientRect().height === 0).map((part) => part.id || part.className));
  const cut = await page.locator(".scroll").evaluateAll((boxes) => boxes.filter((box) => box.scrollHeight > box.clientHeight + 2).length);
  const controls = await page.locator("#choice, .filters").evaluateAll((parts) => parts.filter((part) => part.getBoundingClientRect().height > 0).length);
  await page.emulateMedia({ media: "screen" });
  if (hidden.length) return `hidden: ${hidden.join(", ")}`;
  if (cut) return `${cut} boxes are cut`;
  if (controls) return "controls are printed";
});

await check("all figures of the page have a size and a title", async () => {
  const wrong = await page.locator("main svg").evaluateAll((figures) =>
    figures.filter((figure) => !figure.querySelector("title")?.textContent || figure.viewBox.baseVal.width <= 0).length);
  if (wrong) return `${wrong} do not`;
});

const drawings = readdirSync(join(folder, "figures"), { withFileTypes: true }).filter((file) => file.name.endsWith(".svg")).map((file) => file.name);
await check(`the ${drawings.length} figures in files are well-formed, render, and log no errors`, async () => {
  const { page: drawing, problems: logged } = await open("about:blank");
  logged.length = 0;
  for (const name of drawings) {
    await drawing.goto(address("figures", name));
    const found = await drawing.evaluate(() => {
      const root = document.documentElement;
      const box = root.getBoundingClientRect();
      const labels = [...root.querySelectorAll("text")];
      // The view box contains all labels: none is cut off.
      const out = labels.filter((label) => {
        const place = label.getBoundingClientRect();
        return place.left < box.left - 1 || place.right > box.right + 1 || place.top < box.top - 1 || place.bottom > box.bottom + 1;
      });
      return { root: root.nodeName, error: !!document.querySelector("parsererror"), width: box.width, height: box.height, labels: labels.length, out: out.map((label) => label.textContent) };
    });
    if (found.root !== "svg" || found.error) return `${name} is not well-formed`;
    if (!(found.width > 0 && found.height > 0 && found.labels > 2)) return `${name}: ${JSON.stringify(found)}`;
    if (found.out.length) return `${name}: cut off: ${found.out.join(", ")}`;
  }
  const errors = logged.filter((text) => !text.startsWith("request: file:"));
  await drawing.close();
  if (errors.length) return errors[0];
});

await check("no console errors and no requests", async () => problems[0]);
await browser.close();
finish();
