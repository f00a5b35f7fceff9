// Shared by the browser tests of all pages: starts the browser and prints one line per check.
import { chromium } from "playwright-core";

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

/** Prints the summary and exits with status 0 if all checks passed, else 1. */
export function finish() {
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  process.exit(counts.failed ? 1 : 0);
}
