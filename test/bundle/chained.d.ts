export function makeChained(): Buffer[];
