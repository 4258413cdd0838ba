package nats

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// operator trusts accounts, which trust users, each by a signed claim: the
// server knows no password of anybody.
type operator struct {
	t      *testing.T
	key    nkeys.KeyPair
	claims *jwt.OperatorClaims
	known  *server.MemAccResolver
	system string
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	o := &operator{t: t, known: &server.MemAccResolver{}}
	o.key = o.pair(nkeys.CreateOperator)
	o.claims = jwt.NewOperatorClaims(o.public(o.key))
	// The server reads the claims as they were signed.
	signed, err := o.claims.Encode(o.key)
	if err != nil {
		t.Fatal(err)
	}
	if o.claims, err = jwt.DecodeOperatorClaims(signed); err != nil {
		t.Fatal(err)
	}
	o.system = o.public(o.account(false).key)
	return o
}

func (o *operator) pair(create func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	o.t.Helper()
	pair, err := create()
	if err != nil {
		o.t.Fatal(err)
	}
	return pair
}

func (o *operator) public(pair nkeys.KeyPair) string {
	o.t.Helper()
	public, err := pair.PublicKey()
	if err != nil {
		o.t.Fatal(err)
	}
	return public
}

// tune makes a server trust the operator alone.
func (o *operator) tune(options *server.Options) {
	options.TrustedOperators = []*jwt.OperatorClaims{o.claims}
	options.AccountResolver, options.SystemAccount = o.known, o.system
}

// account is one account of an operator.
type account struct {
	operator *operator
	key      nkeys.KeyPair
}

func (o *operator) account(streams bool) *account {
	o.t.Helper()
	a := &account{operator: o, key: o.pair(nkeys.CreateAccount)}
	claims := jwt.NewAccountClaims(o.public(a.key))
	if streams {
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
			MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
		}
	}
	signed, err := claims.Encode(o.key)
	if err != nil {
		o.t.Fatal(err)
	}
	if err := o.known.Store(o.public(a.key), signed); err != nil {
		o.t.Fatal(err)
	}
	return a
}

// credentials is the content of a credentials file of a new user.
func (a *account) credentials() []byte {
	a.operator.t.Helper()
	user := a.operator.pair(nkeys.CreateUser)
	signed, err := jwt.NewUserClaims(a.operator.public(user)).Encode(a.key)
	if err != nil {
		a.operator.t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		a.operator.t.Fatal(err)
	}
	content, err := jwt.FormatUserConfig(signed, seed)
	if err != nil {
		a.operator.t.Fatal(err)
	}
	return content
}

// TestAccountsAreKeptApartByCredentials: two carriers with the same subjects and
// the same stream name on one server, each in the account of its credentials file.
func TestAccountsAreKeptApartByCredentials(t *testing.T) {
	for _, mode := range []Mode{ModeJetStream, ModeCore} {
		t.Run(string(mode), func(t *testing.T) {
			o := newOperator(t)
			b := newBroker(t, o.tune)
			var sides [2]struct {
				in     *intake
				r      *running
				client *natsgo.Conn
			}
			for i := range sides {
				a := o.account(true)
				cfg := testConfig(b)
				cfg.Mode, cfg.CredentialsFile = mode, writeFile(t, fmt.Sprintf("user-%d.creds", i), a.credentials())
				if problems := cfg.Validate("carriers.nats"); len(problems) > 0 {
					t.Fatal(problems)
				}
				sides[i].in = committing()
				sides[i].r = ready(t, cfg, sides[i].in)
				// Another user of the same account.
				sides[i].client = b.client(natsgo.UserCredentials(writeFile(t, "client.creds", a.credentials())))
			}
			here, there := sides[0], sides[1]
			heardHere, heardThere := hear(t, here.client, labBroadcast), hear(t, there.client, labBroadcast)
			if err := here.client.Publish(labBroadcast, []byte("in")); err != nil {
				t.Fatal(err)
			}
			if err := here.client.Flush(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the account's own message is offered", func() bool { return len(here.in.seen()) == 1 })
			if o := here.r.send(message("t1", "out")); o.err != nil {
				t.Fatal(o.err)
			}
			for _, want := range []string{"in", "out"} {
				if m, err := heardHere.NextMsg(patience); err != nil || string(m.Data) != want {
					t.Fatalf("the account's own client got %v, %v, want %q", m, err, want)
				}
			}
			// Whatever crossed would stand before this one.
			if err := there.client.Publish(labBroadcast, []byte("theirs")); err != nil {
				t.Fatal(err)
			}
			if m, err := heardThere.NextMsg(patience); err != nil || string(m.Data) != "theirs" {
				t.Errorf("the other account's client got %v, %v", m, err)
			}
			eventually(t, "the other account's message is offered", func() bool { return len(there.in.seen()) > 0 })
			if got := string(there.in.seen()[0].Payload); got != "theirs" {
				t.Errorf("the other account was offered %q", got)
			}
		})
	}
}

// TestCredentialsMayBeRenewedWhileTheGatewayRuns: the file is read at each
// connect.
func TestCredentialsMayBeRenewedWhileTheGatewayRuns(t *testing.T) {
	o := newOperator(t)
	a, stranger := o.account(true), newOperator(t).account(true)
	b := newBroker(t, o.tune)
	cfg := testConfig(b)
	cfg.CredentialsFile = filepath.Join(t.TempDir(), "user.creds")
	renew := func(content []byte) {
		if err := os.WriteFile(cfg.CredentialsFile, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	renew(stranger.credentials())
	log := &logs{}
	c, err := New(cfg, testHost(log))
	if err != nil {
		t.Fatal(err)
	}
	r := runCarrier(t, c, committing())
	eventually(t, "a stranger's credentials are refused", func() bool {
		s := r.Status()
		return s.State == core.StateNotReady && s.Why != ""
	})
	renew(a.credentials())
	eventually(t, "the new credentials count", func() bool { return r.Status().State == core.StateReady })
	r.stop()
	// The head of a signed claim, and that of a user's seed.
	for _, secret := range []string{"eyJ0eXAi", "SUA"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log holds %s...:\n%s", secret, log)
		}
	}
}
