// Removes what an earlier build left, so that no file is published whose source is gone.
import { rm } from "node:fs/promises";

await rm(new URL("../dist", import.meta.url), { recursive: true, force: true });
