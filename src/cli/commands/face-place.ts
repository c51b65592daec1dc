/** Where `northroot serve` has a face answer. */
export interface FacePlace {
  readonly ledger: string;
  readonly ledgers: number;
  readonly listen: { readonly host: string; readonly port: number } | undefined;
  /** Whether it keeps parameters beside the ledger. */
  readonly attach: boolean;
}
