/**
 * The arithmetic of Ed25519 in WebAssembly (`assembly/ed25519.ts`), for tables of recurring keys (`fast/signature/ed25519-tables.ts`)
 * and for checking that keys are torsion-free.
 */

import { tryDecodeBase64 } from '../../base/bytes/encoding.js';
import { ED25519_WASM } from './generated/ed25519-wasm.js';
import { webAssembly, type WebAssemblyEngine } from '../../base/platform/web-assembly.js';

/** The exports of `assembly/ed25519.ts`. */
export interface Kernel {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  readonly input: Address;
  readonly hash: Address;
  readonly slots: Address;
  readonly verdicts: Address;
  readonly basePoint: Address;
  initialize(): void;
  heapBase(): number;
  isTorsionFree(bytes: number): number;
  buildTable(
    table: number,
    point: number,
    isNegative: number,
    width: number,
    windows: number,
    distance: number,
    work: number,
    workSize: number,
  ): number;
  challenge(index: number, length: number, table: number): void;
  takeHash(index: number, table: number): void;
  verify(
    count: number,
    width: number,
    windows: number,
    levels: number,
    baseTable: number,
    baseWidth: number,
    baseWindows: number,
  ): void;
}

interface Address {
  readonly value: number;
}

let compiled: { readonly engine: WebAssemblyEngine; readonly module: object } | undefined;

/** A new instance with its own memory; `undefined` if the host lacks WebAssembly with SIMD or refuses it (a content security policy). */
export function tryMakeKernel(): Kernel | undefined {
  const engine = webAssembly();
  const bytes = tryDecodeBase64(ED25519_WASM);
  if (engine === undefined || bytes === undefined) return undefined;
  try {
    if (compiled?.engine !== engine) compiled = { engine, module: new engine.Module(bytes) };
    const kernel = new engine.Instance(compiled.module, {}).exports as Kernel;
    kernel.initialize();
    return kernel;
  } catch {
    return undefined;
  }
}
