// Visits the pages of `evenhand serve` as a reader does and checks each: npm ci, then node served_pages.mjs ADDRESS USER JOB, where the
// server trusts the header X-User and JOB waits. The browser is /usr/bin/chromium, or the one that CHROMIUM names. Prints
// one line per check and a summary; exits with status 0 if all checks passed.
import { check, launchBrowser, finish, seriousFindings } from "./run_checks.mjs";

const [site, user, job] = process.argv.slice(2);
if (!job) {
  console.error("usage: node served_pages.mjs ADDRESS USER JOB");
  process.exit(2);
}
const pages = [
  ["the overview", ""],
  ["the queue", "queue"],
  ["a job that waits", `jobs/${job}`],
  ["a user", `users/${user}`],
  ["the week", "week"],
  ["a page that does not exist", "no/such/page"],
];

const browser = await launchBrowser();
for (const [what, options] of [
  ["wide", { viewport: { width: 1280, height: 1000 } }],
  ["phone", { viewport: { width: 390, height: 800 } }],
  ["dark", { viewport: { width: 1280, height: 1000 }, colorScheme: "dark" }],
  ["without JavaScript", { viewport: { width: 1280, height: 1000 }, javaScriptEnabled: false }],
]) {
  const context = await browser.newContext({ ...options, extraHTTPHeaders: { "X-User": user } });
  const page = await context.newPage();
  let problems = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(site) && !request.url().startsWith("data:")) problems.push(`request: ${request.url()}`);
  });
  for (const [name, path] of pages) {
    problems = [];
    const answer = await page.goto(site + path);
    const exists = path !== "no/such/page";
    await check(`${what}: ${name} has its status`, () => (answer.status() === (exists ? 200 : 404) ? null : `status ${answer.status()}`));
    await check(`${what}: ${name} has a heading and its style`, async () => {
      if ((await page.locator("h1").count()) !== 1) return "no single heading";
      // Without the style a list has bullets.
      const style = await page.locator("nav ul").evaluate((list) => getComputedStyle(list).listStyleType);
      return style === "none" ? null : `the list of pages has the marker ${style}`;
    });
    await check(`${what}: ${name} asks nobody else and has no error`, () => {
      // The browser reports the status 404 of the page itself.
      const others = problems.filter((problem) => exists || !problem.includes("404"));
      return others.length ? others.join("; ") : null;
    });
    if (what === "without JavaScript") continue;
    await check(`${what}: axe-core has no serious finding in ${name}`, () => seriousFindings(page));
    await check(`${what}: no element of ${name} is wider than the page`, () =>
      page.evaluate(() => {
        const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
        return wide > 0 ? `${wide} pixels too wide` : null;
      }));
  }
  await page.goto(`${site}queue`);
  await check(`${what}: the keyboard goes from the queue to a job`, async () => {
    for (let presses = 0; presses < 60; presses += 1) {
      await page.keyboard.press("Tab");
      const place = await page.locator(":focus").getAttribute("href", { timeout: 1000 }).catch(() => null);
      if (place?.includes(`jobs/${job}`)) {
        await page.keyboard.press("Enter");
        await page.waitForURL(`**/jobs/${job}`);
        return null;
      }
    }
    return "no link to the job took the focus";
  });
  await check(`${what}: from there a link leads to the overview`, async () => {
    await page.locator("nav a").first().click();
    await page.waitForURL(site);
  });
  await context.close();
}
await browser.close();
finish();
