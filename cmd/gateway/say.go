package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

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

// sayEnvelope is the envelope in the order in which the protocol page lists its
// fields. The absent recipient and proof are written as null, as the protocol
// recommends to senders.
type sayEnvelope struct {
	Protocol    string   `json:"protocol"`
	ID          string   `json:"id"`
	WorkspaceID string   `json:"workspace_id"`
	Kind        string   `json:"kind"`
	Channel     string   `json:"channel"`
	Surface     string   `json:"surface"`
	ThreadID    string   `json:"thread_id,omitempty"`
	DirectID    string   `json:"direct_id,omitempty"`
	From        string   `json:"from"`
	To          *string  `json:"to"`
	Mentions    []string `json:"mentions,omitempty"`
	WorkID      string   `json:"work_id,omitempty"`
	ReplyTo     string   `json:"reply_to,omitempty"`
	CausationID string   `json:"causation_id,omitempty"`
	TS          int64    `json:"ts"`
	ExpiresAt   int64    `json:"expires_at,omitempty"`
	Body        sayBody  `json:"body"`
	Proof       *string  `json:"proof"`
}

type sayBody struct {
	Text string `json:"text"`
}

// build makes the envelope. Only what cannot be sent at all is refused here; the
// gateway judges the rest.
func (s *sayFlags) build() ([]byte, error) {
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
	now := time.Now()
	e := sayEnvelope{
		Protocol: core.Protocol, ID: s.id, WorkspaceID: s.workspace, Kind: string(core.KindSay), Channel: s.channel,
		Surface: string(core.SurfaceThread), ThreadID: s.thread,
		From: s.from, Mentions: s.mentions, WorkID: s.work, ReplyTo: s.replyTo, CausationID: s.causedBy,
		TS: now.Unix(), Body: sayBody{Text: s.text},
	}
	if e.ID == "" {
		e.ID = newMessageID()
	}
	if s.to != "" {
		e.To = &s.to
	}
	if s.direct {
		e.Surface, e.ThreadID = string(core.SurfaceDirect), ""
		e.DirectID = core.DirectRoomID(s.workspace, s.channel, s.from, s.to)
	}
	if s.expiresIn > 0 {
		e.ExpiresAt = now.Add(s.expiresIn).Unix()
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, fmt.Errorf("write the envelope: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// newMessageID is a random UUID (version 4).
func newMessageID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // It never fails: it ends the process first.
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
