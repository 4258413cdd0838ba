package core

import "slices"

// Matches reports whether a whois query finds the card: an empty query finds
// every card, any other must equal the peer id, the display name, or an entry
// of one of the card's lists (section 2 of docs/protocol.md).
func (c *PeerCard) Matches(query string) bool {
	return query == "" || query == c.PeerID || query == c.DisplayName ||
		slices.Contains(c.Capabilities, query) ||
		slices.Contains(c.ProfilesSupported, query) ||
		slices.Contains(c.ArtifactsSupported, query) ||
		slices.Contains(c.TrustModes, query)
}

// CatalogueQuery reports whether the sender of a whois request asks for the
// capability catalogue in the answer, and for which entries; nil ids mean all.
// What else is asked for it ignores. Ids that cannot be read name no entry: a
// request that was meant to be narrow is not answered with everything.
func (e *Envelope) CatalogueQuery() (ids []string, asked bool) {
	if e.Ext == nil {
		return nil, false
	}
	v := pick(e.Ext, extNames)
	include, only := v[0], v[1]
	if include == nil || !isArray(include) {
		return nil, false
	}
	for el := (elements{buf: include}); el.next(); {
		if isString(el.value()) && stringOf(el.value()) == "capability_catalog" {
			asked = true
		}
	}
	if !asked || only == nil {
		return nil, asked
	}
	ids = []string{}
	if !isArray(only) {
		return ids, true
	}
	for el := (elements{buf: only}); el.next(); {
		if isString(el.value()) {
			ids = append(ids, stringOf(el.value()))
		}
	}
	return ids, true
}
