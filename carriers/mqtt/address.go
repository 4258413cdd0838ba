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

// filters are the subscriptions that take in every address below the prefix.
func filters(prefix string) []string {
	return []string{
		prefix + "/+/+/" + levelBroadcast,
		prefix + "/+/+/" + levelPeer + "/+",
		prefix + "/+/+/" + levelIngress,
	}
}

// topicFor is the topic of a message of the channel: the address of the peer, or
// the broadcast address where to is empty. It fails on what no topic can hold.
func topicFor(prefix, workspace, channel, to string) (string, error) {
	if workspace == "" || channel == "" {
		return "", errors.New("the workspace or the channel is empty")
	}
	if !printable(workspace) || !printable(channel) {
		return "", errors.New("the workspace or the channel holds a character that topics must not hold")
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

// locate reads a topic. It reports false for a topic that none of filters takes
// in.
func locate(prefix, topic string) (location, bool) {
	rest, ok := strings.CutPrefix(topic, prefix+"/")
	if !ok {
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
		return location{}, false
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

// escapedBytes are the bytes of a workspace id that mean something in topics,
// and the escape itself.
const escapedBytes = "/+#%$"

func escape(workspace string) string {
	if !strings.ContainsAny(workspace, escapedBytes) {
		return workspace
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(workspace) {
		c := workspace[i]
		if strings.IndexByte(escapedBytes, c) < 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', digits[c>>4], digits[c&15]})
	}
	return b.String()
}

var (
	errBadEscape = errors.New("the workspace level of the topic has a % without two hexadecimal digits after it")
	errNotUTF8   = errors.New("the workspace level of the topic is not UTF-8")
)

// unescape is the inverse of escape. It takes every escaped byte, in digits of
// either case.
func unescape(level string) (string, error) {
	if strings.IndexByte(level, '%') < 0 {
		return level, nil
	}
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
	if !utf8.Valid(out) {
		return "", errNotUTF8
	}
	return string(out), nil
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

// printable reports whether brokers take s inside a topic. They may close the
// connection over control characters and noncharacters (MQTT 3.1.1, section
// 1.5.3), and would do so on every attempt.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe
	})
}
