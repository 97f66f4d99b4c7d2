/**
 * Memory by itself in opencode, for its version 1. It runs recollect_hooks.py, which stands beside it, as other
 * clients do: when a session begins, at each prompt, and when the agent has answered. `recollect_hooks.py` says what is done.
 */

import { spawn } from "node:child_process"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const SCRIPT = join(dirname(fileURLToPath(import.meta.url)), "recollect_hooks.py")
const PYTHON = process.platform === "win32" ? "python" : "python3"
const MAX_MS = 10_000

const start = (stdout, more) => {
  const child = spawn(PYTHON, ["-I", SCRIPT, "opencode"], { stdio: ["pipe", stdout, "ignore"], ...more })
  child.on("error", () => {})
  child.stdin.on("error", () => {})
  return child
}

/** Tell an event of which no answer is read. It is kept even if opencode ends meanwhile, as `opencode run` does. */
function tell(event) {
  const child = start("ignore", { detached: true })
  child.stdin.end(JSON.stringify(event))
  child.unref()
}

/** What the script answers to an event; {} if it cannot be run, or answers nothing. */
function ask(event) {
  return new Promise((resolve) => {
    const child = start("pipe", { timeout: MAX_MS })
    let said = ""
    child.on("error", () => resolve({}))
    child.stdout.on("data", (part) => (said += part))
    child.on("close", () => {
      try {
        resolve(JSON.parse(said))
      } catch {
        resolve({})
      }
    })
    child.stdin.end(JSON.stringify(event))
  })
}

/** What is recalled for the prompts of a folder's sessions, and what was said in them. */
class Sessions {
  constructor(folder) {
    this.folder = folder
    this.prompts = new Map()
    this.answers = new Map()
  }

  /** The context for a prompt: at the first of a session, what it begins with, too. */
  async recall(session, prompt) {
    const begins = !this.prompts.has(session)
    this.prompts.set(session, prompt)
    this.answers.delete(session)
    const events = [...(begins ? ["SessionStart"] : []), "UserPromptSubmit"]
    const told = []
    for (const name of events) told.push(await ask(this.event(name, session, { prompt })))
    return told.map((answer) => answer.hookSpecificOutput?.additionalContext ?? "").filter(Boolean).join("\n")
  }

  /** An answer of the agent; the last before the session is idle counts. */
  hear(session, text) {
    if (text.trim()) this.answers.set(session, text)
  }

  /** Keep the last prompt and its answer. */
  keep(session) {
    const answer = this.answers.get(session)
    if (answer === undefined) return
    this.answers.delete(session)
    tell(this.event("Stop", session, { prompt: this.prompts.get(session), last_assistant_message: answer }))
  }

  event(name, session, more) {
    return { hook_event_name: name, session_id: session, cwd: this.folder, ...more }
  }
}

const textOf = (parts) =>
  parts
    .filter((part) => part.type === "text" && !part.synthetic)
    .map((part) => part.text)
    .join("\n")

/** Version 1: hooks of one object. */
async function server({ directory }) {
  const sessions = new Sessions(directory)
  return {
    "chat.message": async (input, output) => {
      const context = await sessions.recall(input.sessionID, textOf(output.parts))
      if (!context) return
      const id = `prt_recollect${Date.now().toString(36)}`
      output.parts.push({ id, sessionID: input.sessionID, messageID: output.message.id, type: "text", text: context, synthetic: true })
    },
    "experimental.text.complete": async (input, output) => sessions.hear(input.sessionID, output.text),
    event: async ({ event }) => {
      if (event.type === "session.idle") sessions.keep(event.properties.sessionID)
    },
  }
}

export default { id: "recollect", server }
