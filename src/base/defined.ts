/** Members that are `undefined` are left out: where a type, or the wire, has no place for `undefined`. */

/** `T` without members that are `undefined`. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** The members that are not `undefined`, in their order. */
export function defined<T extends object>(members: T): Defined<T> {
  const left: Record<string, unknown> = {};
  for (const name of Object.keys(members)) {
    const value = (members as Readonly<Record<string, unknown>>)[name];
    if (value !== undefined) left[name] = value;
  }
  return left as Defined<T>;
}
