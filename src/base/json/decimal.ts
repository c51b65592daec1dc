/** Number texts as exact decimals, in time linear in the text, also for `1e999999999`. */

/** ±`digits` × 10^`exponent`. `digits` has no zeros at either end, so the form is unique; zero has no digits. */
interface Decimal {
  readonly negative: boolean;
  readonly digits: string;
  readonly exponent: number;
}

/** Clamps exponents: beyond every accepted value, and still exact as a double after adding a count of digits. */
const MAX_EXPONENT = 1e15;

/** The value of a number text of JSON (RFC 8259 §6). */
export function parseDecimal(text: string): Decimal {
  const negative = text.startsWith('-');
  const mark = text.search(/[eE]/);
  const [whole = '', fraction = ''] = text.slice(negative ? 1 : 0, mark < 0 ? undefined : mark).split('.');
  const all = whole + fraction;
  let from = 0;
  let to = all.length;
  while (from < to && all[from] === '0') from++;
  while (from < to && all[to - 1] === '0') to--;
  const power = mark < 0 ? 0 : Math.max(-MAX_EXPONENT, Math.min(MAX_EXPONENT, Number(text.slice(mark + 1))));
  const exponent = from === to ? 0 : power - fraction.length + (all.length - to);
  return { negative, digits: all.slice(from, to), exponent };
}

/** Whether two number texts have the same value; 0 and -0 differ. */
export function equalNumberTexts(a: string, b: string): boolean {
  if (a === b) return true;
  const x = parseDecimal(a);
  const y = parseDecimal(b);
  return x.negative === y.negative && x.exponent === y.exponent && x.digits === y.digits;
}
