// The tap of session-exporter: shows a running exporter what happens in this session, and nothing else. It adds no
// tool and no hook, writes nothing into the session, never answers for anybody, and is silent when no exporter runs.
// Made by `exporter tap install`; `exporter tap uninstall` removes it.
import { readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { homedir, userInfo } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { joinSession } from "@github/copilot-sdk/extension";

const QUEUE_BYTES_MAX = 4 * 1024 * 1024;
const RETRY_MILLISECONDS = 1000;

let queue = [];
let head = 0;
let queuedBytes = 0;
let dropped = 0;
let socket = null;
let writable = false;
let hello = null;

// stdout is the CLI's; an error of ours must not end the session's extension either.
process.on("uncaughtException", () => {});
process.on("unhandledRejection", () => {});

function quietly(run) {
  try {
    return run();
  } catch {
    return undefined;
  }
}

// Looked for at every attempt: the exporter may be started, moved or set up anew while this session runs.
function findSocket() {
  if (process.platform === "win32") return `\\\\.\\pipe\\session-exporter-tap-${userInfo().username}`;
  const beside = quietly(() => JSON.parse(readFileSync(join(dirname(fileURLToPath(import.meta.url)), "tap.json"), "utf8")));
  const base = process.env.XDG_STATE_HOME;
  const states = [
    process.env.EXPORTER_STATE_DIR,
    beside?.state_dir,
    join(base && isAbsolute(base) ? base : join(homedir(), ".local", "state"), "exporter"),
  ];
  for (const state of states) {
    if (typeof state !== "string" || !isAbsolute(state)) continue;
    const path = quietly(() => readFileSync(join(state, "tap.path"), "utf8").trim()) || join(state, "tap.sock");
    const facts = quietly(() => statSync(path));
    // Another user's socket at this path is nobody we talk to.
    if (facts?.isSocket() && facts.uid === process.getuid()) return path;
  }
  return null;
}

// Text is shown as it is typed only to who asks for streaming, and asking turns it on for the session. So it is asked
// for only where the CLI that runs us, as it was started and set up, streams anyway; where that cannot be seen, not.
function ownerStreams() {
  const given = quietly(() => readFileSync(`/proc/${process.ppid}/cmdline`, "utf8").split("\0")) ?? [];
  if (!given.slice(0, 2).some((part) => part.includes("copilot"))) return false;
  if (given.some((part) => /^--(headless|server|acp|stdio)\b/.test(part))) return false;
  if (given.some((part, place) => part === "--stream=off" || (part === "--stream" && given[place + 1] === "off"))) return false;
  const home = process.env.COPILOT_HOME ?? join(homedir(), ".copilot");
  return !["config.json", "settings.json"].some((name) => {
    const text = quietly(() => readFileSync(join(home, name), "utf8")) ?? "";
    return /"stream"\s*:\s*false/.test(text);
  });
}

function retryLater() {
  socket = null;
  writable = false;
  setTimeout(open, RETRY_MILLISECONDS).unref();
}

function open() {
  quietly(() => {
    const path = findSocket();
    if (!path) return retryLater();
    socket = connect(path);
    socket.unref();
    socket.on("error", () => {});
    socket.on("close", retryLater);
    socket.on("connect", () => {
      writable = true;
      quietly(() => socket.write(hello));
      flush();
    });
    socket.on("drain", () => {
      writable = true;
      flush();
    });
    socket.resume();
  });
}

function take() {
  const line = queue[head];
  queue[head++] = undefined;
  queuedBytes -= line.length;
  if (head > 1024 && head * 2 > queue.length) {
    queue = queue.slice(head);
    head = 0;
  }
  return line;
}

function flush() {
  quietly(() => {
    while (writable && socket && head < queue.length) writable = socket.write(take());
  });
}

function put(session, event) {
  quietly(() => {
    const line = Buffer.from(JSON.stringify({ session, dropped, event }) + "\n");
    queue.push(line);
    queuedBytes += line.length;
    while (queuedBytes > QUEUE_BYTES_MAX) {
      take();
      dropped += 1;
    }
    flush();
  });
}

try {
  const session = await joinSession({ disableResume: true, ...(ownerStreams() ? { streaming: true } : {}) });
  const id = session.sessionId ?? process.env.SESSION_ID;
  hello = JSON.stringify({ tap: 1, session: id, pid: process.pid }) + "\n";
  session.on((event) => put(id, event));
  open();
} catch {
  // Without a session there is nothing to show.
}
