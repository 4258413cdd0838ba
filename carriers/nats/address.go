package nats

import (
	"errors"
	"fmt"
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

const (
	routeTokenDigits = 32
	// shownSubject bounds how much of a stranger's subject is repeated in a
	// message for people.
	shownSubject = 160
)

// subjects maps between logical addresses and the subjects below one prefix
// (section 10 of docs/protocol.md).
type subjects struct {
	// prefix is without the dot at its end.
	prefix string
}

// all is the filter that takes in every subject below the prefix.
func (s subjects) all() string { return s.prefix + ".>" }

// needed lists the subjects that a stream must take in.
func (s subjects) needed() []string {
	return []string{
		s.prefix + ".*.*." + string(core.AddressBroadcast),
		s.prefix + ".*.*." + string(core.AddressIngress),
		s.prefix + ".*.*." + string(core.AddressPeer) + ".*",
	}
}

// destination is the subject that a delivery goes to. An identifier that would
// mean something else in a subject is refused here, whatever was checked before.
func (s subjects) destination(workspace, channel, to string) (string, error) {
	if !legalToken(workspace) {
		return "", fmt.Errorf("workspace id %q cannot be a part of a subject", shorten(workspace))
	}
	if !legalToken(channel) {
		return "", fmt.Errorf("channel %q cannot be a part of a subject", shorten(channel))
	}
	base := s.prefix + "." + workspace + "." + channel + "."
	if to == "" {
		return base + string(core.AddressBroadcast), nil
	}
	return base + string(core.AddressPeer) + "." + core.RouteToken(to), nil
}

// parse reads the address out of a subject. Where the subject is no address of
// ours it says why in bad. What says ingress nowhere is a native arrival.
func (s subjects) parse(subject string) (address *core.Address, arrival core.Arrival, bad string) {
	rest, below := strings.CutPrefix(subject, s.prefix+".")
	if !below {
		return nil, core.ArrivalNative, fmt.Sprintf("subject %q is not below %s", shorten(subject), s.prefix)
	}
	parts := strings.Split(rest, ".")
	a := &core.Address{}
	switch {
	case len(parts) == 3 && (parts[2] == string(core.AddressBroadcast) || parts[2] == string(core.AddressIngress)):
		a.Class = core.AddressClass(parts[2])
	case len(parts) == 4 && parts[2] == string(core.AddressPeer) && isRouteToken(parts[3]):
		a.Class, a.Token = core.AddressPeer, parts[3]
	default:
		return nil, core.ArrivalNative, fmt.Sprintf(
			"subject %q is not of the form %s.WORKSPACE.CHANNEL.broadcast, .ingress or .peer.TOKEN", shorten(subject), s.prefix)
	}
	a.WorkspaceID, a.Channel = parts[0], parts[1]
	if a.Class != core.AddressIngress {
		arrival = core.ArrivalNative
	}
	if !core.ValidWorkspaceID(a.WorkspaceID) || !core.ValidChannel(a.Channel) {
		return nil, arrival, fmt.Sprintf("subject %q names no workspace and channel", shorten(subject))
	}
	return a, arrival, ""
}

func isRouteToken(s string) bool {
	return len(s) == routeTokenDigits && strings.Trim(s, "0123456789abcdef") == ""
}

// legalToken reports whether s can stand as one part of a subject: not empty,
// without a dot, a wildcard, a space or a control character. Everything else, letters
// of any script included, is legal in NATS.
func legalToken(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ', c == 0x7f, c == '.', c == '*', c == '>':
			return false
		}
	}
	return true
}

// legalName reports whether s can name a stream or a consumer.
func legalName(s string) bool { return legalToken(s) && !strings.ContainsAny(s, `/\`) }

func validatePrefix(prefix string) error {
	if prefix == "" {
		return errors.New("is empty: the carrier would take in every subject of the server")
	}
	if len(prefix) > maxPrefixBytes {
		return fmt.Errorf("is longer than %d bytes", maxPrefixBytes)
	}
	if strings.HasPrefix(prefix, "$") || strings.HasPrefix(prefix, "_INBOX") {
		return fmt.Errorf("%q is reserved by NATS", shorten(prefix))
	}
	for _, token := range strings.Split(prefix, ".") {
		if !legalToken(token) {
			return fmt.Errorf("%q is no subject: each part between dots is one or more characters without white space, * and >",
				shorten(prefix))
		}
	}
	return nil
}

// covers reports whether the subject pattern takes in every subject that the
// other pattern does.
func covers(pattern, other string) bool {
	p, o := strings.Split(pattern, "."), strings.Split(other, ".")
	for i, token := range p {
		if token == ">" {
			return len(o) > i
		}
		if i >= len(o) || o[i] == ">" {
			return false
		}
		if token != "*" && token != o[i] {
			return false
		}
	}
	return len(p) == len(o)
}

func shorten(s string) string {
	if len(s) <= shownSubject {
		return s
	}
	return strings.ToValidUTF8(s[:shownSubject], "") + "..."
}
