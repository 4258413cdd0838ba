package core_test

import (
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestRouteToken(t *testing.T) {
	if got := core.RouteToken("reviewer.sess-xyz"); got != "790dd5515558f7784877abcbca51c5ba" {
		t.Errorf("token %s", got)
	}
}

func TestAddressMustAgreeWithTheEnvelope(t *testing.T) {
	peer := func(id string) core.Address { return core.Address{Class: core.AddressPeer, Token: core.RouteToken(id)} }
	broadcast, ingress := core.Address{Class: core.AddressBroadcast}, core.Address{Class: core.AddressIngress}
	upper := core.Address{Class: core.AddressPeer, Token: "790DD5515558F7784877ABCBCA51C5BA"}
	directed := valid(core.KindSay)
	public := valid(core.KindSay).drop("work_id").drop("to")
	inRoom := room(valid(core.KindSay))
	inRoomWithoutTo := room(valid(core.KindSay)).drop("work_id").drop("to")
	for name, c := range map[string]struct {
		draft   *draft
		address core.Address
		want    refusal
	}{
		"directed on its peer":              {directed, peer(target), ok},
		"directed on another peer":          {directed, peer(initiator), badShape},
		"directed on a token in upper case": {directed, upper, badShape},
		"directed without a token":          {directed, core.Address{Class: core.AddressPeer}, badShape},
		"directed on broadcast":             {directed, broadcast, badShape},
		"directed on ingress":               {directed, ingress, ok},
		"public on broadcast":               {public, broadcast, ok},
		"public on a peer":                  {public, peer(target), badShape},
		"public on ingress":                 {public, ingress, ok},
		"room on its peer":                  {inRoom, peer(target), ok},
		"room on another peer":              {inRoom, peer("x"), badShape},
		"room on broadcast":                 {inRoom, broadcast, badShape},
		"room on ingress":                   {inRoom, ingress, ok},
		"room without to on a peer":         {inRoomWithoutTo, peer("x"), ok},
		"room without to on broadcast":      {inRoomWithoutTo, broadcast, badShape},
		"room without to on ingress":        {inRoomWithoutTo, ingress, ok},
		"greet on broadcast":                {valid(core.KindGreet), broadcast, ok},
		"greet on a peer":                   {valid(core.KindGreet), peer(target), badShape},
		"whois on broadcast":                {valid(core.KindWhois), broadcast, ok},
		"directed whois on its peer":        {valid(core.KindWhois).set("to", `"a"`), peer("a"), ok},
		"directed whois on broadcast":       {valid(core.KindWhois).set("to", `"a"`), broadcast, badShape},
		"an unknown class":                  {public, core.Address{Class: "private"}, badShape},
		"no class":                          {public, core.Address{}, badShape},
	} {
		t.Run(name, func(t *testing.T) {
			e := mustCheck(t, c.draft.raw())
			a := c.address
			a.WorkspaceID, a.Channel = e.WorkspaceID, e.Channel
			c.want.verify(t, e.CheckAddress(&a))
			a.WorkspaceID = "other"
			badShape.verify(t, e.CheckAddress(&a))
			a.WorkspaceID, a.Channel = e.WorkspaceID, "other"
			badShape.verify(t, e.CheckAddress(&a))
			ok.verify(t, e.CheckAddress(nil))
		})
	}
}

func TestRoomAddressIsThatOfTheOtherParty(t *testing.T) {
	for name, c := range map[string]struct {
		address *core.Address
		want    refusal
	}{
		"none":     {nil, ok},
		"ingress":  {&core.Address{Class: core.AddressIngress}, ok},
		"the peer": {&core.Address{Class: core.AddressPeer, Token: core.RouteToken(target)}, ok},
		"another":  {&core.Address{Class: core.AddressPeer, Token: core.RouteToken("x")}, refusal{core.ReasonMalformed, core.StepState}},
		"no token": {&core.Address{Class: core.AddressPeer}, refusal{core.ReasonMalformed, core.StepState}},
	} {
		t.Run(name, func(t *testing.T) { c.want.verify(t, core.CheckRoomAddress(c.address, target)) })
	}
}
