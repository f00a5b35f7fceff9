// Shared by the browser tests of all pages: starts the browser and prints one line per check.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Number of checks that passed and failed so far. */
export const counts = { passed: 0, failed: 0 };

/** Runs one check: `test` throws or returns a description of the failure (nothing on success). */
export async function check(name, test) {
  let failure;
  try {
    failure = await test();
  } catch (error) {
    failure = error.message.split("\n")[0];
  }
  counts[failure ? "failed" : "passed"] += 1;
  console.log(failure ? `FAILED  ${name}: ${failure}` : `ok      ${name}`);
}

/** Starts the browser (/usr/bin/chromium, or the one that CHROMIUM names) without background network traffic. */
export function launchBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** Returns the serious findings of axe-core on a page: names, contrast, keyboard and order of what a screen reader reads. */
export async function seriousFindings(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const serious = violations.filter((found) => ["serious", "critical"].includes(found.impact));
  const place = (found) => found.nodes.slice(0, 3).map((node) => node.target.join(" ")).join(", ");
  return serious.map((found) => `${found.id} (${found.nodes.length}): ${place(found)}`).join("; ") || null;
}

/** Returns a figure without a title above it, a text that a figure cuts, or a label of a bar that is cut; null if there is none. */
export function cutTexts(page) {
  return page.evaluate(() => {
    for (const figure of document.querySelectorAll("figure")) {
      if (!figure.querySelector(".figure-title, h3, figcaption b")?.textContent.trim()) return "a figure has no title";
    }
    for (const svg of document.querySelectorAll("main svg, body > svg")) {
      if (!svg.getClientRects().length) continue;
      const { x, y, width, height } = svg.viewBox.baseVal;
      for (const text of svg.querySelectorAll("text")) {
        const box = text.getBBox();
        const outside = box.x < x - 1 || box.y < y - 1 || box.x + box.width > x + width + 1 || box.y + box.height > y + height + 1;
        if (box.width && outside) return `${JSON.stringify(text.textContent)} is cut in ${svg.querySelector("title").textContent}`;
      }
    }
    for (const name of document.querySelectorAll(".share-names span")) {
      if (name.scrollWidth > name.clientWidth + 1) return `${JSON.stringify(name.textContent)} is cut`;
    }
    return null;
  });
}

/** Prints the summary and exits with status 0 if all checks passed, else 1. */
export function finish() {
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  process.exit(counts.failed ? 1 : 0);
}
