/** The length for JSON Schema's `minLength` and `maxLength`, in RFC 8259 characters: a surrogate pair is one. */
export function textLength(text: string): number {
  let count = text.length;
  for (let i = 1; i < text.length; i++)
    if ((text.charCodeAt(i) & 0xfc00) === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800) count--;
  return count;
}
