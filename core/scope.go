package core

import "strings"

// Scope bounds what may pass. A nil list means everything, an empty one
// nothing. Entries are patterns in which * stands for any run of characters.
type Scope struct {
	Workspaces []string `koanf:"workspaces"`
	Channels   []string `koanf:"channels"`
	// Peers bounds the envelope's from on the way in and the recipient on the
	// way out.
	Peers []string `koanf:"peers"`
}

// Allows reports whether the scope takes in the workspace, channel and peer. An
// empty peer (a broadcast) is allowed by every peer list but the empty one.
func (s Scope) Allows(workspace, channel, peer string) bool {
	if !matchAny(s.Workspaces, workspace) || !matchAny(s.Channels, channel) {
		return false
	}
	if peer == "" {
		return s.Peers == nil || len(s.Peers) > 0
	}
	return matchAny(s.Peers, peer)
}

func matchAny(patterns []string, value string) bool {
	if patterns == nil {
		return true
	}
	for _, p := range patterns {
		if MatchPattern(p, value) {
			return true
		}
	}
	return false
}

// MatchPattern reports whether value fits the pattern, in which * stands for
// any run of characters, also none.
func MatchPattern(pattern, value string) bool {
	head, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == value
	}
	if !strings.HasPrefix(value, head) {
		return false
	}
	value = value[len(head):]
	for {
		var piece string
		piece, rest, starred = strings.Cut(rest, "*")
		if !starred {
			return strings.HasSuffix(value, piece)
		}
		i := strings.Index(value, piece)
		if i < 0 {
			return false
		}
		value = value[i+len(piece):]
	}
}
