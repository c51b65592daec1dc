/** Colours of a terminal. */

/** Wraps text in a terminal style, or returns it unchanged. */
export type Paint = (style: 'bold' | 'dim' | 'green' | 'red' | 'yellow', text: string) => string;

export const plainPaint: Paint = (_style, text) => text;
