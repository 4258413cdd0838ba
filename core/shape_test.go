package core_test

import (
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// room turns a conversation draft into one of a direct room.
func room(d *draft) *draft {
	return d.drop("thread_id").set("surface", `"direct"`).set("direct_id", `"direct_0123456789abcdef0123456789abcdef"`)
}

func TestShapeOfConversationKinds(t *testing.T) {
	for _, kind := range core.Kinds() {
		if !kind.Conversation() {
			continue
		}
		workless := ok
		if kind != core.KindSay {
			workless = badShape
		}
		for name, c := range map[string]struct {
			draft *draft
			want  refusal
		}{
			"thread":                        {valid(kind), ok},
			"direct room":                   {room(valid(kind)), ok},
			"no surface":                    {valid(kind).drop("surface"), badSurface},
			"no surface and no container":   {valid(kind).drop("surface").drop("thread_id"), badSurface},
			"thread without thread_id":      {valid(kind).drop("thread_id"), badSurface},
			"direct without direct_id":      {room(valid(kind)).drop("direct_id"), badSurface},
			"thread with both ids":          {valid(kind).set("direct_id", `"direct_0123456789abcdef0123456789abcdef"`), badSurface},
			"direct with both ids":          {room(valid(kind)).set("thread_id", `"thread_abc"`), badSurface},
			"thread with an empty other id": {valid(kind).set("direct_id", `""`), badSurface},
			"thread with a direct_id only":  {room(valid(kind)).set("surface", `"thread"`), badSurface},
			"direct_id too short":           {room(valid(kind)).set("direct_id", `"direct_0123456789abcdef0123456789abcde"`), badSurface},
			"direct_id too long":            {room(valid(kind)).set("direct_id", `"direct_0123456789abcdef0123456789abcdef0"`), badSurface},
			"direct_id in upper case":       {room(valid(kind)).set("direct_id", `"direct_0123456789ABCDEF0123456789abcdef"`), badSurface},
			"direct_id with another letter": {room(valid(kind)).set("direct_id", `"direct_0123456789abcdefg123456789abcdef"`), badSurface},
			"no work_id":                    {valid(kind).drop("work_id"), workless},
			"no work_id and no to":          {valid(kind).drop("work_id").drop("to"), workless},
			"work_id without to":            {valid(kind).drop("to"), badShape},
			"work_id without to in a room":  {room(valid(kind)).drop("to"), badShape},
			"to oneself in a thread":        {valid(kind).set("to", `"planner.sess-1"`), ok},
			"to oneself in a room":          {room(valid(kind)).set("to", `"planner.sess-1"`), badShape},
		} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				_, rej := check(c.draft.raw())
				c.want.verify(t, rej)
			})
		}
	}
	t.Run("say in a room without to", func(t *testing.T) {
		mustCheck(t, room(valid(core.KindSay)).drop("work_id").drop("to").raw())
	})
}

func TestShapeOfDiscoveryKinds(t *testing.T) {
	for _, kind := range []core.Kind{core.KindGreet, core.KindWhois} {
		directed := ok
		if kind == core.KindGreet {
			directed = badShape
		}
		for name, c := range map[string]struct {
			draft *draft
			want  refusal
		}{
			"with a surface":        {valid(kind).set("surface", `"thread"`), badSurface},
			"with an odd surface":   {valid(kind).set("surface", `"x"`), badSurface},
			"with an empty surface": {valid(kind).set("surface", `""`), badSurface},
			"with a thread_id":      {valid(kind).set("thread_id", `"thread_abc"`), badSurface},
			"with a bad thread_id":  {valid(kind).set("thread_id", `"x"`), badSurface},
			"with a direct_id":      {valid(kind).set("direct_id", `"direct_0123456789abcdef0123456789abcdef"`), badSurface},
			"with a work_id":        {valid(kind).set("work_id", `"w"`), badShape},
			"with a to":             {valid(kind).set("to", `"a"`), directed},
			"with mentions":         {valid(kind).set("mentions", `["a"]`), ok},
		} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				_, rej := check(c.draft.raw())
				c.want.verify(t, rej)
			})
		}
	}
}

func TestContainerIsTheThreadOrTheRoom(t *testing.T) {
	for name, c := range map[string]struct {
		draft *draft
		want  core.Container
	}{
		"thread":    {valid(core.KindSay), core.Container{Surface: core.SurfaceThread, ID: "thread_plan-1"}},
		"room":      {room(valid(core.KindSay)), core.Container{Surface: core.SurfaceDirect, ID: "direct_0123456789abcdef0123456789abcdef"}},
		"discovery": {valid(core.KindGreet), core.Container{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustCheck(t, c.draft.raw()).Container(); got != c.want {
				t.Errorf("container %v", got)
			}
		})
	}
}

func TestDirectRoomID(t *testing.T) {
	// printf 'compozy-network/direct-room/v1\0ws\0ch\0a\0b' | sha256sum
	const want = "direct_151a91ec9be4c34bef66513d466f6392"
	got := core.DirectRoomID("ws", "ch", "a", "b")
	if got != want {
		t.Errorf("got %s", got)
	}
	if core.DirectRoomID("ws", "ch", "b", "a") != got {
		t.Error("the order of the parties matters")
	}
	if !core.ValidDirectID(got) {
		t.Error("the derived id does not fit the grammar")
	}
	if core.DirectRoomID("ws", "ch", "a", "c") == got || core.DirectRoomID("w", "sch", "a", "b") == got {
		t.Error("another room has the same id")
	}
}

func TestValidateRunsTheStepsInOrder(t *testing.T) {
	elsewhere := &core.Address{WorkspaceID: "other", Channel: "builders", Class: core.AddressIngress}
	d := valid(core.KindSay).set("body", "{}")
	for name, c := range map[string]struct {
		draft   *draft
		at      time.Time
		address *core.Address
		want    refusal
	}{
		"freshness": {d.drop("surface"), now.Add(time.Hour), elsewhere, refusal{core.ReasonExpired, core.StepFreshness}},
		"shape":     {valid(core.KindSay).drop("surface").set("body", "{}"), now, elsewhere, badSurface},
		"address":   {valid(core.KindSay).set("body", "{}"), now, elsewhere, badShape},
		"body":      {valid(core.KindSay).set("body", "{}"), now, nil, badBody},
		"nothing":   {valid(core.KindSay), now, nil, ok},
	} {
		t.Run(name, func(t *testing.T) {
			e, rej := core.Parse(c.draft.raw())
			if rej != nil {
				t.Fatal(rej)
			}
			c.want.verify(t, e.Validate(c.at, policy(), c.address))
		})
	}
}
