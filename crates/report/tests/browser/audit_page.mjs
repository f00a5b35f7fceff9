// Opens an audit page and checks it: npm ci, then node audit_page.mjs PAGE.html, for example the page that
// `evenhand audit --history two-weeks.sacct --out meeting` writes. The browser is /usr/bin/chromium, or the one
// that CHROMIUM names. Prints one line per check and a summary; exits with status 0 if all checks passed.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { check, cutTexts, launchBrowser, finish, seriousFindings } from "./run_checks.mjs";

const file = process.argv[2];
if (!file) {
  console.error("usage: node audit_page.mjs PAGE.html");
  process.exit(2);
}
const address = pathToFileURL(resolve(file)).href;

const browser = await launchBrowser();
for (const [what, options] of [
  ["wide", { viewport: { width: 1200, height: 1000 } }],
  ["phone", { viewport: { width: 390, height: 800 } }],
  ["dark", { viewport: { width: 1200, height: 1000 }, colorScheme: "dark" }],
]) {
  const page = await browser.newPage(options);
  const problems = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => {
    if (request.url() !== address && !request.url().startsWith("data:")) problems.push(`request: ${request.url()}`);
  });
  await page.goto(address);
  await check(`${what}: the page has a summary`, async () => ((await page.locator("#summary li").count()) ? null : "no sentence"));
  await check(`${what}: axe-core has no serious finding`, () => seriousFindings(page));
  await check(`${what}: no element is wider than the page`, () =>
    page.evaluate(() => {
      const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
      return wide > 0 ? `${wide} pixels too wide` : null;
    }));
  await check(`${what}: the weeks of each resource open`, async () => {
    for (const details of await page.locator("details.resource").all()) {
      if ((await details.getAttribute("open")) === null) await details.locator("summary").click();
      if (!(await details.locator("svg").first().isVisible())) return "a figure is not visible";
    }
  });
  await check(`${what}: every figure has a title, and no text is cut`, () => cutTexts(page));
  await check(`${what}: text in the matrix is readable`, () =>
    page.evaluate(() => {
      // Relative luminance and contrast of WCAG 2.
      const channel = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
      const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      const light = (colour) => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((c) => channel(c / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      for (const cell of document.querySelectorAll(".heat td")) {
        const [ink, paper] = [light(getComputedStyle(cell).color), light(getComputedStyle(cell).backgroundColor)];
        const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
        // A cell without colour has the background of the page.
        if (cell.style.background && contrast < 4.5) return `contrast ${contrast.toFixed(2)} in ${cell.textContent}`;
      }
      return null;
    }));
  await check(`${what}: no console errors and no requests`, () => problems.join("; ") || null);
  await page.close();
}
await browser.close();
finish();
