package stdio

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

// Cards implements core.DiscoveryHost: the live agents that have a card.
func (c *Carrier) Cards() []core.HostedPeer {
	var cards []core.HostedPeer
	for _, a := range c.live {
		if a.cfg.PeerCard != nil {
			cards = append(cards, a.card())
		}
	}
	return cards
}

// card is the agent's configured card. What it leaves out of the lists that tell
// what an agent on this gateway can do gets the protocol's own names.
func (a *agent) card() core.HostedPeer {
	cfg := a.cfg.PeerCard
	card := core.HostedPeer{Attachment: a.attachment()}
	card.DisplayName, _ = cfg["display_name"].(string)
	card.ProfilesSupported = listOr(cfg["profiles_supported"], core.Protocol)
	card.ArtifactsSupported = listOr(cfg["artifacts_supported"], string(core.KindCapability))
	card.TrustModes = listOr(cfg["trust_modes_supported"])
	card.Ext, _ = cfg["ext"].(map[string]any)
	// Validate has refused what cannot be read.
	card.Catalogue, _ = readCatalogue(cfg["capabilities"])
	return card
}

// listOr gives the configured list, or the default where none is configured.
func listOr(value any, fallback ...string) []string {
	if list, ok := stringList(value); ok {
		return list
	}
	return fallback
}

// stringList reads a list of strings; ok is false for anything else.
func stringList(value any) (list []string, ok bool) {
	switch v := value.(type) {
	case []string:
		return v, true
	case []any:
		list = make([]string, 0, len(v))
		for _, entry := range v {
			s, ok := entry.(string)
			if !ok {
				return nil, false
			}
			list = append(list, s)
		}
		return list, true
	}
	return nil, false
}

// readCatalogue reads a card's capabilities. They are whole documents: a card
// that names capabilities must be able to tell what they are.
func readCatalogue(value any) ([]core.Capability, error) {
	if value == nil {
		return nil, nil
	}
	entries, ok := value.([]any)
	if !ok {
		return nil, errors.New("must be a list of capability documents")
	}
	seen := map[string]bool{}
	var catalogue []core.Capability
	for i, entry := range entries {
		document, ok := entry.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("entry %d is no capability document: give it id, summary and outcome", i+1)
		}
		raw, err := json.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		c, err := core.ReadCapability(raw)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		if err := checkDigest(document, raw); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		id := strings.TrimSpace(c.ID)
		if seen[id] {
			return nil, fmt.Errorf("entry %d repeats the id %q", i+1, id)
		}
		seen[id] = true
		catalogue = append(catalogue, *c)
	}
	return catalogue, nil
}

// checkDigest compares the digest that a capability document carries, where it
// carries one.
func checkDigest(document map[string]any, raw []byte) error {
	said := document["digest"]
	if said == nil {
		return nil
	}
	digest, err := core.CapabilityDigest(raw)
	if err != nil {
		return err
	}
	if said != digest {
		return fmt.Errorf("its digest is %q, but %q is that of the document: leave it out, for the gateway adds it", said, digest)
	}
	return nil
}
