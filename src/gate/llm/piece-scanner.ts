/**
 * Where streamed answers are searched for pieces that are like those before: in the memory of one WebAssembly (`assembly/pieces.ts`), into
 * which their bytes are copied. What is in it is valid until the next bytes come, of this answer or another.
 */

import { PIECES_WASM } from './generated/pieces-wasm.js';
import { MAX_TEMPLATES_BYTES, type PieceTemplates } from './piece-template.js';
import { webAssembly } from '../../base/platform/web-assembly.js';

/** The most bytes that are searched at once. */
export const MAX_SCANNED_BYTES = 128 * 1024;

/** What is loaded past the end, at most. */
const PADDING = 64;
const PAGE_BYTES = 64 * 1024;

/** See `assembly/pieces.ts`. */
interface Kernel {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  readonly output: { readonly value: number };
  heapBase(): number;
  scan(templates: number, count: number, at: number, to: number): number;
}

export class PieceScanner {
  /** The bytes that are searched. */
  readonly bytes: Buffer;
  readonly #kernel: Kernel;
  readonly #templates: Buffer;
  /** Whose templates are in the memory. */
  #owner: Uint8Array | undefined;

  constructor(kernel: Kernel) {
    const { memory } = kernel;
    const base = kernel.heapBase();
    const needed = base + MAX_TEMPLATES_BYTES + MAX_SCANNED_BYTES + PADDING;
    memory.grow(Math.max(0, Math.ceil((needed - memory.buffer.byteLength) / PAGE_BYTES)));
    this.#kernel = kernel;
    this.#templates = Buffer.from(memory.buffer, base, MAX_TEMPLATES_BYTES);
    this.bytes = Buffer.from(memory.buffer, base + MAX_TEMPLATES_BYTES, MAX_SCANNED_BYTES);
  }

  /**
   * Searches for pieces that follow one another from `at` on.
   * @returns Where they end, `at` itself where there is none, and how many bytes of text they add
   */
  scan(
    { encoded, count }: PieceTemplates,
    at: number,
    to: number,
  ): { readonly end: number; readonly output: number } {
    if (this.#owner !== encoded) {
      this.#templates.set(encoded);
      this.#owner = encoded;
    }
    const { byteOffset } = this.bytes;
    const end = this.#kernel.scan(this.#templates.byteOffset, count, byteOffset + at, byteOffset + to);
    return { end: end - byteOffset, output: this.#kernel.output.value };
  }
}

/** `null` where there is none. */
let scanner: PieceScanner | undefined | null;

/** The one scanner; undefined where the host lacks WebAssembly with SIMD, or forbids it. */
export function pieceScanner(): PieceScanner | undefined {
  scanner ??= tryMakeScanner() ?? null;
  return scanner ?? undefined;
}

function tryMakeScanner(): PieceScanner | undefined {
  const engine = webAssembly();
  if (engine === undefined) return undefined;
  try {
    const module = new engine.Module(Buffer.from(PIECES_WASM, 'base64'));
    return new PieceScanner(new engine.Instance(module, {}).exports as Kernel);
  } catch {
    return undefined;
  }
}
