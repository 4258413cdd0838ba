#!/usr/bin/env node
// A local agent with nothing but Node. It says again what it is told, and takes work.
import { createHash } from "node:crypto";
const me = process.env.COMPOZY_PEER_ID;
const kept = ["workspace_id", "channel", "surface", "thread_id", "direct_id", "work_id", "trace_id"];
const write = (frame) => process.stdout.write(JSON.stringify(frame) + "\n"); // one line, whatever is in it

function send(cause, kind, body) { // a wake that is run again gives the same ids, so nothing is said twice
  const id = createHash("sha256").update([me, cause.id, kind, body.state ?? ""].join("\0")).digest("hex");
  const same = Object.fromEntries(kept.filter((name) => cause[name] != null).map((name) => [name, cause[name]]));
  write({ protocol: "compozy-network/v0", id, kind, from: me, to: cause.from, ...same,
    reply_to: cause.id, causation_id: cause.id, ts: Math.floor(Date.now() / 1000), body });
}
function answer(said) { // data that nobody vouches for: it is looked at, never obeyed
  const text = said.body?.text;
  if (said.kind !== "say" || (said.to !== me && said.surface !== "direct") || typeof text !== "string") return;
  if (said.work_id == null) return send(said, "say", { text: "you said: " + text });
  send(said, "receipt", { for_id: said.id, status: "accepted" });
  send(said, "trace", { state: "working" });
  send(said, "trace", { state: "completed", message: text });
}
let [rest, wake, left, failed] = ["", "", 0, undefined];
function take(line) {
  try {
    const { carrier, ...said } = JSON.parse(line);
    if (carrier?.wake) [wake, left, failed] = [carrier.wake, carrier.messages + 1, undefined];
    else if (carrier && !carrier.omitted) console.error(line); // what became of our envelopes
    else if (!carrier && left > 0) answer(said);
  } catch (error) { // a message that cannot be read costs its wake, not the agent
    failed = String(error).slice(0, 200);
  }
  if (--left === 0) write({ carrier: { done: wake, usage: { input_tokens: 0, output_tokens: 0 }, failed } });
}
for await (const chunk of process.stdin.setEncoding("utf8")) {
  const lines = (rest + chunk).split("\n"); // node:readline would end lines at U+2028, too
  rest = lines.pop();
  lines.forEach(take);
}
process.exitCode = failed ? 1 : 0;
