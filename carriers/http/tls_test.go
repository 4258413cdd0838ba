package http

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	nethttp "net/http"
	"net/http/httptest"
	"testing"

	"github.com/compozy-gateway/gateway/carriers/internal/tlsfiles"
)

// serverFiles writes the certificate of an httptest server and its key.
func serverFiles(t *testing.T, srv *httptest.Server) (cert, key string) {
	t.Helper()
	pair := srv.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return file(t, "cert.pem", string(certPEM)), file(t, "key.pem", string(keyPEM))
}

func TestTheListenerAndWebhooksSpeakTLS(t *testing.T) {
	far := httptest.NewTLSServer(nethttp.HandlerFunc(func(nethttp.ResponseWriter, *nethttp.Request) {}))
	t.Cleanup(far.Close)
	cert, key := serverFiles(t, far)

	s := start(t, func(c *Config) { c.TLS = tlsfiles.Config{CertFile: cert, KeyFile: key} },
		withHook(far.URL, func(w *WebhookConfig) { w.TLS.CAFile = cert }))
	s.url = "https" + s.url[len("http"):]
	roots := x509.NewCertPool()
	roots.AddCert(far.Certificate())
	s.client.Transport.(*nethttp.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	wantStatus(t, s.post(say("e1")), 202)
	if _, err := s.send(delivery(`{}`)); err != nil {
		t.Errorf("error %v", err)
	}

	distrusting := start(t, withHook(far.URL))
	if _, err := distrusting.send(delivery(`{}`)); codeOf(err) != "unavailable" {
		t.Errorf("an endpoint that nobody vouches for: %v", err)
	}
}

func TestAClientCertificateIsDemandedWhereAnAuthorityIsNamed(t *testing.T) {
	far := httptest.NewTLSServer(nethttp.NotFoundHandler())
	t.Cleanup(far.Close)
	cert, key := serverFiles(t, far)
	s := start(t, func(c *Config) { c.TLS = tlsfiles.Config{CertFile: cert, KeyFile: key, ClientCAFile: cert} })
	s.client.Transport.(*nethttp.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // The client's side is not what is tested.
	if resp, err := s.client.Get("https" + s.url[len("http"):] + "/healthz"); err == nil {
		resp.Body.Close()
		t.Errorf("a client without a certificate is answered %d", resp.StatusCode)
	}
}
