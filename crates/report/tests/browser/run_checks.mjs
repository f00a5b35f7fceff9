// What tests of pages in a browser share: the browser, and a line a check.
import { chromium } from "playwright-core";

/** How many checks passed and failed so far. */
export const counts = { passed: 0, failed: 0 };

/** One check: `test` throws or returns what is wrong (nothing if all is well). */
export async function check(name, test) {
  let wrong;
  try {
    wrong = await test();
  } catch (error) {
    wrong = error.message.split("\n")[0];
  }
  counts[wrong ? "failed" : "passed"] += 1;
  console.log(wrong ? `FAILED  ${name}: ${wrong}` : `ok      ${name}`);
}

/** The browser, /usr/bin/chromium or what CHROMIUM names, without a word to anybody outside. */
export function launched() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** The last line, and the exit status. */
export function told() {
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  process.exit(counts.failed ? 1 : 0);
}
