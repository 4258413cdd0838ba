package nats

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// valve is a TCP proxy in front of the broker that can stop passing bytes on
// while its connections stay open.
type valve struct {
	t        testing.TB
	listener net.Listener
	target   string
	work     sync.WaitGroup

	mu    sync.Mutex
	open  *sync.Cond
	shut  bool
	ended bool
	conns []net.Conn
}

func newValve(t testing.TB, target string) *valve {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{t: t, listener: l, target: target}
	v.open = sync.NewCond(&v.mu)
	v.work.Go(v.accept)
	t.Cleanup(v.close)
	return v
}

func (v *valve) accept() {
	for {
		near, err := v.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", v.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		v.mu.Lock()
		v.conns = append(v.conns, near, far)
		v.mu.Unlock()
		v.work.Go(func() { v.pass(near, far) })
		v.work.Go(func() { v.pass(far, near) })
	}
}

func (v *valve) pass(to io.WriteCloser, from io.ReadCloser) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil || !v.wait() {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// wait blocks while the valve is shut; it is false at the end.
func (v *valve) wait() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.shut && !v.ended {
		v.open.Wait()
	}
	return !v.ended
}

func (v *valve) set(shut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shut = shut
	v.open.Broadcast()
}

func (v *valve) close() {
	_ = v.listener.Close()
	v.mu.Lock()
	v.ended = true
	v.open.Broadcast()
	for _, c := range v.conns {
		_ = c.Close()
	}
	v.mu.Unlock()
	v.work.Wait()
}

// TestDeadPeerHoldsNothingUp: the server stops answering with its connection open.
// Sends end with their contexts as unknown, and the carrier still stops in time,
// with settlements outstanding.
func TestDeadPeerHoldsNothingUp(t *testing.T) {
	for _, mode := range []Mode{ModeJetStream, ModeCore} {
		t.Run(string(mode), func(t *testing.T) {
			b := newBroker(t)
			v := newValve(t, strings.TrimPrefix(b.url(), "nats://"))
			cfg := testConfig(b)
			cfg.Mode, cfg.URL = mode, "nats://"+v.listener.Addr().String()
			in := &intake{}
			r := ready(t, cfg, in)
			if o := r.send(message("t0", "x")); o.err != nil {
				t.Fatal(o.err)
			}
			eventually(t, "a frame is unsettled", func() bool { return len(in.seen()) == 1 })
			v.set(true)
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			var reports []<-chan outcome
			big := strings.Repeat("x", 512<<10)
			for i := range 40 {
				began := time.Now()
				reports = append(reports, r.begin(ctx, message(fmt.Sprintf("t%d", i+1), big)))
				if took := time.Since(began); took > 2*writeTimeout {
					t.Fatalf("a send blocked for %v", took)
				}
			}
			for _, reported := range reports {
				if code := sendCode(t, r.outcome(reported).err); code != core.CodeTimeout && code != core.CodeUnavailable {
					t.Errorf("a send to a dead peer: %q", code)
				}
			}
			began := time.Now()
			r.stop()
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("stopping took %v", took)
			}
			in.seen()[0].settle(core.Settlement{Verdict: core.VerdictCommitted})
		})
	}
}

// Bytes stop passing for a while, and nothing that
// was published meanwhile is lost.
func TestBlackHoleIsSurvived(t *testing.T) {
	b := newBroker(t)
	v := newValve(t, strings.TrimPrefix(b.url(), "nats://"))
	cfg := testConfig(b)
	cfg.URL = "nats://" + v.listener.Addr().String()
	in := committing()
	ready(t, cfg, in)
	nc := b.client()
	acks := watchAcks(t, nc)
	consumer := consumerName(testHost(&logs{}))
	eventually(t, "the server was asked for messages", func() bool { return consumerInfo(t, b, consumer).NumWaiting > 0 })
	v.set(true)
	publish(t, stream(t, nc), "m", 20)
	eventually(t, "messages are on their way into the hole", func() bool { return pendingAcks(t, b, consumer) > 0 })
	v.set(false)
	eventually(t, "all are acknowledged", func() bool { return acks.count("+ACK") >= 20 })
}

func writeFile(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWaysToLogIn(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	cert, key := selfSigned(t)
	cases := []struct {
		name string
		tune func(*server.Options)
		cfg  func(*Config)
	}{
		{
			"token",
			func(o *server.Options) { o.Authorization = "t0ken" },
			func(c *Config) { c.TokenFile = writeFile(t, "token", []byte("t0ken\n")) },
		},
		{
			"user and password",
			func(o *server.Options) { o.Username, o.Password = "ada", "s3cret" },
			func(c *Config) { c.Username, c.PasswordFile = "ada", writeFile(t, "password", []byte("s3cret")) },
		},
		{
			"nkey",
			func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} },
			func(c *Config) { c.NKeyFile = writeFile(t, "seed", seed) },
		},
		{
			"client certificate",
			func(o *server.Options) { o.TLS, o.TLSVerify, o.TLSConfig = true, true, serverTLS(t, cert, key) },
			func(c *Config) {
				c.URL = strings.Replace(c.URL, "nats://", "tls://", 1)
				c.TLS.CAFile = writeFile(t, "ca.pem", cert)
				c.TLS.CertFile, c.TLS.KeyFile = writeFile(t, "cert.pem", cert), writeFile(t, "key.pem", key)
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			b := newBroker(t, tc.tune)
			without := run(t, testConfig(b), committing())
			eventually(t, "without it the carrier is not ready", func() bool { return without.Status().State == core.StateNotReady })
			without.stop()
			cfg := testConfig(b)
			tc.cfg(&cfg)
			if problems := cfg.Validate("carriers.nats"); len(problems) > 0 {
				t.Fatal(problems)
			}
			if o := ready(t, cfg, committing()).send(message("t1", "x")); o.err != nil {
				t.Error(o.err)
			}
		})
	}
}

// The log names the file; the status, which anybody may read, does not.
func TestAFileOfTheCredentialsThatCannotBeUsedIsNamedInTheLog(t *testing.T) {
	b := newBroker(t)
	cert, _ := selfSigned(t)
	for name, c := range map[string]struct {
		content []byte
		use     func(c *Config, file string)
		gone    bool
	}{
		"an empty token":      {[]byte("\n"), func(c *Config, file string) { c.TokenFile = file }, false},
		"a token, gone":       {[]byte("x"), func(c *Config, file string) { c.TokenFile = file }, true},
		"a password, gone":    {[]byte("x"), func(c *Config, file string) { c.Username, c.PasswordFile = "ada", file }, true},
		"no credentials":      {[]byte("x"), func(c *Config, file string) { c.CredentialsFile = file }, false},
		"credentials, gone":   {[]byte("x"), func(c *Config, file string) { c.CredentialsFile = file }, true},
		"no seed":             {[]byte("x"), func(c *Config, file string) { c.NKeyFile = file }, false},
		"a certificate, gone": {cert, func(c *Config, file string) { c.TLS.CAFile = file }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, cfg, file := &logs{}, testConfig(b), writeFile(t, "secret", c.content)
			c.use(&cfg, file)
			carrier, err := New(cfg, testHost(l))
			if err != nil {
				t.Fatal(err)
			}
			if c.gone {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			r := runCarrier(t, carrier, committing())
			eventually(t, "the log names the file", func() bool { return strings.Contains(l.String(), file) })
			if why := r.Status().Why; why == "" || strings.Contains(why, file) {
				t.Errorf("the status says %q", why)
			}
		})
	}
}

// selfSigned makes a certificate for 127.0.0.1 that serves both sides.
func selfSigned(t testing.TB) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

func serverTLS(t testing.TB, cert, key []byte) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}
