/** A file of the built package: found alike from `src/`, from `dist/` and from the bundled command line, two folders down each. */
export function fromDist(path: string): URL {
  return new URL(`../../dist/${path}`, import.meta.url);
}
