package mqtt

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
)

func TestWithoutARunningCarrierNothingIsTaken(t *testing.T) {
	b := newBroker(t)
	c, err := New(testConfig(""), testHost("mqtt"), WithBroker(b))
	if err != nil {
		t.Fatal(err)
	}
	watcher, device := watching(t, b), dialDevice(t, b, "device")
	device.publish(broadcast, []byte("x"), 1)
	until(t, "the device is turned away", func() bool { return device.losses() > 1 })
	if len(device.acknowledged())+len(watcher.received()) > 0 {
		t.Fatal("a message was taken or shown while no carrier ran")
	}
	stop := start(t, c, committing())
	until(t, "the device is answered", func() bool { return settledOf(device, "x") })
	stop()
	device.publish(broadcast, []byte("y"), 1)
	before := device.losses()
	until(t, "the device is turned away", func() bool { return device.losses() > before+1 })
	if settledOf(device, "y") {
		t.Error("a message was taken after the carrier had stopped")
	}
}

func TestADeviceThatIsEarlyIsAcknowledgedByTheCarrierAlone(t *testing.T) {
	b := unservedBroker(t)
	device := publishEarly(t, b)
	c, err := New(testConfig(""), testHost("mqtt"), WithBroker(b))
	if err != nil {
		t.Fatal(err)
	}
	in := committing()
	start(t, c, in)
	if err := b.Serve(); err != nil {
		t.Fatal(err)
	}
	// While the carrier is not running yet, the device may be turned away; like any
	// device it then sends again.
	for !acknowledged(t, device) {
		device = publishEarly(t, b)
	}
	if !slices.Contains(in.payloads(), "early") {
		t.Error("the message was acknowledged and not given to the carrier")
	}
}

// publishEarly connects and publishes without waiting for anything.
func publishEarly(t *testing.T, b *Broker) *peer {
	t.Helper()
	socket, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	device := newPeer(socket)
	hello := packets.Packet{FixedHeader: header(packets.Connect)}
	hello.Connect = packets.ConnectParams{ProtocolName: []byte("MQTT"), ClientIdentifier: "early", Keepalive: 30}
	publish := packets.Packet{FixedHeader: header(packets.Publish), TopicName: broadcast, PacketID: 1, Payload: []byte("early")}
	publish.FixedHeader.Qos = 1
	for _, pk := range []packets.Packet{hello, publish} {
		if err := device.write(pk); err != nil {
			return device // It was turned away already; reading tells.
		}
	}
	return device
}

// acknowledged reads until the PUBACK, or until the connection ends without.
func acknowledged(t *testing.T, device *peer) bool {
	t.Helper()
	for {
		pk, err := device.read()
		if err != nil {
			return false
		}
		if pk.FixedHeader.Type == packets.Puback {
			return true
		}
	}
}

func TestABrokerThatNeverServedCloses(t *testing.T) {
	b := unservedBroker(t)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", b.Addr()); err == nil {
		_ = conn.Close()
		t.Error("the address is still open")
	}
}

func TestTwoCarriersMayNotShareATopicPrefix(t *testing.T) {
	b := newBroker(t)
	if _, err := New(testConfig(""), testHost("one"), WithBroker(b)); err != nil {
		t.Fatal(err)
	}
	if _, err := New(testConfig(""), testHost("two"), WithBroker(b)); err == nil {
		t.Error("the second carrier was built")
	}
	other := testConfig("")
	other.TopicPrefix = "elsewhere"
	if _, err := New(other, testHost("three"), WithBroker(b)); err != nil {
		t.Error(err)
	}
}

func TestClosingEndsConnectionsThatSaidNothing(t *testing.T) {
	b := newBroker(t)
	silent, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	until(t, "the connection is accepted", func() bool {
		b.listener.mu.Lock()
		defer b.listener.mu.Unlock()
		return len(b.listener.conns) == 1
	})
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Close did not return")
	}
}

func TestClosingDoesNotWaitForSettlements(t *testing.T) {
	in := &recorder{}
	b, _ := embedded(t, in)
	device := dialDevice(t, b, "device", func(d *testDevice) { d.resend = false })
	device.publish(broadcast, []byte("x"), 1)
	in.await(t, 1)
	begin := time.Now()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("Close took %s", took)
	}
	if len(device.acknowledged()) > 0 {
		t.Error("the device was answered")
	}
}

func TestAPortInUseIsOneErrorThatNamesTheKey(t *testing.T) {
	b := newBroker(t)
	cfg := DefaultBrokerConfig()
	cfg.Listen = b.Addr()
	_, err := NewBroker(cfg, discard())
	if err == nil || !strings.HasPrefix(err.Error(), "embedded.mqtt.listen: ") {
		t.Errorf("the error is %v", err)
	}
}
