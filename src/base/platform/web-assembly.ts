/** The part of the WebAssembly API that is used: ECMAScript's types lack it. */
export interface WebAssemblyEngine {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
}

/** Undefined where the host lacks it. */
export function webAssembly(): WebAssemblyEngine | undefined {
  return (globalThis as { readonly WebAssembly?: WebAssemblyEngine }).WebAssembly;
}
