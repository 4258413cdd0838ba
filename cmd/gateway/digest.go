package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/compozy-gateway/gateway/core"
	"github.com/spf13/cobra"
)

func (p *process) digestCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "digest FILE",
		Short: "Compute the digest of a capability",
		Long: `Compute the digest of a capability document, as a sender must put it into the
document ("-" is stdin). FILE holds the document itself, or an envelope of kind
capability. What the document says of its own digest is not part of it.`,
		Example: "  gateway digest capability.json\n  gateway digest -o json envelope.json",
		Args:    exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			in, err := p.openInput(args)
			if err != nil {
				return err
			}
			defer in.Close()
			raw, err := io.ReadAll(io.LimitReader(in, maxDocumentBytes))
			if err != nil {
				return fmt.Errorf("read %s: %w", args[0], err)
			}
			document, declared, err := findCapability(raw)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			digest, err := core.CapabilityDigest(document)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if out.json() {
				return printJSON(p.stdout, digestReport{Digest: digest, Declared: declared, Matches: digest == declared})
			}
			_, err = fmt.Fprintln(p.stdout, digest)
			return err
		},
	}
	out.addFlag(cmd, "text")
	return cmd
}

type digestReport struct {
	Digest string `json:"digest"`
	// Declared is what the document says of itself.
	Declared string `json:"declared,omitempty"`
	Matches  bool   `json:"matches"`
}

// findCapability takes the document out of an envelope, where it stands in one.
func findCapability(raw []byte) (document []byte, declared string, err error) {
	var envelope struct {
		Protocol string `json:"protocol"`
		Body     struct {
			Capability json.RawMessage `json:"capability"`
		} `json:"body"`
	}
	if err := readObject(raw, &envelope); err != nil {
		return nil, "", err
	}
	document = raw
	if envelope.Protocol != "" {
		if document = envelope.Body.Capability; document == nil {
			return nil, "", fmt.Errorf("the envelope holds no capability")
		}
	}
	var own struct {
		Digest string `json:"digest"`
	}
	if err := readObject(document, &own); err != nil {
		return nil, "", fmt.Errorf("the capability is %w", err)
	}
	return document, own.Digest, nil
}

// readObject reads some members of a JSON object, and says in words of JSON what
// is wrong with one that is none.
func readObject(raw []byte, into any) error {
	err := json.Unmarshal(raw, into)
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	switch {
	case err == nil && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")):
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %w", err)
	case errors.As(err, &shape) && shape.Field != "":
		return fmt.Errorf("not a capability document: %s must not be a JSON %s", shape.Field, shape.Value)
	}
	return errors.New("not a JSON object")
}
