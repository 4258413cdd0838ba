//go:build brokers

package integration

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
)

// authority signs the certificates of one test.
type authority struct {
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// newAuthority makes an authority that nobody trusts yet. Everybody may read its
// files, keys included: brokers run as users of their own.
func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key = a.sign(t, template)
	return a
}

// pair is the names of the files of one certificate.
type pair struct{ cert, key string }

// issue makes a certificate for this machine that serves both sides.
func (a *authority) issue(t *testing.T, name string) pair {
	t.Helper()
	a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return pair{a.file(name + ".pem"), a.file(name + ".key")}
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// root is the file of the authority's own certificate.
func (a *authority) root() string { return a.file("authority.pem") }

// sign signs the template, by itself where there is no authority yet, and writes
// the files.
func (a *authority) sign(t *testing.T, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for suffix, block := range map[string]*pem.Block{
		".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(a.file(template.Subject.CommonName+suffix), pem.EncodeToMemory(block), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// client is the section of a configuration that shows a certificate.
func (a *authority) client(p pair) object {
	return object{"ca_file": a.root(), "cert_file": p.cert, "key_file": p.key}
}

// lock makes the brokers speak to none but holders of the authority's
// certificates, and the NATS server, which has two accounts, to known users only.
func (a *authority) lock(t *testing.T, at brokers, nkey string) {
	t.Helper()
	broker := a.issue(t, "broker")
	at.nats.more = fmt.Sprintf(`tls: {cert_file: %q, key_file: %q, ca_file: %q, verify: true}
accounts: {
  LAB: {jetstream: enabled, users: [{nkey: %s}, {user: client, password: spoken}]}
  ELSEWHERE: {jetstream: enabled, users: [{user: stranger, password: spoken}]}
}
`, broker.cert, broker.key, a.root(), nkey)
	at.mqtt.more = fmt.Sprintf("cafile %s\ncertfile %s\nkeyfile %s\nrequire_certificate true\nuse_identity_as_username true\n",
		a.root(), broker.cert, broker.key)
	// mosquitto's own user must get there.
	for dir := a.dir; dir != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	at.nats.start(t)
	at.mqtt.start(t)
}

// TestEveryConnectionMayBeTLSWithClientCertificates has TLS with certificates of
// both sides on each connection of the gateway, and an nkey for an account on top.
func TestEveryConnectionMayBeTLSWithClientCertificates(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	at := brokers{nats: newNATSServer(t), mqtt: newMosquitto(t)}
	seed, public := newNKey(t)
	a.lock(t, at, public)
	own, person := a.issue(t, "gateway"), a.issue(t, "person")
	hook := a.hook(t)
	secure := address(freePort(t))
	g := newGateway(t, at, object{
		"carriers.nats.url": "tls://" + address(at.nats.port), "carriers.nats.tls": a.client(own), "carriers.nats.nkey_file": seed,
		"carriers.mqtt.url": "ssl://" + address(at.mqtt.port), "carriers.mqtt.tls": a.client(own),
		"carriers.secure": object{
			"type": "http", "listen": secure,
			"tls":      object{"cert_file": own.cert, "key_file": own.key, "client_ca_file": a.root()},
			"webhooks": object{"crm": object{"url": hook.URL, "allow_private": true, "tls": a.client(own)}},
		},
	})
	g.start(t)

	files := object{"caFile": a.root(), "certFile": person.cert, "keyFile": person.key}
	// The package nats compares certificates with names only.
	server := strings.Replace(at.nats.url(), "127.0.0.1", "localhost", 1)
	client := connectNodeWith(t, server, object{"user": "client", "pass": "spoken", "tls": files})
	client.subscribe(t, subjectPrefix+">")
	stranger := connectNodeWith(t, server, object{"user": "stranger", "pass": "spoken", "tls": files})
	stranger.subscribe(t, subjectPrefix+">")
	certificates := []string{"--cafile", a.root(), "--cert", person.cert, "--key", person.key}
	device := subscribeWith(t, at.mqtt.port, append(certificates, "-t", topicPrefix+"#")...)

	sent := map[string]string{}
	for _, via := range []string{"nats", "mqtt", "http"} {
		sent[via] = say("by-"+via, via+"-side", "behind TLS").String()
	}
	client.store(t, broadcastSubject, sent["nats"])
	stranger.do(t, object{"do": "create", "config": object{"name": streamName, "subjects": []string{"compozy.network.v0.>"}}})
	stranger.store(t, broadcastSubject, say("by-a-stranger", "stranger", "from another account").String())
	if _, stderr, status := output(t, 10*time.Second, []byte(sent["mqtt"]), need(t, "mosquitto_pub", "mosquitto-clients"),
		append(certificates, "-h", "127.0.0.1", "-p", fmt.Sprint(at.mqtt.port), "-q", "1", "-t", broadcastTopic, "-s")...); status != 0 {
		t.Fatalf("mosquitto_pub ends with %d: %s", status, stderr)
	}
	flags := []string{"--url", "https://" + secure, "--ca-file", a.root(), "--cert-file", person.cert, "--key-file", person.key}
	if stdout, stderr, status := output(t, 20*time.Second, []byte(sent["http"]+"\n"), gatewayBinary, append([]string{"send"}, flags...)...); status != 0 {
		t.Fatalf("gateway send ends with %d: %s%s", status, stdout, stderr)
	}

	all := []string{sent["nats"], sent["mqtt"], sent["http"]}
	client.await(t, arriveWithin, "the NATS client", all...)
	device.await(t, arriveWithin, "the device", all...)
	hook.await(t, arriveWithin, "the webhook", all...)
	want := map[string]string{"carrier:nats": "acked jetstream.puback", "carrier:mqtt": "acked mqtt.puback", "webhook:crm": "acked http.2xx"}
	got := g.awaitSettled(t, arriveWithin, "by-http").acks()
	for link, ack := range want {
		if got[link] != ack {
			t.Errorf("the delivery to %s ends as %q, want %q", link, got[link], ack)
		}
	}
	if _, known := g.find(t, "by-a-stranger"); known {
		t.Error("a message of another account came in")
	}
	for id := range stranger.count() {
		if id != "by-a-stranger" {
			t.Errorf("the other account got %s", id)
		}
	}
	checkShutOut(t, a, secure)
}

// newNKey makes a user of NATS: a file with its seed, and its public key.
func newNKey(t *testing.T) (seedFile, public string) {
	t.Helper()
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = user.PublicKey(); err != nil {
		t.Fatal(err)
	}
	seedFile = filepath.Join(t.TempDir(), "user.nk")
	if err := os.WriteFile(seedFile, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return seedFile, public
}

// hook is a webhook's endpoint that demands a client certificate.
type hook struct {
	*httptest.Server
	arrivals
}

func (a *authority) hook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // not a whole call
		}
		h.add(r.TLS.PeerCertificates[0].Subject.CommonName, body)
	}))
	p := a.issue(t, "endpoint")
	certificate, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	h.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

// checkShutOut wants nobody in who has no certificate of the authority.
func checkShutOut(t *testing.T, a *authority, secure string) {
	t.Helper()
	foreign := newAuthority(t).issue(t, "person")
	for name, certificate := range map[string][]string{
		"without a certificate":       nil,
		"with a foreign certificate":  {"--cert", foreign.cert, "--key", foreign.key},
		"with one that is not theirs": {"--cert", a.file("person.pem"), "--key", foreign.key},
	} {
		arguments := append([]string{"-s", "--max-time", "10", "--cacert", a.root()}, certificate...)
		if stdout, _, status := output(t, 20*time.Second, nil, need(t, "curl", "curl"), append(arguments, "https://"+secure+"/healthz")...); status == 0 || stdout != "" {
			t.Errorf("a caller %s is answered: %s", name, stdout)
		}
	}
}

// TestAGatewaySaysWhyTLSFails: it trusts nobody, or nobody trusts it.
func TestAGatewaySaysWhyTLSFails(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	at := brokers{nats: newNATSServer(t), mqtt: newMosquitto(t)}
	_, public := newNKey(t)
	a.lock(t, at, public)
	foreign := newAuthority(t).issue(t, "gateway")
	g := newGateway(t, at, object{
		"carriers.nats.url": "tls://" + address(at.nats.port), "carriers.mqtt.url": "ssl://" + address(at.mqtt.port),
		"carriers.nats.tls": object{"cert_file": foreign.cert, "key_file": foreign.key, "ca_file": a.root()},
	})
	g.launch(t)
	for name, reason := range map[string]string{"nats": "bad certificate", "mqtt": "unknown authority"} {
		var state, why string
		eventually(t, backWithin, "the carrier "+name+" says why", func() bool {
			state, why = g.carrier(t, name)
			return strings.Contains(why, reason)
		})
		if state == "ready" {
			t.Errorf("the carrier %s is %q: %s", name, state, why)
		}
	}
	var answer bytes.Buffer
	if _, body := g.get("/v0/carriers"); json.Compact(&answer, body) != nil || strings.Contains(answer.String(), "PRIVATE KEY") {
		t.Errorf("the carriers are told as %s", body)
	}
}
