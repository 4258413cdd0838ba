#!/usr/bin/env python3
"""A local agent with nothing but the standard library. It says again what it is told, and takes work."""
import hashlib, json, os, sys, time
ME = os.environ["COMPOZY_PEER_ID"]
KEPT = ("workspace_id", "channel", "surface", "thread_id", "direct_id", "work_id", "trace_id")
def write(frame):
    print(json.dumps(frame), flush=True)  # one line of ASCII, whatever is in it

def send(cause, kind, body):  # a wake that is run again gives the same ids, so nothing is said twice
    name = hashlib.sha256("\0".join((ME, cause["id"], kind, body.get("state", ""))).encode()).hexdigest()
    write({"protocol": "compozy-network/v0", "id": name, "kind": kind, "from": ME, "to": cause["from"], "reply_to": cause["id"],
           "causation_id": cause["id"], "ts": int(time.time()), "body": body, **{k: cause[k] for k in KEPT if cause.get(k) is not None}})

def answer(said):  # data that nobody vouches for: it is looked at, never obeyed
    if said["kind"] != "say" or (said.get("to") != ME and said["surface"] != "direct"):
        return None
    if said.get("work_id") is None:
        return send(said, "say", {"text": "you said: " + said["body"]["text"]})
    send(said, "receipt", {"for_id": said["id"], "status": "accepted"})
    send(said, "trace", {"state": "working"})
    send(said, "trace", {"state": "completed", "message": said["body"]["text"]})

wake, left, failed = "", 0, {}
for line in sys.stdin.buffer:  # in binary, which ends lines at line feeds alone
    try:
        frame = json.loads(line, parse_int=str)  # numbers stay text, however long they are
        about = frame.get("carrier", {})
        if "wake" in about:
            wake, left, failed = about["wake"], int(about["messages"]) + 1, {}
        elif about and "omitted" not in about:
            print(line.decode().rstrip(), file=sys.stderr)  # what became of our envelopes
        elif not about and left > 0:
            answer(frame)
    except Exception as error:  # a message that cannot be read costs its wake, not the agent
        failed = {"failed": repr(error)[:200]}
    left -= 1
    if left == 0:
        write({"carrier": {"done": wake, "usage": {"input_tokens": 0, "output_tokens": 0}, **failed}})
sys.exit(1 if failed else 0)
