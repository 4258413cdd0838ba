package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/gateway"
	"github.com/spf13/cobra"
)

func (p *process) validateCommand() *cobra.Command {
	var (
		out output
		at  string
	)
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check envelopes in files against the protocol",
		Long: `Check envelopes, one on each line of the files ("-" is stdin), against everything
that can be told from an envelope alone: its form, its fields, its addressing and
its body. A file may also hold one envelope that is spread over several lines.

Whether an envelope is fresh depends on when it is asked, so stored envelopes are
not judged by it; --at asks, with "now", a Unix time in seconds or an RFC 3339
time.

Every envelope gets one line of output. The exit status is 0 when all are valid,
1 when one is not.`,
		Example: "  gateway validate envelopes.ndjson\n  gateway validate --at now -o json - < envelope.json",
		Args:    atLeastOne("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			v := validator{out: p.stdout, json: out.json()}
			if at != "" {
				instant, err := parseInstant(at, time.Now())
				if err != nil {
					return err
				}
				v.at = instant
			}
			for _, name := range args {
				if err := p.validateFile(&v, name); err != nil {
					return err
				}
			}
			if v.invalid > 0 {
				return errFailed
			}
			return nil
		},
	}
	out.addFlag(cmd, "text")
	cmd.Flags().StringVar(&at, "at", "", "also judge freshness, as of this `TIME`")
	return cmd
}

func (p *process) validateFile(v *validator, name string) error {
	in, err := p.openInput([]string{name})
	if err != nil {
		return err
	}
	defer in.Close()
	document, rest, err := splitDocument(bufio.NewReaderSize(in, 64<<10))
	if errors.Is(err, errNoInput) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if document != nil {
		return v.envelope(name, 1, document)
	}
	lines := newLineReader(rest)
	for n := 1; ; n++ {
		line, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLineTooLong):
			err = v.report(name, n, nil, &core.Rejection{Reason: core.ReasonMalformed, Detail: err.Error(), TooLarge: true})
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		case len(bytes.TrimSpace(line)) == 0:
			continue
		default:
			err = v.envelope(name, n, line)
		}
		if err != nil {
			return err
		}
	}
}

// validator checks envelopes and prints one line for each.
type validator struct {
	out  io.Writer
	json bool
	// at is the instant at which freshness is judged; zero means that it is not.
	at time.Time
	// invalid counts the envelopes that are not valid.
	invalid int
}

func (v *validator) envelope(file string, line int, raw []byte) error {
	env, rejection := core.Parse(raw)
	for _, check := range []func() *core.Rejection{
		func() *core.Rejection { return v.fresh(env) },
		func() *core.Rejection { return env.CheckShape() },
		func() *core.Rejection { return env.CheckBody() },
	} {
		if rejection != nil {
			break
		}
		rejection = check()
	}
	return v.report(file, line, env, rejection)
}

func (v *validator) fresh(env *core.Envelope) *core.Rejection {
	if v.at.IsZero() {
		return nil
	}
	protocol := gateway.DefaultConfig().Protocol
	return env.CheckFresh(v.at, core.FreshnessPolicy{MaxReplayAge: protocol.MaxReplayAge, MaxLifetime: protocol.MaxLifetime})
}

// verdict is one line of the command's output.
type verdict struct {
	File       string `json:"file"`
	Line       int    `json:"line"`
	Valid      bool   `json:"valid"`
	ID         string `json:"id,omitempty"`
	Kind       string `json:"kind,omitempty"`
	ReasonCode string `json:"reason_code,omitempty"`
	Detail     string `json:"detail,omitempty"`
}

func (v *validator) report(file string, line int, env *core.Envelope, rejection *core.Rejection) error {
	found := verdict{File: file, Line: line, Valid: rejection == nil}
	if env != nil {
		found.ID, found.Kind = env.ID, string(env.Kind)
	}
	if rejection != nil {
		v.invalid++
		found.ReasonCode, found.Detail = string(rejection.Reason), rejection.Detail
	}
	if v.json {
		return printJSON(v.out, found)
	}
	text := fmt.Sprintf("valid %s id=%s", found.Kind, printable(found.ID))
	if rejection != nil {
		text = fmt.Sprintf("%s: %s", found.ReasonCode, printable(found.Detail))
	}
	_, err := fmt.Fprintf(v.out, "%s:%d: %s\n", file, line, text)
	return err
}

// parseInstant reads "now", Unix seconds or an RFC 3339 time.
func parseInstant(text string, now time.Time) (time.Time, error) {
	if text == "now" {
		return now, nil
	}
	var seconds int64
	if _, err := fmt.Sscanf(text, "%d", &seconds); err == nil && fmt.Sprint(seconds) == text {
		return time.Unix(seconds, 0), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, usagef("--at: %q is neither now, Unix seconds nor an RFC 3339 time", text)
	}
	return t, nil
}
