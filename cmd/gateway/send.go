package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/spf13/cobra"
)

// errNoInput says that the input holds nothing but white space.
var errNoInput = errors.New("the input is empty")

// maxDocumentBytes bounds one envelope that is spread over several lines.
const maxDocumentBytes = 64 << 20

func (p *process) sendCommand() *cobra.Command {
	var (
		r   remote
		out output
		say sayFlags
	)
	cmd := &cobra.Command{
		Use:   "send [FILE]",
		Short: "Send envelopes, from a file, from stdin, or one made from flags",
		Long: `Send one envelope or many, one on each line, from FILE or from stdin ("-"). The
bytes are sent as they are. One envelope may also be spread over several lines.

With --text a say is made from the flags instead, with an id and a time of its
own: in a thread, or with --direct in the direct room of --from and --to.

Every envelope gets one line of output, in order. The exit status is 0 when the
gateway has committed all of them (a duplicate was committed before), else 1.
Sending the same envelope again is always safe.`,
		Example: `  gateway send --workspace demo --channel general --from alice --text "hello"
  gateway send --workspace demo --channel general --from alice --to bob --direct --text "psst"
  gateway send envelope.json
  gateway send -o json < envelopes.ndjson`,
		Args: atMostOne("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			defer c.Close()
			s := sender{client: c, out: p.stdout, json: out.json()}
			if say.used(cmd) {
				if len(args) > 0 {
					return usagef("a FILE and the flags that make a say exclude each other")
				}
				envelope, err := say.build(cmd.Flags().Changed("expires-in"))
				if err != nil {
					return err
				}
				return s.one(cmd.Context(), envelope)
			}
			in, err := p.openInput(args)
			if err != nil {
				return err
			}
			defer in.Close()
			return s.input(cmd.Context(), in)
		},
	}
	r.addFlags(cmd)
	out.addFlag(cmd, "text")
	say.addFlags(cmd)
	return cmd
}

// openInput opens the file that the arguments name, or stdin.
func (p *process) openInput(args []string) (io.ReadCloser, error) {
	if len(args) == 0 || args[0] == "-" {
		return io.NopCloser(p.stdin), nil
	}
	f, err := os.Open(args[0])
	if err != nil {
		return nil, &usageError{err}
	}
	return f, nil
}

// sender sends what a command was given and prints what became of it.
type sender struct {
	client *client.Client
	out    io.Writer
	json   bool
	// refused counts the results that are not commits.
	refused int
}

// input sends everything that in holds. When the first line is no JSON by
// itself, the whole is tried as one document.
func (s *sender) input(ctx context.Context, in io.Reader) error {
	reader := bufio.NewReaderSize(in, 64<<10)
	document, rest, err := splitDocument(reader)
	if errors.Is(err, errNoInput) {
		return usagef("there is nothing to send: %w", err)
	}
	if err != nil {
		return err
	}
	if document != nil {
		return s.one(ctx, document)
	}
	n, err := s.client.PostLines(ctx, rest, s.print)
	if err != nil {
		return fmt.Errorf("after %d results: %w", n, err)
	}
	return s.outcome()
}

// splitDocument decides between one document and lines. It returns the document,
// or a reader of everything, what was looked at included.
func splitDocument(in *bufio.Reader) (document []byte, rest io.Reader, err error) {
	first, err := in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	if json.Valid(first) && err == nil {
		return nil, io.MultiReader(bytes.NewReader(first), in), nil
	}
	all, err := io.ReadAll(io.LimitReader(in, maxDocumentBytes))
	if err != nil {
		return nil, nil, err
	}
	all = append(first, all...)
	if len(bytes.TrimSpace(all)) == 0 {
		return nil, nil, errNoInput
	}
	if json.Valid(all) || bytes.IndexByte(bytes.TrimSpace(all), '\n') < 0 {
		return all, nil, nil
	}
	return nil, io.MultiReader(bytes.NewReader(all), in), nil
}

func (s *sender) one(ctx context.Context, envelope []byte) error {
	result, err := s.client.Post(ctx, envelope)
	if err != nil {
		return err
	}
	if err := s.print(result); err != nil {
		return err
	}
	return s.outcome()
}

func (s *sender) outcome() error {
	if s.refused > 0 {
		return errFailed
	}
	return nil
}

func (s *sender) print(r client.Result) error {
	if !r.Committed() {
		s.refused++
	}
	switch {
	case s.json && r.Committed():
		return printJSON(s.out, commitReport{r.Line, r.Status, r.ID, r.Seq, r.CommittedAt, r.Duplicate, r.Parked})
	case s.json:
		return printJSON(s.out, r)
	}
	_, err := fmt.Fprintln(s.out, describeResult(r))
	return err
}

// commitReport is what a program is told of a message that the gateway has, with
// all members there, as the gateway itself answers.
type commitReport struct {
	Line        int        `json:"line"`
	Status      int        `json:"status"`
	ID          string     `json:"id"`
	Seq         *int64     `json:"seq"`
	CommittedAt *time.Time `json:"committed_at,omitempty"`
	Duplicate   bool       `json:"duplicate"`
	Parked      bool       `json:"parked"`
}

func describeResult(r client.Result) string {
	switch {
	case !r.Committed():
		why := r.ReasonCode
		if why == "" {
			why = r.Title
		}
		return fmt.Sprintf("%d refused: %s: %s", r.Line, printable(why), printable(r.Detail))
	case r.Parked:
		return fmt.Sprintf("%d parked id=%s (it waits for the message that opens its work)", r.Line, printable(r.ID))
	case r.Seq == nil:
		return fmt.Sprintf("%d committed id=%s", r.Line, printable(r.ID))
	case r.Duplicate:
		return fmt.Sprintf("%d duplicate id=%s seq=%d (committed before)", r.Line, printable(r.ID), *r.Seq)
	default:
		return fmt.Sprintf("%d committed id=%s seq=%d", r.Line, printable(r.ID), *r.Seq)
	}
}
