package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
	"github.com/spf13/cobra"
)

// defaultURL is where a gateway with no configuration listens.
const defaultURL = "http://127.0.0.1:8080"

// remote holds the flags of a command that talks to a running gateway.
type remote struct{ options client.Options }

func (r *remote) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&r.options.URL, "url", defaultURL, "base `URL` of the gateway")
	flags.StringVar(&r.options.TokenFile, "token-file", "", "`FILE` that holds the bearer token")
	flags.StringVar(&r.options.CAFile, "ca-file", "", "`FILE` with further certificate authorities to trust")
	flags.StringVar(&r.options.CertFile, "cert-file", "", "`FILE` with this client's certificate")
	flags.StringVar(&r.options.KeyFile, "key-file", "", "`FILE` with the key of --cert-file")
}

func (r *remote) open() (*client.Client, error) {
	c, err := client.New(r.options)
	if err != nil {
		return nil, &usageError{err}
	}
	return c, nil
}

// show fetches one document and prints it: as it came for JSON, else as text
// made of it.
func show[T any](ctx context.Context, r *remote, path string, query url.Values, w io.Writer, asJSON bool, text func(io.Writer, *T) error) error {
	c, err := r.open()
	if err != nil {
		return err
	}
	defer c.Close()
	var raw json.RawMessage
	if err := c.Get(ctx, path, query, &raw); err != nil {
		return err
	}
	if asJSON {
		_, err := fmt.Fprintf(w, "%s\n", core.OneLine(raw))
		return err
	}
	var document T
	if err := json.Unmarshal(raw, &document); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return text(w, &document)
}

// viewer is the peer in whose name something is read.
type viewer struct{ peer string }

func (v *viewer) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.peer, "peer", "", "read as this `PEER`: its direct rooms are shown too")
}

func (v *viewer) query() url.Values {
	if v.peer == "" {
		return nil
	}
	return url.Values{"peer": {v.peer}}
}

// requireFlags marks flags as required; the names are constants of ours, so a
// wrong one is a mistake that every run would show.
func requireFlags(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}
