package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Options say which gateway to talk to and how.
type Options struct {
	// URL is the gateway's base URL, such as http://127.0.0.1:8080.
	URL string
	// TokenFile holds the bearer token; it is read for every request, so a token
	// may be replaced while the client runs. Empty means no token.
	TokenFile string
	// CAFile holds the authorities trusted beside the system's own, PEM.
	CAFile string
	// CertFile and KeyFile hold the client's own certificate, where the gateway
	// demands one.
	CertFile, KeyFile string
}

// Client talks to one gateway. It is safe for concurrent use.
type Client struct {
	base      string
	tokenFile string
	http      *http.Client
}

// headerTimeout bounds the wait for an answer to begin. It is longer than the
// longest long poll.
const headerTimeout = 90 * time.Second

// New checks the options. It does not connect.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("--url: use the form http://HOST:PORT or https://HOST:PORT")
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		ResponseHeaderTimeout: headerTimeout,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       time.Minute,
	}
	if transport.TLSClientConfig, err = tlsConfig(o); err != nil {
		return nil, err
	}
	if o.TokenFile != "" {
		if _, err := os.ReadFile(o.TokenFile); err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
	}
	return &Client{
		base:      strings.TrimRight(u.String(), "/"),
		tokenFile: o.TokenFile,
		http:      &http.Client{Transport: transport, CheckRedirect: refuseRedirect},
	}, nil
}

// refuseRedirect hands a redirect back as the answer: no call of the interface
// redirects, and a token must not follow one.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func tlsConfig(o Options) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		if out.RootCAs, err = x509.SystemCertPool(); err != nil {
			return nil, fmt.Errorf("--ca-file: read the system's authorities: %w", err)
		}
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--ca-file: %s holds no PEM certificate", o.CAFile)
		}
	}
	if o.CertFile != "" || o.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("--cert-file and --key-file: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

// URL is the base URL of the gateway.
func (c *Client) URL() string { return c.base }

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Path joins path segments, each escaped, so that a workspace id may hold a
// slash.
func Path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/v0")
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// do sends one request. An answer outside 2xx becomes a *Problem; otherwise the
// caller closes the body.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body io.Reader, header http.Header) (*http.Response, error) {
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if c.tokenFile != "" {
		token, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, &UnreachableError{URL: c.base, Err: err}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, readProblem(resp)
	}
	return resp, nil
}

// Get reads a JSON answer into out, which may be a *json.RawMessage to have it
// as it came.
func (c *Client) Get(ctx context.Context, path string, query url.Values, out any) error {
	return c.call(ctx, http.MethodGet, path, query, nil, nil, out)
}

// Call makes a request without a body; an answer is discarded.
func (c *Client) Call(ctx context.Context, method, path string) error {
	return c.call(ctx, method, path, nil, nil, nil, nil)
}

func (c *Client) call(ctx context.Context, method, path string, query url.Values, body io.Reader, header http.Header, out any) error {
	resp, err := c.do(ctx, method, path, query, body, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	} else {
		err = json.NewDecoder(resp.Body).Decode(out)
	}
	if err != nil {
		return fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	return nil
}
