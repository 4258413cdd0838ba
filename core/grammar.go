package core

import (
	"strings"
	"unicode/utf8"
)

// The longest identifiers, in bytes.
const (
	maxIDBytes        = 256
	maxWorkspaceBytes = 256
	maxChannelBytes   = 64
	maxPeerBytes      = 128
	maxWorkIDBytes    = 128
	minThreadBytes    = 3
	maxThreadBytes    = 96
	directHexDigits   = 32
)

const (
	threadPrefix = "thread_"
	directPrefix = "direct_"
)

// The grammars of identifiers in a few words, for people who are told that
// something does not fit.
const (
	WorkspaceGrammar = "1 to 256 bytes of UTF-8 without spaces, control characters and . * >"
	ChannelGrammar   = "1 to 64 of a-z 0-9 _ -, a letter or digit first"
	PeerGrammar      = "1 to 128 of a-z 0-9 . _ -, a letter or digit first"
	ThreadGrammar    = "thread_ and 3 to 96 of a-z 0-9 _ -, a letter or digit first"
	DirectGrammar    = "direct_ and 32 of 0-9 a-f"

	idGrammar     = "1 to 256 bytes of UTF-8 without control characters, and no white space at its ends"
	workIDGrammar = `1 to 128 bytes without / \ and control characters`
	opaqueGrammar = "UTF-8 without control characters, and no white space at its ends"
)

// ValidPeerID reports whether s is a peer id: [a-z0-9][a-z0-9._-]{0,127}.
func ValidPeerID(s string) bool { return validName(s, 1, maxPeerBytes, ".") }

// ValidChannel reports whether s is the name of a channel:
// [a-z0-9][a-z0-9_-]{0,63}.
func ValidChannel(s string) bool { return validName(s, 1, maxChannelBytes, "") }

// ValidThreadID reports whether s is the id of a public thread:
// thread_[a-z0-9][a-z0-9_-]{2,95}.
func ValidThreadID(s string) bool {
	rest, ok := strings.CutPrefix(s, threadPrefix)
	return ok && validName(rest, minThreadBytes, maxThreadBytes, "")
}

// ValidDirectID reports whether s is the id of a direct room:
// direct_[a-f0-9]{32}.
func ValidDirectID(s string) bool {
	rest, ok := strings.CutPrefix(s, directPrefix)
	if !ok || len(rest) != directHexDigits {
		return false
	}
	for _, c := range []byte(rest) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ValidWorkspaceID reports whether s is the id of a workspace: 1 to 256 bytes
// of UTF-8 without the characters that would change the meaning of a subject
// (dot, space, asterisk, greater-than), without control characters and without
// Unicode white space at either end. A slash, + # % $ and letters of any script
// are allowed.
func ValidWorkspaceID(s string) bool {
	return len(s) <= maxWorkspaceBytes && validOpaque(s) && !strings.ContainsAny(s, ". *>")
}

// validID reports whether s may be the id of an envelope.
func validID(s string) bool { return len(s) <= maxIDBytes && validOpaque(s) }

// validWorkID reports whether s, trimmed before, may name a unit of work.
func validWorkID(s string) bool {
	return s != "" && len(s) <= maxWorkIDBytes && !strings.ContainsAny(s, `/\`) && !hasControl(s)
}

// validOpaque holds what is asked of every identifier that has no grammar of
// its own: that no runtime which trims or prints it could take it for another.
func validOpaque(s string) bool {
	if s == "" || hasControl(s) || !utf8.ValidString(s) {
		return false
	}
	return len(strings.TrimSpace(s)) == len(s)
}

func hasControl(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// validName reports whether s is low to high bytes of [a-z0-9_-] and the
// further characters, beginning with a letter or digit.
func validName(s string, low, high int, further string) bool {
	if len(s) < low || len(s) > high {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case i > 0 && (c == '_' || c == '-' || strings.IndexByte(further, c) >= 0):
		default:
			return false
		}
	}
	return true
}
