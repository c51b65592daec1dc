/** A file to append to and to read anywhere. Calls are synchronous. */
export interface ScratchFile {
  /** Appends bytes. @throws NorthrootError of the file, such as `DISK_FULL` */
  append(bytes: Uint8Array): void;
  /** Fills `target` from `position`. @throws NorthrootError of the file; `IO_FAILED` where there is less */
  read(target: Uint8Array, position: number): void;
  close(): void;
}
