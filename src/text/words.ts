/** How the texts of reports write rows and numbers. */

/** A labelled row. */
export function row(name: string, text: string): string {
  return `  ${name.padEnd(11)} ${text}`;
}

/** `1 record`, `2,000 records`. */
export function count(n: number, noun: string): string {
  return `${grouped(n)} ${noun}${n === 1 ? '' : 's'}`;
}

/** With thousands separators, the same in every locale. */
export function grouped(n: number): string {
  return String(n).replace(/\B(?=(?:\d{3})+$)/g, ',');
}
