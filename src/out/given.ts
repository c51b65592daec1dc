/** A member of an object: left out where it has no value. */
export function given<K extends string, T>(name: K, value: T | undefined): { [P in K]?: T } {
  return (value === undefined ? {} : { [name]: value }) as { [P in K]?: T };
}
