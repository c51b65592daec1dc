/** A file of the built package. `src/base/`, `dist/base/` and the bundled command line are each two folders below its root. */
export function fromDist(path: string): URL {
  return new URL(`../../dist/${path}`, import.meta.url);
}
