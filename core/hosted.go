package core

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// The ext keys of discovery (section 2 of docs/protocol.md).
const (
	extBrief     = "compozy.capabilities_brief"
	extCatalogue = "compozy.capability_catalog"
)

// HostedPeer is a peer that the gateway hosts and speaks for in discovery. What
// it says of itself is a claim, like every peer's card.
type HostedPeer struct {
	Attachment
	DisplayName        string
	ProfilesSupported  []string
	ArtifactsSupported []string
	TrustModes         []string
	// Catalogue holds the documents of the peer's capabilities. A peer without any
	// claims none: its card's list is empty.
	Catalogue []Capability
	// Ext holds further members of the card's ext.
	Ext map[string]any
}

// DiscoveryHost is implemented by carriers that host peers with a card.
type DiscoveryHost interface {
	// Cards lists the hosted peers that have a card, as configured.
	Cards() []HostedPeer
}

type cardForm struct {
	PeerID       string         `json:"peer_id"`
	DisplayName  string         `json:"display_name,omitempty"`
	Profiles     []string       `json:"profiles_supported"`
	Capabilities []string       `json:"capabilities"`
	Artifacts    []string       `json:"artifacts_supported"`
	TrustModes   []string       `json:"trust_modes_supported"`
	Ext          map[string]any `json:"ext,omitempty"`
}

type briefEntry struct {
	ID      string `json:"id"`
	Summary string `json:"summary"`
}

type catalogueEntry struct {
	canonical
	Digest string `json:"digest"`
}

type discoveryEnvelope struct {
	Protocol    string         `json:"protocol"`
	ID          string         `json:"id"`
	WorkspaceID string         `json:"workspace_id"`
	Kind        Kind           `json:"kind"`
	Channel     string         `json:"channel"`
	From        string         `json:"from"`
	To          *string        `json:"to"`
	ReplyTo     string         `json:"reply_to,omitempty"`
	TraceID     string         `json:"trace_id,omitempty"`
	TS          int64          `json:"ts"`
	Body        discoveryBody  `json:"body"`
	Proof       *struct{}      `json:"proof"`
	Ext         map[string]any `json:"ext,omitempty"`
}

type discoveryBody struct {
	Type     string   `json:"type,omitempty"`
	PeerCard cardForm `json:"peer_card"`
}

func (h *HostedPeer) card() cardForm {
	form := cardForm{
		PeerID: h.Peer, DisplayName: h.DisplayName,
		Profiles: present(h.ProfilesSupported), Capabilities: []string{},
		Artifacts: present(h.ArtifactsSupported), TrustModes: present(h.TrustModes),
	}
	form.Ext = maps.Clone(h.Ext)
	delete(form.Ext, extCatalogue)
	delete(form.Ext, extBrief)
	if len(h.Catalogue) == 0 {
		return form
	}
	if form.Ext == nil {
		form.Ext = map[string]any{}
	}
	var brief []briefEntry
	for _, c := range h.Catalogue {
		document := c.canonical()
		form.Capabilities = append(form.Capabilities, document.ID)
		brief = append(brief, briefEntry{ID: document.ID, Summary: document.Summary})
	}
	form.Ext[extBrief] = brief
	return form
}

// present gives an empty list for none, because the lists of a card are never
// null.
func present(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// Greet builds the envelope that announces the peer in its channel.
func (h *HostedPeer) Greet(id string, now time.Time) ([]byte, error) {
	return json.Marshal(discoveryEnvelope{
		Protocol: Protocol, ID: id, WorkspaceID: h.WorkspaceID, Kind: KindGreet, Channel: h.Channel,
		From: h.Peer, TS: now.Unix(), Body: discoveryBody{PeerCard: h.card()},
	})
}

// Asked reports whether the request is one that the peer answers: a directed one
// whatever its query says, an undirected one when the query matches. The
// request's body must have been read by CheckBody.
func (h *HostedPeer) Asked(request *Envelope) bool {
	if request.Whois == nil || request.Whois.Type != WhoisRequest || request.From == h.Peer ||
		request.WorkspaceID != h.WorkspaceID || request.Channel != h.Channel {
		return false
	}
	if request.To != "" {
		return request.To == h.Peer
	}
	form := h.card()
	card := PeerCard{
		PeerID: h.Peer, DisplayName: h.DisplayName, Capabilities: form.Capabilities,
		ProfilesSupported: h.ProfilesSupported, ArtifactsSupported: h.ArtifactsSupported, TrustModes: h.TrustModes,
	}
	return card.Matches(request.Whois.Query)
}

// Answer builds the whois response to the request, directed to who asked. Its id
// follows from the request and the peer, so that a repeated answer is the same
// message.
func (h *HostedPeer) Answer(request *Envelope, now time.Time) ([]byte, error) {
	response := discoveryEnvelope{
		Protocol: Protocol, ID: answerID(request, h.Peer), WorkspaceID: h.WorkspaceID, Kind: KindWhois, Channel: h.Channel,
		From: h.Peer, To: &request.From, ReplyTo: request.ID, TraceID: request.TraceID, TS: now.Unix(),
		Body: discoveryBody{Type: WhoisResponse, PeerCard: h.card()},
	}
	if ids, asked := request.CatalogueQuery(); asked {
		response.Ext = map[string]any{extCatalogue: map[string]any{"capabilities": h.catalogue(ids)}}
	}
	return json.Marshal(response)
}

// catalogue lists the entries in catalogue order, narrowed to the ids; nil means
// all.
func (h *HostedPeer) catalogue(ids []string) []catalogueEntry {
	entries := []catalogueEntry{}
	for _, c := range h.Catalogue {
		document := c.canonical()
		if ids == nil || slices.Contains(ids, document.ID) {
			entries = append(entries, catalogueEntry{canonical: document, Digest: c.digest()})
		}
	}
	return entries
}

func answerID(request *Envelope, peer string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		"compozy-network/whois-answer/v1", request.WorkspaceID, request.ID, peer,
	}, "\x00")))
	return "whois-" + hex.EncodeToString(sum[:16])
}
