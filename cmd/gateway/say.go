package main

import (
	"time"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/compose"
	"github.com/compozy-gateway/gateway/core"
	"github.com/spf13/cobra"
)

// sayFlags make a say for somebody who has no envelope at hand.
type sayFlags struct {
	workspace, channel, thread  string
	from, to, text              string
	mentions                    []string
	work, replyTo, id, causedBy string
	direct                      bool
	expiresIn                   time.Duration
}

// sayFlagNames are the flags that cannot be combined with input of one's own.
func sayFlagNames() []string {
	return []string{
		"text", "workspace", "channel", "thread", "direct", "from", "to", "mention",
		"work-id", "reply-to", "causation-id", "id", "expires-in",
	}
}

func (s *sayFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.text, "text", "", "`TEXT` to say")
	flags.StringVar(&s.workspace, "workspace", "", "workspace `ID`")
	flags.StringVar(&s.channel, "channel", "", "`CHANNEL` of the workspace")
	flags.StringVar(&s.thread, "thread", "thread_main", "`THREAD` to say it in")
	flags.BoolVar(&s.direct, "direct", false, "say it in the direct room of --from and --to")
	flags.StringVar(&s.from, "from", "", "`PEER` that says it")
	flags.StringVar(&s.to, "to", "", "`PEER` that it is for")
	flags.StringSliceVar(&s.mentions, "mention", nil, "`PEER` to mention; may be repeated")
	flags.StringVar(&s.work, "work-id", "", "`ID` of the work that it opens or belongs to")
	flags.StringVar(&s.replyTo, "reply-to", "", "`ID` of the message that it answers")
	flags.StringVar(&s.causedBy, "causation-id", "", "`ID` of the message that caused it")
	flags.StringVar(&s.id, "id", "", "`ID` of the message; without it a new one is made")
	flags.DurationVar(&s.expiresIn, "expires-in", 0, "`DURATION` after which it is refused")
}

// used reports whether any of the flags was given.
func (s *sayFlags) used(cmd *cobra.Command) bool {
	for _, name := range sayFlagNames() {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// build makes the envelope; expires says that a lifetime was given. Only what
// cannot be sent at all is refused here; the gateway judges the rest.
func (s *sayFlags) build(expires bool) ([]byte, error) {
	for _, f := range []struct{ name, value string }{
		{"text", s.text}, {"workspace", s.workspace}, {"channel", s.channel}, {"from", s.from},
	} {
		if f.value == "" {
			return nil, usagef("--%s is needed to make a say", f.name)
		}
	}
	if s.direct && s.to == "" {
		return nil, usagef("--direct needs --to: a direct room has two peers")
	}
	if expires && s.expiresIn < time.Second {
		return nil, usagef("--expires-in: %s is less than 1s; without it the message has no expiry of its own", s.expiresIn)
	}
	e := compose.Envelope{
		ID: s.id, WorkspaceID: s.workspace, Kind: core.KindSay, Channel: s.channel, From: s.from,
		Mentions: s.mentions, WorkID: s.work, ReplyTo: s.replyTo, CausationID: s.causedBy,
		Body: compose.SayBody{Text: s.text},
	}
	e.Address(s.to)
	if s.direct {
		e.InDirectRoom(core.DirectRoomID(s.workspace, s.channel, s.from, s.to))
	} else {
		e.InThread(s.thread)
	}
	e.Stamp(time.Now(), s.expiresIn)
	return e.JSON()
}
