/** Pages in a headless Chromium, driven by Playwright, which watches for what a page must never do. */

import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium, type Browser, type Page } from 'playwright-core';
import type { Report } from '../../src/rules/report/report.js';
import type { BundleResult } from '../../src/format/schema/generated/types.js';
import { CHROMIUM } from '../platform/chromium.js';

/** What `northroot.verify` in the page gives. */
export interface Outcome {
  readonly verdict: string;
  readonly exit_status: number;
  readonly report?: Report;
  readonly bundle?: BundleResult;
  readonly error?: string;
}

/** A file for the page: its name, and its bytes. */
export type NamedBytes = readonly [name: string, bytes: Uint8Array];

/** What the page says of itself when it is done. */
export interface Shown {
  readonly verdict?: string;
  readonly exitStatus?: string;
  readonly agreement?: string;
  readonly scope?: string;
}

/** A page that is open, and what it tried to load or was refused. */
export class OpenPage {
  readonly page: Page;
  /** Addresses asked for, but for the page itself and what it made of its own bytes. */
  readonly requests: string[] = [];
  /** What the page wrote to the console as an error, refusals of its policy among them, and what it threw. */
  readonly errors: string[] = [];
  readonly #giveBack: () => Promise<void>;

  /** @param giveBack - What becomes of the page when this is closed */
  constructor(page: Page, giveBack: () => Promise<void>) {
    this.page = page;
    this.#giveBack = giveBack;
    page.on('request', (request) => {
      if (!/^(?:file|blob):/.test(request.url())) this.requests.push(request.url());
    });
    page.on('console', (message) => {
      if (message.type() === 'error') this.errors.push(message.text());
    });
    page.on('pageerror', (error) => this.errors.push(error.message));
  }

  async done(): Promise<Shown> {
    for (;;) {
      await this.page.waitForSelector('html[data-state=done]', { state: 'attached' });
      // In one step, as something given meanwhile begins a new verification.
      const shown = await this.page.evaluate<Shown | false>(
        "document.documentElement.dataset.state === 'done' && { ...document.getElementById('main').dataset }",
      );
      if (shown !== false) return shown;
    }
  }

  close(): Promise<void> {
    this.page.removeAllListeners();
    return this.#giveBack();
  }

  text(selector = '#app'): Promise<string> {
    return this.page.innerText(selector);
  }

  /** As somebody who drives the page by a program. */
  verify(
    ledger: readonly NamedBytes[],
    {
      predecessor,
      now,
    }: { readonly predecessor?: NamedBytes | undefined; readonly now?: string | undefined } = {},
  ): Promise<Outcome> {
    const file = ([name, bytes]: NamedBytes): string =>
      `new File([Uint8Array.from(atob('${Buffer.from(bytes).toString('base64')}'), (c) => c.charCodeAt(0))], ${JSON.stringify(name)})`;
    const given = [
      `ledger: [${ledger.map(file).join()}]`,
      ...(predecessor === undefined ? [] : [`predecessor: ${file(predecessor)}`]),
      ...(now === undefined ? [] : [`now: ${JSON.stringify(now)}`]),
    ];
    return this.page.evaluate(`northroot.verify({ ${given.join()} })`);
  }

  /** As somebody who chooses files. */
  async choose(...files: readonly NamedBytes[]): Promise<Shown> {
    await this.page.evaluate("document.documentElement.dataset.state = 'asked'");
    await this.page.setInputFiles(
      '#files',
      files.map(([name, bytes]) => ({
        name,
        mimeType: 'application/octet-stream',
        buffer: Buffer.from(bytes),
      })),
    );
    return this.done();
  }
}

/**
 * One browser, and a folder for the pages that are opened in it. What was closed is navigated to the next page, as a new process of the
 * browser takes longer than most pages.
 */
export class TestBrowser {
  readonly #idle = new Map<string, Page[]>();
  readonly #browser: Browser;
  readonly folder = mkdtempSync(join(tmpdir(), 'northroot-page-'));
  #count = 0;

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  static async launch(): Promise<TestBrowser> {
    const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-dev-shm-usage'];
    return new TestBrowser(await chromium.launch({ executablePath: CHROMIUM, args }));
  }

  /** Opens a page by its address on disk, as a double click does. */
  async open(
    html: Uint8Array | string,
    options: {
      readonly colorScheme?: 'light' | 'dark';
      readonly width?: number;
      readonly hash?: string;
      /** Run before the page's own script. */
      readonly first?: string;
    } = {},
  ): Promise<OpenPage> {
    const { colorScheme = 'light', width = 1_280, hash = '', first } = options;
    const idle = this.#idleFor(`${colorScheme} ${width}`);
    const page =
      (first === undefined ? idle.pop() : undefined) ??
      (await this.#browser.newPage({
        colorScheme,
        reducedMotion: 'reduce',
        viewport: { width, height: 900 },
      }));
    const open = new OpenPage(page, async () => {
      if (first === undefined) idle.push(page);
      else await page.close();
    });
    if (first !== undefined) await page.addInitScript(first);
    const path = join(this.folder, `${(this.#count += 1)}.html`);
    writeFileSync(path, html);
    await page.goto(`${pathToFileURL(path).href}${hash}`);
    return open;
  }

  #idleFor(kind: string): Page[] {
    const idle = this.#idle.get(kind) ?? [];
    this.#idle.set(kind, idle);
    return idle;
  }

  async close(): Promise<void> {
    await this.#browser.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
