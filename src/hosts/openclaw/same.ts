/** Whether two foreign values say the same, whatever the order of their members and the spelling of their numbers. */

import { equalNumberTexts } from '../../base/json/decimal.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';

/** Numbers are compared exactly, as no digest of a canonical form could do for those that no double holds. */
export function isSame(a: SourceValue | undefined, b: SourceValue | undefined): boolean {
  if (a instanceof SourceNumber) return b instanceof SourceNumber && equalNumberTexts(a.text, b.text);
  if (a instanceof SourceObject) {
    if (!(b instanceof SourceObject)) return false;
    const names = a.keys();
    return (
      names.length === b.keys().length &&
      names.every((name) => b.has(name) && isSame(a.get(name), b.get(name)))
    );
  }
  if (Array.isArray(a)) {
    const [left, right] = [a as readonly SourceValue[], b as readonly SourceValue[]];
    return (
      Array.isArray(b) &&
      left.length === right.length &&
      left.every((element, index) => isSame(element, right[index]))
    );
  }
  return a === b;
}

/** The members of `over` put over those of `under`, as the host does with parameters that a hook returns. */
export function mergedParams(under: SourceValue | undefined, over: SourceObject): SourceValue {
  if (!(under instanceof SourceObject)) return over;
  return new SourceObject(new Map([...under.entries(), ...over.entries()]));
}
