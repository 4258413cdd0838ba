#!/bin/sh
# An agent that answers every say which it is given, and ends each wake when it
# has answered its messages. It writes down what it heard and what it said, in
# the directory $1.
left=0

# over counts one message of a wake, and says that the wake is over after the
# last one.
over() {
  [ "$left" -gt 0 ] || return 0
  left=$((left - 1))
  [ "$left" -gt 0 ] || printf '{"carrier":{"done":"%s"}}\n' "$wake"
}

field() { printf '%s' "$line" | sed "s/.*\"$1\":\"\\([^\"]*\\)\".*/\\1/"; }

while IFS= read -r line; do
  printf '%s\n' "$line" >>"$1/heard"
  case $line in
  '{"carrier":{"wake":'*)
    wake=$(field wake)
    left=$(printf '%s' "$line" | sed 's/.*"messages":\([0-9]*\).*/\1/')
    continue
    ;;
  '{"carrier":{"omitted":'*) over && continue ;;
  '{"carrier":'*) continue ;;
  *'"kind":"say"'*) ;;
  *) over && continue ;;
  esac
  id=$(field id)
  answer=$(printf '{"ext":{"n":1.10,"e":2E+2,"s":"\\u0041\\/"}, "protocol":"compozy-network/v0","kind":"say","surface":"thread","thread_id":"%s","workspace_id":"%s","channel":"%s","from":"%s","to":"%s","id":"re-%s","reply_to":"%s","causation_id":"%s","ts":%s,"body":{"text":"heard you"}}' \
    "$(field thread_id)" "$COMPOZY_WORKSPACE_ID" "$COMPOZY_CHANNEL" "$COMPOZY_PEER_ID" "$(field from)" "$id" "$id" "$id" "$(date +%s)")
  printf '%s\n' "$answer" >>"$1/said"
  printf '%s\n' "$answer"
  over
done
