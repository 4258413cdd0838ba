package mcpserver

import "encoding/json"

// room is what an answer has left for its lists, in bytes.
type room int

// take reports whether the entry still fits, and if so takes its room.
func (r *room) take(entry any) bool {
	raw, err := json.Marshal(entry)
	if err != nil || len(raw) > int(*r) {
		return false
	}
	*r -= room(len(raw))
	return true
}

// fit shows as many entries as any list may have and as there is room for, and
// notes when there are more.
func fit[T, S any](r *room, items []T, more *bool, show func(T) S) []S {
	shown := []S{}
	for _, item := range items {
		entry := show(item)
		if len(shown) == maxList || !r.take(entry) {
			*more = true
			break
		}
		shown = append(shown, entry)
	}
	return shown
}

// same shows an entry as the gateway gave it.
func same[T any](entry T) T { return entry }
