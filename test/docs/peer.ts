/** Tools of others that the documents are held against, where they are installed. */

/** @returns The module, or undefined, told of once, where it is not installed */
export async function peerModule<T>(name: string): Promise<T | undefined> {
  try {
    const found = (await import(name)) as { readonly default?: T };
    return found.default ?? (found as T);
  } catch {
    console.warn(`notice: ${name} is not installed; the tests with it are skipped`);
    return undefined;
  }
}
