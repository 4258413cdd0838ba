package mqtt

import (
	"context"
	"log/slog"
	"strings"
)

// quiet hands the embedded broker's log on without what does not belong into
// ours: its progress reports become debug messages, packets (which hold content,
// and passwords) are left out, and so is the secret part of our client ids.
type quiet struct {
	next   slog.Handler
	secret string
}

var _ slog.Handler = quiet{}

func demoted(l slog.Level) slog.Level {
	if l == slog.LevelInfo {
		return slog.LevelDebug
	}
	return l
}

// Enabled asks for the level at which the message will be shown.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return q.next.Enabled(ctx, demoted(l))
}

// Handle passes the record on.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, demoted(r.Level), "embedded MQTT broker: "+r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if kept, ok := q.clean(a); ok {
			out.AddAttrs(kept)
		}
		return true
	})
	return q.next.Handle(ctx, out)
}

// WithAttrs passes the attributes on.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	kept := make([]slog.Attr, 0, len(attrs))
	for _, a := range attrs {
		if a, ok := q.clean(a); ok {
			kept = append(kept, a)
		}
	}
	return quiet{next: q.next.WithAttrs(kept), secret: q.secret}
}

// WithGroup passes the group on.
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{next: q.next.WithGroup(name), secret: q.secret}
}

func (q quiet) clean(a slog.Attr) (slog.Attr, bool) {
	switch a.Key {
	case "pk", "packet", "will":
		return a, false
	case "client":
		return slog.String(a.Key, strings.ReplaceAll(a.Value.String(), q.secret, "...")), true
	}
	return a, true
}
