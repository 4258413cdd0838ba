package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
	"github.com/spf13/cobra"
)

func (p *process) tailCommand() *cobra.Command {
	var (
		r                  remote
		out                output
		v                  viewer
		workspace, channel string
		after              int64
	)
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Follow what is committed in a channel",
		Long: `Follow a channel: every committed message that may be observed, one on each line,
until interrupted. When the connection breaks it is taken up again where it
broke, without gap or repeat.

It starts with what comes next; --after starts behind a position of the history
(0 is the beginning of what is kept).`,
		Example: "  gateway tail --workspace demo --channel general\n  gateway tail --workspace demo --channel general --peer alice --after 0 -o text",
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			defer c.Close()
			query := v.query()
			if cmd.Flags().Changed("after") {
				if query == nil {
					query = url.Values{}
				}
				query.Set("after", strconv.FormatInt(after, 10))
			}
			t := follower{
				client: c, logger: p.logger(), query: query,
				path: client.Path("workspaces", workspace, "channels", channel, "stream"),
				each: func(e client.Event) error { return p.printEvent(e, out.json()) },
			}
			return t.run(cmd.Context())
		},
	}
	r.addFlags(cmd)
	out.addFlag(cmd, "json")
	v.addFlag(cmd)
	cmd.Flags().StringVar(&workspace, "workspace", "", "workspace `ID`")
	cmd.Flags().StringVar(&channel, "channel", "", "`CHANNEL` to follow")
	cmd.Flags().Int64Var(&after, "after", 0, "start behind this `SEQ` of the history")
	requireFlags(cmd, "workspace", "channel")
	return cmd
}

// follower follows one stream over broken connections.
type follower struct {
	client *client.Client
	logger *slog.Logger
	path   string
	query  url.Values
	each   func(client.Event) error
	// lastID is the position of the last event that was given to each.
	lastID string
}

// run ends cleanly when ctx does. A first connection that fails is an error;
// later ones are tried again for ever.
func (f *follower) run(ctx context.Context) error {
	var wait backoff
	connected := false
	for {
		err := f.client.Stream(ctx, f.path, f.query, f.lastID, func(e client.Event) error {
			connected = true
			wait.reset()
			if err := f.each(e); err != nil {
				return err
			}
			f.lastID = e.ID
			f.logger.Debug("position", "seq", e.ID)
			return nil
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (!client.Passing(err) || !connected && f.lastID == ""):
			return err
		}
		connected = true
		f.logger.Info("stream ended, connecting again", "cause", err)
		if !wait.sleep(ctx, client.RetryAfter(err)) {
			return nil
		}
	}
}

func (p *process) printEvent(e client.Event, asJSON bool) error {
	switch e.Name {
	case "gap":
		p.warnOfGap(e)
		return nil
	case "envelope":
	default:
		return nil
	}
	if asJSON {
		_, err := fmt.Fprintf(p.stdout, "%s\n", e.Data)
		return err
	}
	_, err := fmt.Fprintln(p.stdout, describeEnvelope(e.ID, e.Data))
	return err
}

// warnOfGap tells why a stream does not go on where it was asked to. A position
// ahead of the history was never given: nothing is lost behind it.
func (p *process) warnOfGap(e client.Event) {
	var gap struct {
		After          int64 `json:"after"`
		ContinuesAfter int64 `json:"continues_after"`
	}
	err := json.Unmarshal(e.Data, &gap)
	if err == nil && gap.After > gap.ContinuesAfter {
		p.logger().Warn("the position is unknown to this gateway; what comes next is shown",
			"position", gap.After, "continues_after", gap.ContinuesAfter)
		return
	}
	p.logger().Warn("messages behind the position are no longer kept",
		"position", gap.After, "continues_after", e.ID)
}

// describeEnvelope tells a person what a message says, on one line.
func describeEnvelope(seq string, raw []byte) string {
	env, rejection := core.Parse(raw)
	if rejection != nil {
		return fmt.Sprintf("%s %s", seq, printable(string(raw)))
	}
	where := string(env.Kind)
	if id := env.Container().ID; id != "" {
		where += " in " + id
	}
	line := fmt.Sprintf("%s %s %s", seq, time.Unix(env.TS, 0).UTC().Format(time.TimeOnly+"Z"), printable(env.From))
	if env.To != "" {
		line += " -> " + printable(env.To)
	}
	line += " " + printable(where)
	if env.CheckBody() != nil {
		return line
	}
	switch {
	case env.Receipt != nil:
		line += fmt.Sprintf(": %s %s", env.Receipt.Status, printable(env.Receipt.ForID))
	case env.Trace != nil:
		line += fmt.Sprintf(": %s %s", printable(env.WorkID), env.Trace.State)
	case env.Text != "":
		line += ": " + printable(env.Text)
	}
	return line
}
