package mqtt

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/mochi-mqtt/server/v2/packets"
)

const ingress = "compozy/network/v0/ws/lab/ingress"

var (
	committed = core.Settlement{Verdict: core.VerdictCommitted}
	refusal   = core.Settlement{
		Verdict:   core.VerdictRejected,
		Rejection: &core.Rejection{Reason: core.ReasonExpired, Detail: "too old"},
	}
)

// newBroker is a broker that serves.
func newBroker(t *testing.T) *Broker {
	t.Helper()
	b := unservedBroker(t)
	if err := b.Serve(); err != nil {
		t.Fatal(err)
	}
	return b
}

func unservedBroker(t *testing.T) *Broker {
	t.Helper()
	cfg := DefaultBrokerConfig()
	cfg.Listen = "127.0.0.1:0"
	b, err := NewBroker(cfg, discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close the broker: %v", err)
		}
	})
	return b
}

// embedded starts a broker with a running carrier on it.
func embedded(t *testing.T, in core.Intake) (*Broker, *Carrier) {
	t.Helper()
	b := newBroker(t)
	c, err := New(testConfig(""), testHost("mqtt"), WithBroker(b))
	if err != nil {
		t.Fatal(err)
	}
	start(t, c, in)
	ready(t, c)
	return b, c
}

func watching(t *testing.T, b *Broker) *testDevice {
	t.Helper()
	d := dialDevice(t, b, "watcher")
	d.subscribe(t, "compozy/#", "other/#")
	return d
}

func (d *testDevice) payloads() []string {
	var list []string
	for _, pk := range d.received() {
		list = append(list, string(pk.Payload))
	}
	return list
}

func TestADeviceIsAnsweredAndItsMessageShownOnlyOnceItIsCommitted(t *testing.T) {
	for _, qos := range []byte{1, 2} {
		t.Run(fmt.Sprintf("QoS %d", qos), func(t *testing.T) {
			in := &recorder{}
			b, _ := embedded(t, in)
			watcher, device := watching(t, b), dialDevice(t, b, "device")
			device.publish(broadcast, []byte("x"), qos)
			o := in.await(t, 1)
			if o.Arrival != core.ArrivalNative || o.Redelivered {
				t.Errorf("arrival %s, redelivered %v", o.Arrival, o.Redelivered)
			}
			never(t, 50*time.Millisecond, "the message had an effect before it was committed", func() bool {
				return len(device.acknowledged()) > 0 || len(watcher.received()) > 0
			})
			o.settle(committed)
			until(t, "the device is answered", func() bool { return settledOf(device, "x") })
			until(t, "the message is shown", func() bool { return slices.Equal(watcher.payloads(), []string{"x"}) })
			never(t, 30*time.Millisecond, "the message was shown again", func() bool { return len(watcher.received()) > 1 })
		})
	}
}

func TestWhatBecomesOfADevicesMessage(t *testing.T) {
	tests := []struct {
		name         string
		s            core.Settlement
		qos          byte
		acked, shown bool
	}{
		{"committed", committed, 1, true, true},
		{"parked", core.Settlement{Verdict: core.VerdictCommitted, Parked: true}, 1, true, true},
		{"committed, QoS 0", committed, 0, false, true},
		{"duplicate", core.Settlement{Verdict: core.VerdictCommitted, Duplicate: true}, 1, true, false},
		{"echo", core.Settlement{Verdict: core.VerdictCommitted, Echo: true}, 1, true, false},
		{"rejected", refusal, 1, true, false},
		{"rejected, QoS 2", refusal, 2, true, false},
		{"rejected, QoS 0", refusal, 0, false, false},
		{"retry", core.Settlement{Verdict: core.VerdictRetry, RetryAfter: time.Millisecond}, 1, false, false},
		{"none", core.Settlement{}, 1, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := &recorder{}
			b, _ := embedded(t, in)
			watcher := watching(t, b)
			device := dialDevice(t, b, "device", func(d *testDevice) { d.resend = false })
			device.publish(broadcast, []byte("x"), tt.qos)
			in.await(t, 1).settle(tt.s)
			switch {
			case tt.acked:
				until(t, "the device is answered", func() bool { return settledOf(device, "x") })
			case tt.qos > 0:
				until(t, "the device's connection is ended", func() bool { return device.losses() == 1 })
			}
			if tt.shown {
				until(t, "the message is shown", func() bool { return len(watcher.received()) == 1 })
				return
			}
			never(t, 50*time.Millisecond, "the message was shown", func() bool { return len(watcher.received()) > 0 })
			if !tt.acked && len(device.acknowledged()) > 0 {
				t.Error("the device was answered")
			}
		})
	}
}

func TestADeviceThatWasNotAnsweredSendsAgain(t *testing.T) {
	in := &recorder{}
	b, _ := embedded(t, in)
	watcher, device := watching(t, b), dialDevice(t, b, "device")
	device.publish(broadcast, []byte("x"), 1)
	in.await(t, 1).settle(core.Settlement{Verdict: core.VerdictRetry})
	again := in.await(t, 2)
	if !again.Redelivered {
		t.Error("the second copy is not marked as redelivered")
	}
	// The first copy was committed after all; subscribers have not seen it yet.
	again.settle(core.Settlement{Verdict: core.VerdictCommitted, Duplicate: true})
	until(t, "the device is answered", func() bool { return settledOf(device, "x") })
	until(t, "the message is shown", func() bool { return len(watcher.received()) == 1 })
}

func TestACommittedMessageIsShownThoughItsDeviceHasGone(t *testing.T) {
	in := &recorder{}
	b, _ := embedded(t, in)
	watcher := watching(t, b)
	device := dialDevice(t, b, "device", func(d *testDevice) { d.resend = false })
	device.publish(broadcast, []byte("x"), 1)
	o := in.await(t, 1)
	device.close()
	o.settle(committed)
	until(t, "the message is shown", func() bool { return slices.Equal(watcher.payloads(), []string{"x"}) })
}

func TestADeviceOfMQTT5LearnsWhyItsMessageWasRefused(t *testing.T) {
	for _, qos := range []byte{1, 2} {
		b, _ := embedded(t, settling(refusal))
		device := dialDevice(t, b, "device", func(d *testDevice) {
			d.version = 5
			d.connect.ProtocolVersion = 5
		})
		device.publish(broadcast, []byte("x"), qos)
		until(t, "the device is answered", func() bool { return len(device.answers()) == 1 })
		answer := device.answers()[0]
		if answer.ReasonCode != packets.ErrImplementationSpecificError.Code || !strings.Contains(answer.Properties.ReasonString, "expired") {
			t.Errorf("QoS %d: reason code %#x, reason %q", qos, answer.ReasonCode, answer.Properties.ReasonString)
		}
	}
}

func TestTopicAliasesAndNoLocalOfMQTT5AreHeeded(t *testing.T) {
	in := committing()
	b, _ := embedded(t, in)
	watcher := watching(t, b)
	device := dialDevice(t, b, "device", func(d *testDevice) {
		d.version = 5
		d.connect.ProtocolVersion = 5
	})
	device.mu.Lock()
	device.out <- packets.Packet{FixedHeader: header(packets.Subscribe), PacketID: 65001, Filters: packets.Subscriptions{
		{Filter: broadcast, Qos: 1, NoLocal: true},
	}}
	device.mu.Unlock()
	for i, topic := range []string{broadcast, ""} {
		pk := packets.Packet{
			FixedHeader: packets.FixedHeader{Type: packets.Publish, Qos: 1}, TopicName: topic, Payload: []byte(fmt.Sprint(i)),
		}
		pk.Properties.TopicAlias, pk.Properties.TopicAliasFlag = 1, true
		device.send(pk)
	}
	until(t, "both are shown", func() bool { return slices.Equal(watcher.payloads(), []string{"0", "1"}) })
	for _, o := range in.all() {
		if o.Address == nil || o.Address.Channel != "lab" {
			t.Errorf("%q was offered with the address %+v", o.Payload, o.Address)
		}
	}
	if n := len(device.received()); n != 0 {
		t.Errorf("the device got %d of its own messages back", n)
	}
}

func TestASlowGatewayCostsADeviceNothing(t *testing.T) {
	in := &recorder{}
	b, _ := embedded(t, in)
	watcher, device := watching(t, b), dialDevice(t, b, "device")
	const messages = 500
	for i := range messages {
		device.publish(broadcast, []byte(fmt.Sprintf("%04d", i)), 1)
	}
	settled := 0
	until(t, "everything is answered", func() bool {
		offers := in.all()
		for ; settled < len(offers); settled++ {
			offers[settled].settle(committed)
		}
		time.Sleep(20 * time.Millisecond) // a commit takes its time
		return len(device.acknowledged()) == messages
	})
	until(t, "everything is shown in order", func() bool {
		got := watcher.payloads()
		return len(got) == messages && slices.IsSorted(got)
	})
	if n := device.losses(); n != 0 {
		t.Errorf("the device lost its connection %d times", n)
	}
}

func TestAnswersKeepTheOrderOfEachDevice(t *testing.T) {
	in := &recorder{}
	b, _ := embedded(t, in)
	device := dialDevice(t, b, "device")
	for i := range 5 {
		device.publish(ingress, []byte(fmt.Sprint(i)), 1)
	}
	in.await(t, 5)
	for _, o := range slices.Backward(in.all()) {
		o.settle(committed)
	}
	until(t, "all are answered", func() bool { return len(device.acknowledged()) == 5 })
	if got := bytes.Join(device.acknowledged(), nil); string(got) != "01234" {
		t.Errorf("the order is %s", got)
	}
}

func TestWhatTheGatewayPublishesIsShownAndNotOffered(t *testing.T) {
	in := committing()
	b, c := embedded(t, in)
	watcher := watching(t, b)
	if got := result(t, send(c, patience, "out")); got.err != nil {
		t.Fatal(got.err)
	}
	until(t, "it is shown", func() bool { return slices.Equal(watcher.payloads(), []string{"out"}) })
	if n := len(in.all()); n != 0 {
		t.Errorf("%d were offered", n)
	}
}

func TestAWillOnOurAddressesGoesThroughTheGateway(t *testing.T) {
	withWill := func(qos byte) func(*testDevice) {
		return func(d *testDevice) {
			d.resend = false
			d.connect.Connect.WillFlag, d.connect.Connect.WillQos = true, qos
			d.connect.Connect.WillTopic, d.connect.Connect.WillPayload = broadcast, []byte("will")
		}
	}
	for _, tt := range []struct {
		name  string
		s     core.Settlement
		qos   byte
		shown bool
	}{{"committed", committed, 1, true}, {"committed, QoS 0", committed, 0, true}, {"rejected", refusal, 1, false}} {
		t.Run(tt.name, func(t *testing.T) {
			in := &recorder{}
			b, _ := embedded(t, in)
			watcher := watching(t, b)
			dialDevice(t, b, "device", withWill(tt.qos)).cut()
			o := in.await(t, 1)
			if string(o.Payload) != "will" {
				t.Fatalf("the payload is %q", o.Payload)
			}
			never(t, 30*time.Millisecond, "the will was shown before it was committed", func() bool { return len(watcher.received()) > 0 })
			o.settle(tt.s)
			if tt.shown {
				until(t, "the will is shown", func() bool { return len(watcher.received()) == 1 })
			}
			never(t, 30*time.Millisecond, "the will was shown against its verdict", func() bool {
				return (len(watcher.received()) == 1) != tt.shown
			})
		})
	}
	t.Run("a goodbye withdraws it", func(t *testing.T) {
		in := committing()
		b, _ := embedded(t, in)
		device := dialDevice(t, b, "device", withWill(1))
		device.send(packets.Packet{FixedHeader: header(packets.Disconnect)})
		until(t, "the device is gone", func() bool { return device.losses() == 1 })
		never(t, 30*time.Millisecond, "the will was offered", func() bool { return len(in.all()) > 0 })
	})
}

func TestOfAMessageOverTheEnvelopeLimitTheGatewayGetsTheHead(t *testing.T) {
	in := settling(refusal)
	b, _ := embedded(t, in)
	device := dialDevice(t, b, "device")
	device.publish(ingress, make([]byte, 3<<20), 1)
	if o := in.await(t, 1); o.Size != 3<<20 || len(o.Payload) > 4<<10 {
		t.Errorf("%d bytes were offered with the size %d", len(o.Payload), o.Size)
	}
	until(t, "the device is answered", func() bool { return len(device.acknowledged()) == 1 })
}

func TestADeviceThatOverflowsIsHeldBackAndLosesNothing(t *testing.T) {
	in := committing()
	b, _ := embedded(t, in)
	open := in.shut()
	defer open()
	var devices []*testDevice
	const each = 500
	for i := range 4 {
		d := dialDevice(t, b, fmt.Sprintf("device-%d", i))
		devices = append(devices, d)
		for j := range each {
			d.publish(ingress, []byte(fmt.Sprintf("%d/%d", i, j)), 1)
		}
	}
	never(t, 50*time.Millisecond, "something was offered", func() bool { return len(in.all()) > 0 })
	open()
	for _, d := range devices {
		until(t, "everything is answered", func() bool { return len(d.acknowledged()) == each })
	}
}
