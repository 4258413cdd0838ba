#!/bin/sh
# A local agent in POSIX shell and awk. It says again what it is told, and takes work.

# answer reads one envelope and writes what is to be said to it. Strings stay as they came, quotes and escapes included.
answer() { LC_ALL=C awk -v now="$(date +%s)" '
  function send(kind, tag, body) {
    print "{\"protocol\":\"compozy-network/v0\",\"kind\":\"" kind "\",\"id\":\"" me "." tag "." substr(m["id"], 2) \
      ",\"from\":\"" me "\",\"to\":" m["from"] kept ",\"reply_to\":" m["id"] ",\"causation_id\":" m["id"] ",\"ts\":" now ",\"body\":{" body "}}"
  }
  { for (rest = $0; match(rest, /"[^"\\]*(\\.[^"\\]*)*"|[][{}:,]|[^][{}:," \t]+/); rest = substr(rest, RSTART + RLENGTH)) {
      token = substr(rest, RSTART, RLENGTH)
      if (token ~ /^[[{]$/) depth++
      else if (token ~ /^[]}]$/) depth--
      else if (token == ":") key[depth] = before
      else if (before == ":" && depth == 1) m[substr(key[1], 2, length(key[1]) - 2)] = token
      else if (before == ":" && depth == 2 && key[1] key[2] == "\"body\"\"text\"") text = token
      before = token
  } }
  END {
    me = ENVIRON["COMPOZY_PEER_ID"]
    if (depth || m["id"] == "" || text == "" || m["kind"] != "\"say\"" || (m["to"] != "\"" me "\"" && m["surface"] != "\"direct\"")) exit
    for (n = split("workspace_id channel surface thread_id direct_id work_id trace_id", names); n > 0; n--)
      if (m[names[n]] ~ /^"/) kept = kept ",\"" names[n] "\":" m[names[n]]
    if (m["work_id"] !~ /^"/) { send("say", "said", "\"text\":\"you said: " substr(text, 2)); exit }
    send("receipt", "took", "\"status\":\"accepted\",\"for_id\":" m["id"])
    send("trace", "began", "\"state\":\"working\"")
    send("trace", "ended", "\"state\":\"completed\",\"message\":" text)
  }'; }

while IFS= read -r line; do
  case $line in # no envelope begins like a line about the carrier
  '{"carrier":{"wake":"'*) wake=${line#*wake\":\"} wake=${wake%%\"*} left=${line##*\"messages\":} left=${left%%[!0-9]*} why= && continue ;;
  '{"carrier":{"omitted":'*) ;;
  '{"carrier":'*) printf '%s\n' "$line" >&2 && continue ;; # what became of our envelopes
  *) [ "${left:-0}" -gt 0 ] || continue; printf '%s\n' "$line" | answer || why=',"failed":"awk"' ;;
  esac
  left=$((left - 1)) && [ "$left" -ne 0 ] || printf '{"carrier":{"done":"%s","usage":{"input_tokens":0,"output_tokens":0}%s}}\n' "$wake" "$why"
done
[ -z "$why" ]
