/** Bytes that are written one after the other and read anywhere. Calls wait for the disk. */
export interface ScratchFile {
  /** Adds bytes at the end. @throws NorthrootError as files give it, such as `DISK_FULL`. */
  append(bytes: Uint8Array): void;
  /** Fills `target` with what stands at `position`. @throws NorthrootError as files give it; `IO_FAILED` where less is there. */
  read(target: Uint8Array, position: number): void;
  /** Nothing can be read or written any more. */
  close(): void;
}
