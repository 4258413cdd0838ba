package integration

import (
	"strings"
	"testing"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/compozy-gateway/gateway/core"
)

const matrixTopics = "compozy/network/v0/"

// matrixDevice publishes to the embedded MQTT broker as devices do.
type matrixDevice struct {
	g        *matrixGatewayProcess
	client   paho.Client
	receipts matrixReceipts
}

func newMatrixMQTT(t *testing.T, g *matrixGatewayProcess) *matrixDevice {
	t.Helper()
	d := &matrixDevice{g: g}
	options := paho.NewClientOptions().AddBroker("tcp://" + g.broker).SetClientID("device")
	options.SetAutoReconnect(false).SetConnectTimeout(matrixPatience)
	d.client = paho.NewClient(options)
	matrixToken(t, "connect", d.client.Connect())
	t.Cleanup(func() { d.client.Disconnect(100) })
	matrixToken(t, "subscribe", d.client.Subscribe(matrixTopics+"+/+/peer/+", 1, func(_ paho.Client, m paho.Message) {
		d.receipts.take(m.Topic()[strings.LastIndexByte(m.Topic(), '/')+1:], m.Payload())
	}))
	return d
}

// matrixToken waits for the broker's answer.
func matrixToken(t *testing.T, what string, token paho.Token) {
	t.Helper()
	if !token.WaitTimeout(matrixPatience) {
		t.Fatalf("%s: the broker does not answer", what)
	}
	if err := token.Error(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (d *matrixDevice) topic(f matrixFrame) string {
	a := matrixAddress{workspace: f.workspace, channel: f.channel, class: "ingress"}
	switch {
	case f.address != nil:
		a = *f.address
	case d.g.way == matrixMQTTNative && f.to != "":
		a.class, a.token = "peer", core.RouteToken(f.to)
	case d.g.way == matrixMQTTNative:
		a.class = "broadcast"
	}
	escaped := strings.NewReplacer("%", "%25", "/", "%2F", "+", "%2B", "#", "%23", "$", "%24").Replace(a.workspace)
	topic := matrixTopics + escaped + "/" + a.channel + "/" + a.class
	if a.token != "" {
		topic += "/" + a.token
	}
	return topic
}

// deliver publishes with QoS 1. The PUBACK comes for what is committed and for
// what is refused alike: a device cannot be told more.
func (d *matrixDevice) deliver(t *testing.T, frames []matrixFrame) ([]string, bool) {
	t.Helper()
	d.publish(t, frames)
	return d.g.settled(t, "mqtt", len(frames)), false
}

func (d *matrixDevice) publish(t *testing.T, frames []matrixFrame) {
	t.Helper()
	var tokens []paho.Token
	for _, f := range frames {
		tokens = append(tokens, d.client.Publish(d.topic(f), 1, false, []byte(f.payload)))
	}
	for _, token := range tokens {
		matrixToken(t, "publish", token)
	}
}

func (*matrixDevice) framed(payload string) string { return payload }

func (d *matrixDevice) finish(t *testing.T, sent []matrixSent) {
	t.Helper()
	matrixSendFence(t, d.g)
	d.receipts.check(t, sent)
}
