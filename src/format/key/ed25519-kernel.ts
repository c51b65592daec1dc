/**
 * The arithmetic of Ed25519 in WebAssembly (`assembly/ed25519.ts`), for what is computed many times: tables of keys that recur
 * (`fast/signature/ed25519-tables.ts`), and whether keys are torsion-free.
 */

import { tryDecodeBase64 } from '../../base/bytes/encoding.js';
import { ED25519_WASM } from './generated/ed25519-wasm.js';

/** What `assembly/ed25519.ts` exports. */
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

/** The part of the WebAssembly API that is used, which ECMAScript's types do not have. */
interface Engine {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
}

let compiled: { readonly engine: Engine; readonly module: object } | undefined;

/**
 * Another instance, with a memory of its own; `undefined` where there is no WebAssembly with SIMD, or where the host refuses it (a
 * content security policy).
 */
export function tryMakeKernel(): Kernel | undefined {
  const { WebAssembly: engine } = globalThis as { readonly WebAssembly?: Engine };
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
