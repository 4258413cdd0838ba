package mqtt

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/compozy-gateway/gateway/core"
)

// The last levels of our topics.
const (
	levelBroadcast = string(core.AddressBroadcast)
	levelPeer      = string(core.AddressPeer)
	levelIngress   = string(core.AddressIngress)
)

// filters are the subscriptions that take in everything below the prefix. There
// is one alone: of filters that overlap, a broker may send a message once for
// each (MQTT 3.1.1, section 3.3.5). What is no address is taken in as well, so
// that a mistaken topic leaves a record instead of nothing.
func filters(prefix string) []string { return []string{prefix + "/#"} }

// topicFor is the topic of a message of the channel: the address of the peer, or
// the broadcast address where to is empty. It fails on what no topic can hold.
func topicFor(prefix, workspace, channel, to string) (string, error) {
	if workspace == "" || channel == "" {
		return "", errors.New("the workspace or the channel is empty")
	}
	if !core.ValidWorkspaceID(workspace) || !printable(channel) {
		return "", errors.New("the workspace or the channel holds a character that it must not hold")
	}
	if strings.ContainsAny(channel, "/+#") {
		return "", errors.New("the channel holds a character that means something in topics")
	}
	topic := prefix + "/" + escape(workspace) + "/" + channel + "/"
	if to == "" {
		return topic + levelBroadcast, nil
	}
	return topic + levelPeer + "/" + core.RouteToken(to), nil
}

// location is what a topic says of the message that was published to it.
type location struct {
	arrival core.Arrival
	// address is nil when bad says why the topic cannot be read.
	address *core.Address
	bad     string
}

// locate reads a topic. It reports false for a topic that is not below the
// prefix. The prefix itself counts as below: filters take it in (MQTT 3.1.1,
// section 4.7.1.2).
func locate(prefix, topic string) (location, bool) {
	rest, below := strings.CutPrefix(topic, prefix+"/")
	if !below && topic != prefix {
		return location{}, false
	}
	levels := strings.Split(rest, "/")
	var address core.Address
	switch {
	case len(levels) == 3 && levels[2] == levelBroadcast:
		address.Class = core.AddressBroadcast
	case len(levels) == 3 && levels[2] == levelIngress:
		address.Class = core.AddressIngress
	case len(levels) == 4 && levels[2] == levelPeer:
		address.Class = core.AddressPeer
		address.Token = levels[3]
	default:
		return location{arrival: core.ArrivalNative, bad: badForm}, true
	}
	at := location{arrival: core.ArrivalNative}
	if address.Class == core.AddressIngress {
		at.arrival = core.ArrivalIngress
	}
	workspace, err := unescape(levels[0])
	switch {
	case err != nil:
		at.bad = err.Error()
	case workspace == "" || levels[1] == "" || address.Class == core.AddressPeer && address.Token == "":
		at.bad = "the topic has an empty level"
	default:
		address.WorkspaceID, address.Channel = workspace, levels[1]
		at.address = &address
	}
	return at, true
}

// badForm is what is wrong with a topic below the prefix that is no address.
const badForm = "the topic is not of the form PREFIX/WORKSPACE/CHANNEL/broadcast, /ingress or /peer/TOKEN"

// escapedBytes are the characters of a workspace id that mean something in
// topics, and the escape itself.
const escapedBytes = "/+#%$"

// escaped reports whether a character of a workspace id cannot stand in a topic
// as it is.
func escaped(r rune) bool { return strings.ContainsRune(escapedBytes, r) || forbidden(r) }

// escape writes a workspace id as one level of a topic.
func escape(workspace string) string {
	if !strings.ContainsFunc(workspace, escaped) {
		return workspace
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for len(workspace) > 0 {
		r, size := utf8.DecodeRuneInString(workspace)
		for i := range size {
			if c := workspace[i]; escaped(r) {
				b.Write([]byte{'%', digits[c>>4], digits[c&15]})
			} else {
				b.WriteByte(c)
			}
		}
		workspace = workspace[size:]
	}
	return b.String()
}

var (
	errBadEscape    = errors.New("the workspace level of the topic has a % without two hexadecimal digits after it")
	errNotUTF8      = errors.New("the workspace level of the topic is not UTF-8")
	errNotCanonical = errors.New("the workspace level of the topic is not spelled as its subscribers know it: " +
		"/ + # % $ and what topics must not hold are percent-encoded in upper-case digits, and nothing else is")
)

// unescape is the inverse of escape, and takes no other spelling: whoever
// subscribes to a workspace hears the one topic that escape makes of it.
func unescape(level string) (string, error) {
	out := make([]byte, 0, len(level))
	for i := 0; i < len(level); i++ {
		if level[i] != '%' {
			out = append(out, level[i])
			continue
		}
		if i+2 >= len(level) {
			return "", errBadEscape
		}
		high, ok1 := hexDigit(level[i+1])
		low, ok2 := hexDigit(level[i+2])
		if !ok1 || !ok2 {
			return "", errBadEscape
		}
		out = append(out, high<<4|low)
		i += 2
	}
	workspace := string(out)
	switch {
	case !utf8.ValidString(workspace):
		return "", errNotUTF8
	case escape(workspace) != level:
		return "", errNotCanonical
	}
	return workspace, nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// printable reports whether brokers take s inside a topic.
func printable(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, forbidden) }

// forbidden reports a character over which brokers may close the connection, and
// would do so on every attempt: control characters and noncharacters (MQTT
// 3.1.1, section 1.5.3).
func forbidden(r rune) bool {
	return unicode.IsControl(r) || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe
}
