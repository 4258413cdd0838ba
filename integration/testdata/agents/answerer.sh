#!/bin/sh
# An agent that answers every say which it is given. It writes down what it
# heard and what it said, in the directory $1.
while IFS= read -r line; do
  printf '%s\n' "$line" >>"$1/heard"
  case $line in
  '{"carrier":'*) continue ;;
  *'"kind":"say"'*) ;;
  *) continue ;;
  esac
  id=$(printf '%s' "$line" | sed 's/.*"id":"\([^"]*\)".*/\1/')
  from=$(printf '%s' "$line" | sed 's/.*"from":"\([^"]*\)".*/\1/')
  thread=$(printf '%s' "$line" | sed 's/.*"thread_id":"\([^"]*\)".*/\1/')
  answer=$(printf '{"ext":{"n":1.10,"e":2E+2,"s":"\\u0041\\/"}, "protocol":"compozy-network/v0","kind":"say","surface":"thread","thread_id":"%s","workspace_id":"%s","channel":"%s","from":"%s","to":"%s","id":"re-%s","reply_to":"%s","causation_id":"%s","ts":%s,"body":{"text":"heard you"}}' \
    "$thread" "$COMPOZY_WORKSPACE_ID" "$COMPOZY_CHANNEL" "$COMPOZY_PEER_ID" "$from" "$id" "$id" "$id" "$(date +%s)")
  printf '%s\n' "$answer" >>"$1/said"
  printf '%s\n' "$answer"
done
